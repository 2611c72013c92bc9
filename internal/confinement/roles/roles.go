// Package roles keeps what RBAC lets identities do past admission.
package roles

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/internal/confinement"
	"stepbeyond.dev/stepbeyond/internal/trigger"
)

// Roles holds the newest report for whoever depends on it. The leader alone keeps it.
type Roles struct {
	// Reader lists the RBAC objects, usually a cache.
	Reader client.Reader

	current atomic.Pointer[confinement.Report]

	mu        sync.Mutex
	listeners []chan struct{}
}

// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;clusterroles;rolebindings;clusterrolebindings,verbs=get;list;watch

// SetupWithManager registers the controller. A burst of changes makes one report.
func (r *Roles) SetupWithManager(mgr ctrl.Manager) error {
	everything := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})
	// A cluster without RBAC objects has a report too.
	first := make(chan struct{}, 1)
	first <- struct{}{}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("roles").
		Watches(&rbacv1.Role{}, everything).
		Watches(&rbacv1.ClusterRole{}, everything).
		Watches(&rbacv1.RoleBinding{}, everything).
		Watches(&rbacv1.ClusterRoleBinding{}, everything).
		WatchesRawSource(trigger.On(first, trigger.One)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up report on roles: %w", err)
	}
	return nil
}

// Reconcile makes the report anew.
func (r *Roles) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var (
		roles           rbacv1.RoleList
		clusterRoles    rbacv1.ClusterRoleList
		bindings        rbacv1.RoleBindingList
		clusterBindings rbacv1.ClusterRoleBindingList
	)
	for _, list := range []client.ObjectList{&roles, &clusterRoles, &bindings, &clusterBindings} {
		if err := r.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return reconcile.Result{}, fmt.Errorf("list %T: %w", list, err)
		}
	}
	r.publish(confinement.Find(confinement.RBAC{
		Roles: roles.Items, ClusterRoles: clusterRoles.Items, RoleBindings: bindings.Items, ClusterRoleBindings: clusterBindings.Items,
	}))
	return reconcile.Result{}, nil
}

// Current returns the newest report; nil until RBAC was read for the first time.
func (r *Roles) Current() *confinement.Report { return r.current.Load() }

// Changed returns a channel that receives when a report differs from the one before. A slow reader misses repetitions,
// never the last.
func (r *Roles) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	listener := make(chan struct{}, 1)
	r.listeners = append(r.listeners, listener)
	return listener
}

func (r *Roles) publish(next *confinement.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.current.Swap(next)
	if before != nil && before.Equal(next) {
		return
	}
	for _, listener := range r.listeners {
		select {
		case listener <- struct{}{}:
		default:
		}
	}
}
