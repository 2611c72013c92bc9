// Package coverage_test compares docs/coverage.md with the discovery of a real API server, and its classes with the
// answers that an agent with cluster-admin gets to one request per row: the control plane and the manager are real.
package coverage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/certs"
	"stepbeyond.dev/stepbeyond/internal/coverage"
	"stepbeyond.dev/stepbeyond/internal/stamp"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

const (
	home      = "home" // of testdata/home.yaml
	agentName = "system:serviceaccount:" + home + ":agent"
	// waitAtMost bounds every wait for what the manager or a controller does by itself.
	waitAtMost = time.Minute
)

// The shared cluster, as TestMain made it.
var (
	plane     *env.Env
	resources []coverage.Resource // discovered before any test made a kind
	rows      []coverage.Row
	admin     client.Client
	dynAdmin  dynamic.Interface
	agent     dynamic.Interface
	agentRaw  rest.Interface
	session   string // key of the agent's
	stamper   stamp.Stamper
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/coverage:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log.SetLogger(logr.Discard())
	if plane, err = env.Start(ctx, env.Options{ControllerManager: true, Audit: true, WithoutAuthorizer: true}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := plane.ApplyKustomization(ctx, "config/default", "Deployment", "Service", "PodDisruptionBudget"); err != nil {
		return 0, err
	}
	objects, err := env.Read("test/coverage/testdata/home.yaml")
	if err != nil {
		return 0, err
	}
	if err := plane.Apply(ctx, append(coverage.ThirdParty(), objects...)...); err != nil {
		return 0, err
	}
	if err := discover(); err != nil {
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
	if err := meet(ctx); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// discover makes the rows of the matrix.
func discover() error {
	client, err := discovery.NewDiscoveryClientForConfig(plane.Admin())
	if err != nil {
		return err
	}
	if resources, err = coverage.Discover(client); err != nil {
		return err
	}
	rows, err = coverage.Matrix(resources)
	return err
}

// meet makes the clients, once the agent has a session and the API server enforces.
func meet(ctx context.Context) (err error) {
	if admin, err = plane.Client(); err != nil {
		return err
	}
	unlimited := plane.Admin()
	unlimited.QPS, unlimited.WarningHandlerWithContext = -1, rest.NoWarnings{}
	if dynAdmin, err = dynamic.NewForConfig(unlimited); err != nil {
		return err
	}
	var secret corev1.Secret
	if err := admin.Get(ctx, client.ObjectKey{Namespace: env.SystemNamespace, Name: certs.InstallationSecret}, &secret); err != nil {
		return err
	}
	stamper.Key = secret.Data["digest.key"]
	pod := ""
	if err := eventually(ctx, func() error {
		var sessions v1alpha1.AgentSessionList
		if err := admin.List(ctx, &sessions, client.InNamespace(home)); err != nil {
			return err
		}
		if len(sessions.Items) != 1 || sessions.Items[0].Status.State != v1alpha1.SessionActive || len(sessions.Items[0].Status.LivePods) != 1 {
			return fmt.Errorf("%d sessions, want one that is active with one pod", len(sessions.Items))
		}
		session, pod = home+"/"+sessions.Items[0].Name, sessions.Items[0].Status.LivePods[0].Name
		return nil
	}); err != nil {
		return err
	}
	token, err := plane.ServiceAccountToken(ctx, home, "agent", pod)
	if err != nil {
		return err
	}
	config := plane.Token(token)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	if agent, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	agentRaw = client.RESTClient()
	return eventually(ctx, func() error { return enforced(ctx) })
}

// enforced tells whether the API server asks both the manager, which stamps what the agent creates, and the floor.
func enforced(ctx context.Context) error {
	probe, err := request{row: rowOf("configmaps", coverage.OperationCreate), name: "probe"}.example()
	if err != nil {
		return err
	}
	answer, err := agent.Resource(configMaps).Namespace(home).Create(ctx, probe, dryRun)
	if err == nil && answer.GetAnnotations()[v1alpha1.AnnotationCreatedBy] == "" {
		err = errors.New("a ConfigMap of the agent is not stamped")
	}
	if err != nil {
		return err
	}
	probe.SetNamespace(env.SystemNamespace)
	_, self := agent.Resource(configMaps).Namespace(env.SystemNamespace).Create(ctx, probe, dryRun)
	node, err := request{row: rowOf("nodes", coverage.OperationCreate), name: "probe"}.example()
	if err != nil {
		return err
	}
	_, authority := agent.Resource(node.GroupVersionKind().GroupVersion().WithResource("nodes")).Create(ctx, node, dryRun)
	for _, answer := range []error{self, authority} {
		if answer == nil || !floorSpoke.MatchString(answer.Error()) {
			return fmt.Errorf("the floor does not answer the agent: %w", answer)
		}
	}
	return nil
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
