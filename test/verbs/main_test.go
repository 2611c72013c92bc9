// Package verbs_test has the real kubectl of an agent with cluster-admin do what its verbs do to one object of every
// built-in kind: what is asked about is approved by a person and done by the same command again, once.
//
// The control plane, with kube-controller-manager, and the manager are real. There are several agents, each in a
// governed namespace of its own; a kind is one agent's work, so that the requests of a command can be told by who sent
// them. VERBS_DIR set to a folder keeps logs and certificates of the run there.
package verbs_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/internal/coverage"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// agents work at the same time.
const agents = 8

// waitAtMost bounds every wait for what the manager or a controller does by itself.
const waitAtMost = time.Minute

// The shared cluster, as TestMain made it.
var (
	plane     *env.Env
	resources []coverage.Resource
	rows      []coverage.Row
	admin     client.Client
	// ben owns the objects, carla approves.
	ben             dynamic.Interface
	carla           client.Client
	carlaKubeconfig string
	// free holds the agents that have nothing to do.
	free = make(chan *agent, agents)
)

func TestMain(m *testing.M) {
	if change, ok := os.LookupEnv(editorVariable); ok {
		if err := edit(os.Args[len(os.Args)-1], change); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/verbs:", err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// The machine is loaded by kubectl, not by the tests, which wait for it.
	if err := flag.Set("test.parallel", strconv.Itoa(agents)); err != nil {
		return 0, err
	}
	log.SetLogger(logr.Discard())
	plane, err = env.Start(ctx, env.Options{ControllerManager: true, Audit: true, WithoutAuthorizer: true, Dir: os.Getenv("VERBS_DIR")})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := settle(ctx); err != nil {
		return 0, err
	}
	manager, err := plane.NewManager(ctx, env.ManagerOptions{})
	if err != nil {
		return 0, err
	}
	if err := manager.Start(); err != nil {
		return 0, err
	}
	if err := manager.WaitReady(ctx, waitAtMost); err != nil {
		return 0, err
	}
	for number := range agents {
		a, err := meet(ctx, homeOf(number))
		if err != nil {
			return 0, err
		}
		free <- a
	}
	return m.Run(), nil
}

func homeOf(number int) string { return fmt.Sprintf("home-%d", number) }

// settle fills the cluster and makes the clients of people.
func settle(ctx context.Context) (err error) {
	if err := plane.ApplyKustomization(ctx, "config/default", "Deployment", "Service", "PodDisruptionBudget"); err != nil {
		return err
	}
	objects, err := env.Read("test/verbs/testdata/cluster.yaml")
	if err != nil {
		return err
	}
	home, err := os.ReadFile(filepath.Join("testdata", "home.yaml"))
	if err != nil {
		return fmt.Errorf("home: %w", err)
	}
	for number := range agents {
		more, err := env.Decode([]byte(strings.ReplaceAll(string(home), "NAMESPACE", homeOf(number))))
		if err != nil {
			return fmt.Errorf("home: %w", err)
		}
		objects = append(objects, more...)
	}
	if err := plane.Apply(ctx, objects...); err != nil {
		return err
	}
	if admin, err = plane.Client(); err != nil {
		return err
	}
	found, err := discovery.NewDiscoveryClientForConfig(plane.Admin())
	if err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	if resources, err = coverage.Discover(found); err != nil {
		return err
	}
	if rows, err = coverage.Matrix(resources); err != nil {
		return err
	}
	return introduce()
}

func introduce() error {
	config, err := plane.User("ben@acme.example")
	if err != nil {
		return err
	}
	config.QPS, config.WarningHandlerWithContext = -1, rest.NoWarnings{}
	if ben, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("client of ben: %w", err)
	}
	if config, err = plane.User("carla@acme.example"); err != nil {
		return err
	}
	config.QPS = -1
	if carla, err = client.New(config, client.Options{Scheme: admin.Scheme()}); err != nil {
		return fmt.Errorf("client of carla: %w", err)
	}
	carlaKubeconfig, err = plane.Kubeconfig("carla", config, "")
	return err
}

// eventually calls done until it answers nil.
func eventually(ctx context.Context, done func() error) error {
	deadline := time.Now().Add(waitAtMost)
	for {
		err := done()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("within %s: %w", waitAtMost, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// rowOf is the row of the matrix for an operation on a resource, whatever its version.
func rowOf(of schema.GroupResource, subresource string, operation coverage.Operation) (*coverage.Row, error) {
	for i := range rows {
		if row := &rows[i]; row.GroupResource() == of && row.Subresource == subresource && row.Operation == operation {
			return row, nil
		}
	}
	return nil, fmt.Errorf("the matrix has no row for %s of %s/%s", operation, of, subresource)
}
