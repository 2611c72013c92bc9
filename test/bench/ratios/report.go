package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/test/bench"
)

var (
	sizes = []int{10, 100, 1000}
	paths = []policy.Class{policy.ClassAuto, policy.ClassAsk}
)

var errWrongClass = errors.New("the class is not the expected one")

// key names one contender.
type key struct {
	what   string
	engine string
	rules  int
	path   policy.Class
}

const (
	rules      = "rules"
	kubernetes = "kubernetes"
)

// group is what is measured together, in the order in which it is printed.
type group []*contender

// report prints figures and promises, and tells whether all promises are kept. Groups are made one after the other, so
// that the garbage collector does not charge one for the memory of the others.
func report(out io.Writer, rounds int, slice time.Duration) (bool, error) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "what\trules\tpath\tengine\tus\tB\tallocations\t")
	costs := map[key]time.Duration{}
	for _, newGroup := range []func(policy.Class) (group, error){ruleGroup, kubernetesGroup} {
		for _, path := range paths {
			contenders, err := newGroup(path)
			if err != nil {
				return false, err
			}
			if err := measure(contenders, rounds, slice); err != nil {
				return false, err
			}
			for _, c := range contenders {
				costs[c.key] = c.perRun
				fmt.Fprintf(table, "%s\t%d\t%v\t%s\t%.2f\t%d\t%d\t\n",
					c.what, c.rules, c.path, c.engine, c.perRun.Seconds()*1e6, c.bytes, c.allocations)
			}
		}
	}
	if err := table.Flush(); err != nil {
		return false, fmt.Errorf("print figures: %w", err)
	}
	return printPromises(out, costs), nil
}

func ruleGroup(path policy.Class) (group, error) {
	var g group
	for _, n := range sizes {
		p, request := bench.NewPolicy(n, path)
		for _, engine := range bench.Engines() {
			class, err := engine.New(p)
			if err != nil {
				return nil, fmt.Errorf("make %s from %d rules: %w", engine.Name, n, err)
			}
			g.add(key{rules, engine.Name, n, path}, func() (policy.Class, error) { return class(&request) })
		}
	}
	return g, nil
}

func kubernetesGroup(path policy.Class) (group, error) {
	var g group
	for _, n := range sizes {
		request, err := bench.Deployment(bench.DeploymentName(path))
		if err != nil {
			return nil, fmt.Errorf("make request: %w", err)
		}
		for _, engine := range bench.KubeEngines() {
			class, err := engine.New(bench.NewKubePolicy(n))
			if err != nil {
				return nil, fmt.Errorf("make %s from %d Kubernetes rules: %w", engine.Name, n, err)
			}
			g.add(key{kubernetes, engine.Name, n, path}, func() (policy.Class, error) { return class(&request) })
		}
	}
	return g, nil
}

// add a contender that answers, and fails with another class than its path's.
func (g *group) add(k key, class func() (policy.Class, error)) {
	*g = append(*g, &contender{key: k, run: func() error {
		got, err := class()
		if err == nil && got != k.path {
			err = errWrongClass
		}
		return err
	}})
}
