// Package agentpolicy keeps the status of AgentPolicies: of profiles, and of the policies of namespaces.
package agentpolicy

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	applied "stepbeyond.dev/stepbeyond/internal/applyconfiguration/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/status"
	"stepbeyond.dev/stepbeyond/internal/trigger"
)

const fieldOwner = client.FieldOwner("stepbeyond-agentpolicy")

// Status writes the status of each AgentPolicy.
type Status struct {
	Client client.Client
	Store  *policystore.Store
}

// +kubebuilder:rbac:groups=stepbeyond.dev,resources=agentpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=stepbeyond.dev,resources=agentpolicies/status,verbs=patch
// +kubebuilder:rbac:groups=stepbeyond.dev,resources=agentsessions;permissiongrants,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// SetupWithManager registers the controller.
func (r *Status) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("agentpolicy-status").
		For(&v1alpha1.AgentPolicy{}).
		Watches(&v1alpha1.AgentSession{}, handler.EnqueueRequestsFromMapFunc(policyOfNamespace)).
		Watches(&v1alpha1.PermissionGrant{}, handler.EnqueueRequestsFromMapFunc(policyOfNamespace)).
		WatchesRawSource(trigger.On(r.Store.Changed(), trigger.Every(r.Client, &v1alpha1.AgentPolicyList{}))).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up status of AgentPolicies: %w", err)
	}
	return nil
}

// policyOfNamespace requests the policy whose status counts the object. Most namespaces have none, which costs one look
// into the cache.
func policyOfNamespace(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{
		Namespace: object.GetNamespace(), Name: policystore.NamespacePolicyName,
	}}}
}

// Reconcile computes the status of one policy and applies it when it differs.
func (r *Status) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &v1alpha1.AgentPolicy{}
	if err := r.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	snapshot := r.Store.Current()
	if snapshot == nil {
		return reconcile.Result{}, nil // the first snapshot is a change
	}
	in, err := r.gather(ctx, snapshot, object)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !in.observed() {
		return reconcile.Result{}, nil // the snapshot with this generation is a change
	}
	desired := in.desired(metav1.Now())
	if equality.Semantic.DeepEqual(desired, object.Status) {
		return reconcile.Result{}, nil
	}
	configuration, err := status.Configuration[applied.AgentPolicyStatusApplyConfiguration](desired)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	whole := applied.AgentPolicy(object.Name, object.Namespace).WithUID(object.UID).WithStatus(configuration)
	err = r.Client.Status().Apply(ctx, whole, fieldOwner, client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("apply status: %w", err)
	}
	return reconcile.Result{}, nil
}
