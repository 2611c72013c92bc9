// Package permissiongrant keeps the status of PermissionGrants: it closes what time, sessions and policies end, and
// settles the uses that admission reserved. It never approves and never reserves.
package permissiongrant

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/grant"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/trigger"
)

// +kubebuilder:rbac:groups=stepbeyond.dev,resources=permissiongrants,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=stepbeyond.dev,resources=permissiongrants/status,verbs=get;update
// +kubebuilder:rbac:groups=stepbeyond.dev,resources=agentsessions,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles PermissionGrants.
type Reconciler struct {
	Client   client.Client
	Store    *policystore.Store
	Protocol *grant.Protocol
	Events   events.EventRecorder
	Metrics  *Metrics
	Now      func() time.Time

	history history
}

// SetupWithManager watches grants, the sessions that they belong to, and the policies that they are bound to.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.PermissionGrant{}).
		Watches(&v1alpha1.PermissionGrant{}, handler.EnqueueRequestsFromMapFunc(r.twins)).
		Watches(&v1alpha1.AgentSession{}, handler.EnqueueRequestsFromMapFunc(r.ofSession), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesRawSource(trigger.On(r.Store.Changed(), trigger.Every(r.Client, &v1alpha1.PermissionGrantList{}))).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up permissiongrant controller: %w", err)
	}
	return nil
}

// Reconcile brings one grant's status to what it should be now.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	g := &v1alpha1.PermissionGrant{}
	if err := r.Client.Get(ctx, req.NamespacedName, g); err != nil {
		if apierrors.IsNotFound(err) {
			r.history.forget(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.history.observe(g, r.Now(), r.Events, r.Metrics)
	again, err := r.Protocol.Settle(ctx, g)
	if err != nil {
		return conflictAgain(err)
	}
	if again > 0 {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	want, err := r.desired(ctx, g)
	if errors.Is(err, errSnapshotBehind) {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	r.warn(g, &want)
	if !equality.Semantic.DeepEqual(g.Status, want) {
		updated := g.DeepCopy()
		updated.Status = want
		// Update, not apply: a use that admission reserves meanwhile must win by conflict.
		if err := r.Client.Status().Update(ctx, updated); err != nil {
			return conflictAgain(err)
		}
		tellOfWrite(r.Events, g, &want)
		return reconcile.Result{}, nil // the write comes back as an event
	}
	return r.next(ctx, g)
}

// next is when time alone changes the grant: people are warned, it expires, or its retention ends and it is deleted.
func (r *Reconciler) next(ctx context.Context, g *v1alpha1.PermissionGrant) (reconcile.Result, error) {
	now := r.Now()
	if at := g.Status.ExpirationTime; at != nil {
		wake := at.Time
		if warnAt := r.warnAt(g, &g.Status); warnAt.After(now) {
			wake = warnAt
		}
		return reconcile.Result{RequeueAfter: max(time.Second, wake.Sub(now))}, nil
	}
	left, never := r.deletable(g, now)
	switch {
	case never:
		return reconcile.Result{RequeueAfter: time.Second}, nil
	case left > 0:
		return reconcile.Result{RequeueAfter: left}, nil
	}
	err := r.Client.Delete(ctx, g, client.Preconditions{UID: &g.UID, ResourceVersion: &g.ResourceVersion})
	if err != nil && !apierrors.IsNotFound(err) {
		return conflictAgain(fmt.Errorf("delete finished permissiongrant %s: %w", client.ObjectKeyFromObject(g), err))
	}
	return reconcile.Result{}, nil
}

func conflictAgain(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: 100 * time.Millisecond}, nil
	}
	return reconcile.Result{}, err
}
