// Package enforcement keeps the scope and the floor in force in the API server, proves it with canary requests, and
// reports both in the status of every ClusterAgentPolicy.
package enforcement

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/trigger"
	"stepbeyond.dev/stepbeyond/policy/baseline"
)

const (
	// proveEvery is how often the canary asks.
	proveEvery = 30 * time.Second
	// settleWithin is how long a new configuration may take to act; an API server needs a second or two.
	settleWithin = 10 * time.Second
	// retryAfter is the wait after a write that failed.
	retryAfter = 5 * time.Second
)

// Prover sends the canary requests; *admission.Canary is one.
type Prover interface {
	// Prove asks once. The error joins one *admission.Failure for each enforcer that did not refuse.
	Prove(ctx context.Context) (admission.Proof, error)
	// Await asks until everything is proven or the time is over.
	Await(ctx context.Context, within time.Duration) (admission.Proof, error)
}

// Endpoint knows where the API server finds the webhook; *rotation.Keeper is one.
type Endpoint interface {
	// Endpoint is asked at every reconcile.
	Endpoint(ctx context.Context) (admission.Endpoint, error)
	// Changed returns a channel that receives when the answer becomes another.
	Changed() <-chan struct{}
}

// Scope writes the scope and the floor after each change of the policies and every 30 s, and then has them proven. Only
// the leader does.
type Scope struct {
	Client client.Client
	// Live reads past the cache.
	Live     client.Reader
	Store    *policystore.Store
	Canary   Prover
	Endpoint Endpoint
	// Manager is the manager's own username.
	Manager string
	// State receives every observation.
	State *State
	// Guard writes the objects.
	Guard *admission.Guard
	// Alarm tells of what others changed. The caller registers its metrics.
	Alarm *Alarm
	// Releases is told of every write. Omitted, nobody is.
	Releases *Releases
}

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,verbs=create;patch,resourceNames=stepbeyond
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,verbs=create;patch,resourceNames=stepbeyond-floor-authority;stepbeyond-floor-pods;stepbeyond-floor-self;stepbeyond-floor-forbidden

// SetupWithManager registers the controller.
func (r *Scope) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("enforcement-scope").
		WatchesRawSource(trigger.On(r.Store.Changed(), trigger.One)).
		WatchesRawSource(trigger.On(r.State.Repaired(), again)).
		WatchesRawSource(trigger.On(r.Endpoint.Changed(), trigger.One)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up enforcement scope: %w", err)
	}
	return nil
}

// proveAgain is the request after a repair. It writes nothing: else whoever insists on another content would be answered
// at once by the pass that each repair starts, and the watchdog's patience would be for nothing.
var proveAgain = reconcile.Request{NamespacedName: types.NamespacedName{Name: "prove"}}

func again(context.Context) ([]reconcile.Request, error) { return []reconcile.Request{proveAgain}, nil }

// Reconcile writes, then proves, also when writing failed: what is in force may still be. A failed proof is answered by
// waiting until the API server acts on what was written.
func (r *Scope) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	snapshot := r.Store.Current()
	if snapshot == nil {
		return reconcile.Result{}, nil // the first snapshot is a change
	}
	observed := r.State.Current()
	if request != proveAgain {
		observed = r.write(ctx, snapshot)
	}
	limited := r.limit(ctx, observed)
	first := observed.Proof.Time.IsZero()
	if !first {
		observed = observed.with(r.Canary.Prove(ctx))
		observed.Repairing = observed.Failure != nil
	}
	r.State.publish(observed)
	if first || observed.Repairing {
		observed = observed.with(r.Canary.Await(ctx, settleWithin))
		observed.Repairing = false
		r.State.publish(observed)
	}
	r.Alarm.Metrics.proof(observed.Proof)
	if observed.Failure != nil {
		log.FromContext(ctx).Info("Enforcement is not proven", "failure", describe(observed.Failure))
	}
	if request == proveAgain {
		return reconcile.Result{}, nil // the other request comes again by itself
	}
	if observed.Problem != nil {
		log.FromContext(ctx).Error(observed.Problem, "The wanted scope is not in force")
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	}
	if !limited {
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	}
	return reconcile.Result{RequeueAfter: proveEvery}, nil
}

// write puts the wanted scope into force. What goes wrong is the observation's problem, and the scope of the observation
// is then the one that was in force before.
func (r *Scope) write(ctx context.Context, snapshot *policystore.Snapshot) Observation {
	observed := r.State.Current()
	last, err := r.live(ctx)
	if err != nil {
		observed.Problem = err
		return observed
	}
	// What this process put into force counts too, in case both sources are lost at once.
	last = join(last, admission.Scope{Namespaces: observed.Scope.Namespaces})
	wanted, err := r.wanted(ctx, snapshot, last)
	if err != nil {
		observed.Scope, observed.Problem = last, err
		return observed
	}
	observed.Problem = nil
	if _, err := wanted.Expressions(); err != nil {
		// With the last scope the configuration is still repaired, and on a first start it covers the canary.
		wanted, observed.Problem = last, fmt.Errorf("compile the scope: %w", err)
	}
	forbidden, err := r.apply(ctx, snapshot, wanted)
	if err != nil {
		wanted, observed.Problem = last, err
	} else {
		observed.Forbidden = forbidden
	}
	if err := r.Releases.observe(ctx, snapshot, last, wanted); err != nil {
		log.FromContext(ctx).Error(err, "Nobody is told of a released namespace")
	}
	observed.Scope = wanted
	return observed
}

// apply returns the rules that the floor enforces from now on.
func (r *Scope) apply(ctx context.Context, snapshot *policystore.Snapshot, scope admission.Scope) ([]string, error) {
	floor, err := baseline.Load(snapshot.BaselineVersion)
	if err != nil {
		return nil, fmt.Errorf("catalogue of the floor: %w", err)
	}
	forbidden, err := r.forbidden(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	endpoint, err := r.Endpoint.Endpoint(ctx)
	if err != nil {
		return nil, fmt.Errorf("endpoint of the webhook: %w", err)
	}
	objects, err := admission.Configuration{
		Scope: scope, Watched: admission.Scope{Namespaces: snapshot.Onboarding, Exempt: snapshot.Scope.Exempt},
		Endpoint: endpoint, Manager: r.Manager, Catalogue: floor.Catalogue, Version: snapshot.BaselineVersion,
		Forbidden: forbidden,
	}.Objects()
	if err != nil {
		return nil, fmt.Errorf("put the scope into force: %w", err)
	}
	repairs, err := r.Guard.Put(ctx, objects)
	for _, repair := range repairs {
		r.Alarm.repaired(ctx, repair, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("put the scope into force: %w", err)
	}
	return forbidden.Rules(), nil
}
