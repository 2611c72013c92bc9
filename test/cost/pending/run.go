package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// atMost is the promised ratio of pending to get, of both times.
const atMost = 2.0

// cost is what one run of a program took.
type cost struct{ processor, clock time.Duration }

// contender is a program that lists the queue.
type contender struct {
	name string
	path string
	args []string
	// costs of the rounds, in order.
	costs []cost
}

func run(ctx context.Context, grants, rounds int) (kept bool, err error) {
	if grants < 1 || rounds < 1 {
		return false, errors.New("-grants and -rounds must be at least 1")
	}
	// Without a manager no webhook is there, so that grants can be made; nothing else that the list depends on is missing.
	c, err := cluster.Prepare(ctx, env.Options{})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	began := time.Now()
	if err := fill(ctx, c.Admin, grants); err != nil {
		return false, err
	}
	fmt.Printf("%d grants in %d namespaces, made in %.0f s\n", grants, namespaces, time.Since(began).Seconds())
	contenders, kubeconfig, err := prepare(ctx, c)
	if err != nil {
		return false, err
	}
	for round := range rounds {
		for i := range contenders {
			// Who is first in a round has the colder caches.
			contender := &contenders[(i+round)%len(contenders)]
			if err := contender.measure(ctx, kubeconfig, grants); err != nil {
				return false, err
			}
		}
	}
	return report(contenders), nil
}

// prepare builds the plugin, and connects somebody with the approver's role.
func prepare(ctx context.Context, c *cluster.Cluster) (contenders []contender, kubeconfig string, err error) {
	root, err := env.RepositoryRoot()
	if err != nil {
		return nil, "", err
	}
	plugin := filepath.Join(c.Env.Dir(), "kubectl-stepbeyond")
	build := exec.CommandContext(ctx, "go", "build", "-o", plugin, "./cmd/kubectl-stepbeyond")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("build the plugin: %w\n%s", err, output)
	}
	kubectl, err := env.Asset("kubectl")
	if err != nil {
		return nil, "", err
	}
	approver, err := approver(ctx, c)
	if err != nil {
		return nil, "", err
	}
	kubeconfig, err = c.Env.Kubeconfig("approver", approver, "")
	return []contender{
		{name: "kubectl get permissiongrants -A", path: kubectl, args: []string{"get", "permissiongrants", "-A"}},
		{name: "kubectl stepbeyond pending -A", path: plugin, args: []string{"pending", "-A"}},
	}, kubeconfig, err
}

// measure runs the program once, and looks that it listed everything.
func (c *contender) measure(ctx context.Context, kubeconfig string, grants int) error {
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+filepath.Dir(kubeconfig))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", c.name, err, stderr.String())
	}
	took := time.Since(began)
	if listed := bytes.Count(stdout.Bytes(), []byte(" "+prefix)); listed != grants {
		return fmt.Errorf("%s lists %d grants, want %d", c.name, listed, grants)
	}
	c.costs = append(c.costs, cost{processor: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), clock: took})
	return nil
}

// report prints the medians and the ratios of the same round, and tells whether the promise is kept.
func report(contenders []contender) bool {
	get, pending := &contenders[0], &contenders[1]
	fmt.Printf("\n%-34s %12s %12s\n", "median of "+fmt.Sprint(len(get.costs))+" runs", "processor", "clock")
	for _, c := range contenders {
		fmt.Printf("%-34s %10.0fms %10.0fms\n", c.name,
			median(c.costs, func(c cost) float64 { return ms(c.processor) }), median(c.costs, func(c cost) float64 { return ms(c.clock) }))
	}
	var ratios []struct{ processor, clock float64 }
	for i := range get.costs {
		ratios = append(ratios, struct{ processor, clock float64 }{
			ms(pending.costs[i].processor) / ms(get.costs[i].processor), ms(pending.costs[i].clock) / ms(get.costs[i].clock),
		})
	}
	processor := median(ratios, func(r struct{ processor, clock float64 }) float64 { return r.processor })
	clock := median(ratios, func(r struct{ processor, clock float64 }) float64 { return r.clock })
	word := "kept"
	if processor > atMost || clock > atMost {
		word = "MISSED"
	}
	fmt.Printf("%-34s %12.2f %12.2f\n%s: at most %.0f times kubectl get\n", "ratio, median of the rounds", processor, clock, word, atMost)
	return word == "kept"
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median[T any](values []T, of func(T) float64) float64 {
	list := make([]float64, len(values))
	for i, v := range values {
		list[i] = of(v)
	}
	slices.Sort(list)
	return list[len(list)/2]
}
