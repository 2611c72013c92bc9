package enforcement_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/confinement/roles"
	"stepbeyond.dev/stepbeyond/internal/controller/enforcement"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

func TestARunningManagerEnforcesANewNamespaceAndSaysSo(t *testing.T) {
	mgr, err := ctrl.NewManager(kubeconfig, ctrl.Options{Scheme: k8s.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	canary, err := admission.NewCanary(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	store := &policystore.Store{Reader: mgr.GetClient()}
	state, allowed := &enforcement.State{}, &roles.Roles{Reader: mgr.GetClient()}
	for _, controller := range []interface{ SetupWithManager(ctrl.Manager) error }{
		store, allowed,
		&enforcement.Scope{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Store: store, Canary: canary, Endpoint: endpoint, Manager: manager,
			State: state, Metric: enforcement.NewMetric(),
		},
		&enforcement.Status{Client: mgr.GetClient(), Store: store, State: state, Roles: allowed, Recorder: mgr.GetEventRecorder("stepbeyond")},
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

	create(t, profile(), clusterPolicy("default"), namespace("running", "standard"))
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var object v1alpha1.ClusterAgentPolicy
		if err := k8s.Get(ctx, client.ObjectKey{Name: "default"}, &object); err != nil {
			return false, err
		}
		ready := meta.IsStatusConditionTrue(object.Status.Conditions, string(v1alpha1.ConditionEnforcementReady))
		return ready && state.EnforcesServiceAccount("running", "agent"), nil
	})
	if err != nil {
		t.Errorf("%v; conditions %v, observation %+v", err, conditions(t, "default"), state.Current())
	}
}
