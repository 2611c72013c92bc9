package enforcement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
)

const (
	// firstWait is the wait before the second repair of an object in a row; each further one doubles it, up to the time
	// after which it is written anyway. It starts anew after twice that time without a repair.
	firstWait = 100 * time.Millisecond
	// lookAgain is the wait while an object is being deleted, whose end is an event too.
	lookAgain = time.Second
)

// Watchdog watches every object that the enforcement is made of, one by one, and puts right what others change or
// delete. Only the leader does.
type Watchdog struct {
	// Watching lists and watches past any cache.
	Watching client.WithWatch
	Guard    *admission.Guard
	Alarm    *Alarm
	// MostWait bounds the wait before the next repair of an object that is changed again and again. Omitted: 30 s.
	MostWait time.Duration

	repairs *flowcontrol.Backoff
	mu      sync.Mutex
	noticed map[admission.Guarded]time.Time
}

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,verbs=get;list;watch;update,resourceNames=stepbeyond
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,verbs=get;list;watch;update,resourceNames=stepbeyond-floor-authority;stepbeyond-floor-pods;stepbeyond-floor-self;stepbeyond-floor-forbidden
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch;create;patch;update,resourceNames=agentpolicies.stepbeyond.dev;agentsessions.stepbeyond.dev;clusteragentpolicies.stepbeyond.dev;permissiongrants.stepbeyond.dev

// SetupWithManager registers the controller.
func (w *Watchdog) SetupWithManager(mgr ctrl.Manager) error {
	w.repairs = flowcontrol.NewBackOff(firstWait, cmp.Or(w.MostWait, proveEvery))
	w.noticed = map[admission.Guarded]time.Time{}
	err := builder.TypedControllerManagedBy[admission.Guarded](mgr).
		Named("enforcement-watchdog").
		WatchesRawSource(source.TypedFunc[admission.Guarded](w.watch)).
		Complete(w)
	if err != nil {
		return fmt.Errorf("set up watchdog of the enforcement: %w", err)
	}
	return nil
}

// Reconcile repairs one object. Who insists on another content is answered slower and slower, so that two controllers
// do not wear out the API server; the scope's own pass still writes every 30 s.
func (w *Watchdog) Reconcile(ctx context.Context, object admission.Guarded) (reconcile.Result, error) {
	key := object.String()
	if wait := w.wait(key); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	repair, err := w.Guard.Restore(ctx, object)
	switch {
	case errors.Is(err, admission.ErrTerminating):
		log.FromContext(ctx).Info("An object of the enforcement is being deleted", "kind", object.Kind, "object", object.Name)
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	case errors.Is(err, admission.ErrNewerDefinition):
		w.Alarm.left(ctx, object, err)
		return reconcile.Result{RequeueAfter: proveEvery}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("restore %s: %w", object, err)
	}
	noticed := w.forget(object)
	if repair == nil {
		return reconcile.Result{}, nil
	}
	if !noticed.IsZero() {
		repair.Noticed = noticed
	}
	w.repairs.Next(key, time.Now())
	w.Alarm.repaired(ctx, *repair, w.wait(key))
	return reconcile.Result{}, nil
}

// wait is how long the next repair of the object has to wait.
func (w *Watchdog) wait(key string) time.Duration {
	now := time.Now()
	if !w.repairs.IsInBackOffSinceUpdate(key, now) {
		return 0
	}
	return w.repairs.Get(key)
}

// notice remembers when a change was first heard of that is not dealt with yet.
func (w *Watchdog) notice(object admission.Guarded) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.noticed[object]; !known {
		w.noticed[object] = time.Now()
	}
}

func (w *Watchdog) forget(object admission.Guarded) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	noticed := w.noticed[object]
	delete(w.noticed, object)
	return noticed
}
