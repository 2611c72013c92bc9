package enforcement_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/confinement/roles"
	"stepbeyond.dev/stepbeyond/internal/controller/enforcement"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

// running is a manager with the controllers of the enforcement, as one replica runs them.
type running struct {
	state   *enforcement.State
	metrics *enforcement.Metrics
	events  *events.FakeRecorder
}

func run(t *testing.T, mostWait time.Duration) *running {
	t.Helper()
	mgr, err := ctrl.NewManager(kubeconfig, ctrl.Options{
		Scheme: k8s.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	canary, err := admission.NewCanary(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := admission.NewGuard(k8s, k8s)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{state: &enforcement.State{}, metrics: enforcement.NewMetrics(), events: events.NewFakeRecorder(1024)}
	store := &policystore.Store{Reader: mgr.GetClient()}
	allowed := &roles.Roles{Reader: mgr.GetClient()}
	alarm := &enforcement.Alarm{Policies: mgr.GetClient(), Recorder: r.events, Metrics: r.metrics, State: r.state}
	for _, controller := range []interface{ SetupWithManager(ctrl.Manager) error }{
		store, allowed,
		&enforcement.Scope{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Store: store, Canary: canary, Endpoint: fixed(endpoint), Manager: manager,
			State: r.state, Guard: guard, Alarm: alarm,
		},
		&enforcement.Watchdog{Watching: k8s, Guard: guard, Alarm: alarm, MostWait: mostWait},
		&enforcement.Status{Client: mgr.GetClient(), Store: store, State: r.state, Roles: allowed, Recorder: r.events},
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
	return r
}

func TestARunningManagerEnforcesANewNamespaceAndSaysSo(t *testing.T) {
	r := run(t, 0)
	create(t, profile(), clusterPolicy("default"), namespace("running", "standard"))
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var object v1alpha1.ClusterAgentPolicy
		if err := k8s.Get(ctx, client.ObjectKey{Name: "default"}, &object); err != nil {
			return false, err
		}
		ready := meta.IsStatusConditionTrue(object.Status.Conditions, string(v1alpha1.ConditionEnforcementReady))
		return ready && r.state.EnforcesServiceAccount("running", "agent"), nil
	})
	if err != nil {
		t.Errorf("%v; conditions %v, observation %+v", err, conditions(t, "default"), r.state.Current())
	}
}
