package agentsession

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

// Retention deletes ended sessions when the profile's endedSessionSeconds are over.
type Retention struct {
	Client client.Client
	Store  *policystore.Store
}

// +kubebuilder:rbac:groups=stepbeyond.dev,resources=agentsessions,verbs=get;list;watch;delete

// SetupWithManager registers the controller.
func (r *Retention) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("agentsession-retention").For(&v1alpha1.AgentSession{}).Complete(r)
	if err != nil {
		return fmt.Errorf("set up retention of AgentSessions: %w", err)
	}
	return nil
}

// Reconcile deletes one session when its time is over, on the version that was read.
func (r *Retention) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	session := &v1alpha1.AgentSession{}
	if err := r.Client.Get(ctx, request.NamespacedName, session); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	snapshot := r.Store.Current()
	if snapshot == nil {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	wait, deletable := left(session, snapshot, time.Now())
	if !deletable || wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	err := r.Client.Delete(ctx, session, client.Preconditions{UID: &session.UID, ResourceVersion: &session.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("delete ended session: %w", err)
	}
	return reconcile.Result{}, nil
}

// left is how long an ended session stays. One with live Pods stays as long as they do: without it a template would
// give them a fresh session, and the end would not have been one. A namespace without a profile has the default.
func left(session *v1alpha1.AgentSession, snapshot *policystore.Snapshot, now time.Time) (wait time.Duration, deletable bool) {
	if session.Status.State != v1alpha1.SessionEnded || session.Status.EndTime == nil || len(session.Status.LivePods) > 0 {
		return 0, false
	}
	spec := &v1alpha1.AgentPolicySpec{}
	if settings, _ := snapshot.Namespace(session.Namespace); settings.Policy != nil {
		spec = &settings.Policy.Spec
	}
	keep := time.Duration(spec.WithProfileDefaults().Retention.EndedSessionSeconds) * time.Second
	return max(0, session.Status.EndTime.Add(keep).Sub(now)), true
}
