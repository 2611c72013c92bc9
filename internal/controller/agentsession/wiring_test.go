package agentsession_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/confinement/roles"
	"stepbeyond.dev/stepbeyond/internal/controller/agentsession"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

// Proves K-1.
func TestARunningManagerReconcilesAgentSessions(t *testing.T) {
	mgr, err := ctrl.NewManager(kubeconfig, ctrl.Options{Scheme: k8s.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := identity.IndexSessions(t.Context(), mgr.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	store := &policystore.Store{Reader: mgr.GetClient()}
	proven := &proof{asked: time.Now(), proven: true, covers: true, changed: make(chan struct{})}
	allowed := &roles.Roles{Reader: mgr.GetClient()}
	for _, controller := range []interface{ SetupWithManager(ctrl.Manager) error }{
		store, allowed,
		&agentsession.Birth{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Store: store, Recorder: mgr.GetEventRecorder("stepbeyond")},
		&agentsession.Status{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Store: store, Proof: proven, Roles: allowed, Manager: manager},
		&agentsession.Retention{Client: mgr.GetClient(), Store: store},
	} {
		if err := controller.SetupWithManager(mgr); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})

	checkout := namespace(t, "standard")
	agent := pod(checkout, "agent-0", nil, "")
	create(t, agent)
	await(t, "a session that is served, with the pod", func() bool {
		list := sessions(t, checkout)
		return len(list) == 1 && list[0].Status.State == v1alpha1.SessionActive && len(list[0].Status.LivePods) == 1
	})
	remove(t, agent)
	await(t, "the end of the session with its workload", func() bool {
		return sessions(t, checkout)[0].Status.State == v1alpha1.SessionEnded
	})
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return done(), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
