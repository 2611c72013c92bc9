package enforcement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	applied "stepbeyond.dev/stepbeyond/internal/applyconfiguration/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/confinement/roles"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/status"
	"stepbeyond.dev/stepbeyond/internal/trigger"
)

const fieldOwner = client.FieldOwner("stepbeyond-clusteragentpolicy")

// Events on a ClusterAgentPolicy.
const (
	// EventEnforcementLost is a Warning: EnforcementReady is True no more.
	EventEnforcementLost = "EnforcementLost"
	// EventEnforcementProven is Normal: EnforcementReady has become True.
	EventEnforcementProven = "EnforcementProven"

	actionProve = "Prove"
)

// Status writes the status of each ClusterAgentPolicy.
type Status struct {
	Client   client.Client
	Store    *policystore.Store
	State    *State
	Roles    *roles.Roles
	Recorder events.EventRecorder
}

// +kubebuilder:rbac:groups=stepbeyond.dev,resources=clusteragentpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=stepbeyond.dev,resources=clusteragentpolicies/status,verbs=patch
// +kubebuilder:rbac:groups=stepbeyond.dev,resources=agentpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Status) SetupWithManager(mgr ctrl.Manager) error {
	all := trigger.Every(r.Client, &v1alpha1.ClusterAgentPolicyList{})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("clusteragentpolicy-status").
		For(&v1alpha1.ClusterAgentPolicy{}).
		WatchesRawSource(trigger.On(r.Store.Changed(), all)).
		WatchesRawSource(trigger.On(r.State.Changed(), all)).
		WatchesRawSource(trigger.On(r.Roles.Changed(), all)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up status of ClusterAgentPolicies: %w", err)
	}
	return nil
}

// Reconcile computes the status of one policy and applies it when it differs.
func (r *Status) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &v1alpha1.ClusterAgentPolicy{}
	if err := r.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	snapshot, report := r.Store.Current(), r.Roles.Current()
	if snapshot == nil || report == nil {
		return reconcile.Result{}, nil // the first of each is a change
	}
	in, err := r.input(ctx, snapshot, object)
	if err != nil {
		return reconcile.Result{}, err
	}
	in.escapes = escapes(snapshot, report, in.namespaces, object.Spec.Governed.Users)
	if !in.observed() {
		return reconcile.Result{}, nil // the snapshot with this generation is a change
	}
	if wait := in.untilStale(time.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil // the first proof is a change
	}
	desired, current := in.desired(metav1.Now()), object.Status
	current.Onboarding = nil // every replica's, under another field owner
	if !equality.Semantic.DeepEqual(desired, current) {
		if err := r.apply(ctx, object, desired); err != nil {
			return reconcile.Result{}, err
		}
		r.tell(object, desired)
	}
	// The time of the last proof moves without a change that anybody is told of.
	return reconcile.Result{RequeueAfter: proveEvery}, nil
}

func (r *Status) input(ctx context.Context, snapshot *policystore.Snapshot, object *v1alpha1.ClusterAgentPolicy) (input, error) {
	in := input{object: object, snapshot: snapshot, observation: r.State.Current(), inForce: inForce(snapshot, object)}
	if in.inForce != object.Generation {
		in.problems = problemsOf(snapshot, object)
	}
	selector, err := metav1.LabelSelectorAsSelector(&object.Spec.Governed.NamespaceSelector)
	if err != nil || selector.Empty() {
		return in, nil // a problem of the object, which governs no namespace
	}
	var namespaces corev1.NamespaceList
	if err := r.Client.List(ctx, &namespaces, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return in, fmt.Errorf("list governed namespaces: %w", err)
	}
	for i := range namespaces.Items {
		if name := namespaces.Items[i].Name; snapshot.Governs(name) {
			in.namespaces = append(in.namespaces, name)
		}
	}
	slices.Sort(in.namespaces)
	for _, binding := range object.Spec.Profiles {
		key := client.ObjectKey{Namespace: admission.SystemNamespace, Name: binding.AgentPolicyName}
		switch err := r.Client.Get(ctx, key, &v1alpha1.AgentPolicy{}); {
		case apierrors.IsNotFound(err):
			in.unbound = append(in.unbound, binding)
		case err != nil:
			return in, fmt.Errorf("read profile %s: %w", binding.Name, err)
		}
	}
	return in, nil
}

func (r *Status) apply(ctx context.Context, object *v1alpha1.ClusterAgentPolicy, desired v1alpha1.ClusterAgentPolicyStatus) error {
	configuration, err := status.Configuration[applied.ClusterAgentPolicyStatusApplyConfiguration](desired)
	if err != nil {
		return reconcile.TerminalError(err)
	}
	whole := applied.ClusterAgentPolicy(object.Name).WithUID(object.UID).WithStatus(configuration)
	if err := r.Client.Status().Apply(ctx, whole, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply status: %w", client.IgnoreNotFound(err))
	}
	return nil
}

// tell records an event when EnforcementReady becomes True, and when it becomes False after it was last known True. It
// is Unknown only before the first proof of a leader, or when the last proof of an earlier one is too old.
func (r *Status) tell(object *v1alpha1.ClusterAgentPolicy, desired v1alpha1.ClusterAgentPolicyStatus) {
	before := meta.FindStatusCondition(object.Status.Conditions, string(v1alpha1.ConditionEnforcementReady))
	now := meta.FindStatusCondition(desired.Conditions, string(v1alpha1.ConditionEnforcementReady))
	known := before != nil && before.Status == metav1.ConditionTrue
	lapsed := before != nil && before.Status == metav1.ConditionUnknown && object.Status.Enforcement != nil &&
		object.Status.Enforcement.LastProvenTime != nil
	switch {
	case !known && now.Status == metav1.ConditionTrue:
		r.Recorder.Eventf(object, nil, corev1.EventTypeNormal, EventEnforcementProven, actionProve, "%s", now.Message)
	case (known || lapsed) && now.Status == metav1.ConditionFalse:
		r.Recorder.Eventf(object, nil, corev1.EventTypeWarning, EventEnforcementLost, actionProve, "%s", note(now.Message))
	}
}

// note cuts to the bound of an event's note, 1,024 bytes.
func note(message string) string {
	const most = 1024
	if len(message) > most {
		message = strings.ToValidUTF8(message[:most], "")
	}
	return message
}
