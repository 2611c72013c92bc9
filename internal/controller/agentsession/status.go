package agentsession

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	applied "stepbeyond.dev/stepbeyond/internal/applyconfiguration/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/confinement/roles"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/status"
	"stepbeyond.dev/stepbeyond/internal/trigger"
)

// resync bounds how long a status can miss what no watch reports, such as an owner that went after its last Pod.
const resync = 5 * time.Minute

// Status keeps the status of each session.
type Status struct {
	Client client.Client
	// Live reads owners that are not cached.
	Live  client.Reader
	Store *policystore.Store
	Proof Proof
	// Roles tells what RBAC allows past admission.
	Roles *roles.Roles
	// Manager is the manager's own username, which opens the sessions of templates.
	Manager string
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=stepbeyond.dev,resources=agentsessions,verbs=get;list;watch
// +kubebuilder:rbac:groups=stepbeyond.dev,resources=agentsessions/status,verbs=patch
// +kubebuilder:rbac:groups=stepbeyond.dev,resources=permissiongrants;clusteragentpolicies,verbs=get;list;watch

// SetupWithManager registers the controller. The manager's cache needs the indexes of identity.IndexSessions.
func (r *Status) SetupWithManager(mgr ctrl.Manager) error {
	all := trigger.Every(r.Client, &v1alpha1.AgentSessionList{})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("agentsession-status").
		For(&v1alpha1.AgentSession{}).
		Watches(&v1alpha1.AgentSession{}, handler.EnqueueRequestsFromMapFunc(r.childrenOf)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.sessionsOfPod)).
		Watches(&v1alpha1.PermissionGrant{}, handler.EnqueueRequestsFromMapFunc(sessionOfGrant)).
		WatchesRawSource(trigger.On(r.Store.Changed(), all)).
		WatchesRawSource(trigger.On(r.Proof.Changed(), all)).
		WatchesRawSource(trigger.On(r.Roles.Changed(), all)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up status of AgentSessions: %w", err)
	}
	return nil
}

// Reconcile computes the status of one session and applies it when it differs.
func (r *Status) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	session := &v1alpha1.AgentSession{}
	if err := r.Client.Get(ctx, request.NamespacedName, session); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	snapshot := r.Store.Current()
	if snapshot == nil || r.Roles.Current() == nil {
		return reconcile.Result{}, nil // the first of each is a change
	}
	in, err := r.gather(ctx, snapshot, session)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := metav1.Now().Rfc3339Copy()
	desired := in.desired(now)
	if !equality.Semantic.DeepEqual(desired, session.Status) {
		if err := r.apply(ctx, session, desired); err != nil {
			return reconcile.Result{}, err
		}
	}
	if desired.State == v1alpha1.SessionEnded {
		return reconcile.Result{RequeueAfter: resync}, nil
	}
	return reconcile.Result{RequeueAfter: min(resync, max(time.Second, session.Spec.DeadlineTime.Sub(now.Time)))}, nil
}

// apply writes on the version that was read: a suspension or an epoch that came since must not be overwritten.
func (r *Status) apply(ctx context.Context, session *v1alpha1.AgentSession, desired v1alpha1.AgentSessionStatus) error {
	configuration, err := status.Configuration[applied.AgentSessionStatusApplyConfiguration](desired)
	if err != nil {
		return reconcile.TerminalError(err)
	}
	whole := applied.AgentSession(session.Name, session.Namespace).
		WithUID(session.UID).WithResourceVersion(session.ResourceVersion).WithStatus(configuration)
	err = r.Client.Status().Apply(ctx, whole, fieldOwner, client.ForceOwnership)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("apply status: %w", err)
	}
	return nil
}

// sessionsOfPod requests every session that could cover the Pod; which of them does needs its owners.
func (r *Status) sessionsOfPod(ctx context.Context, object client.Object) []reconcile.Request {
	var list v1alpha1.AgentSessionList
	account := client.MatchingFields{identity.IndexServiceAccount: object.(*corev1.Pod).Spec.ServiceAccountName}
	if err := r.Client.List(ctx, &list, client.InNamespace(object.GetNamespace()), account, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "A change of a Pod reaches its session with the next resync only")
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// childrenOf requests what hangs on a session; their own change requests theirs.
func (r *Status) childrenOf(ctx context.Context, object client.Object) []reconcile.Request {
	var list v1alpha1.AgentSessionList
	if err := r.Client.List(ctx, &list, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "A change of a session reaches its children with the next resync only")
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if parent := list.Items[i].Spec.Parent; parent != nil && parent.UID == object.GetUID() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

func sessionOfGrant(_ context.Context, object client.Object) []reconcile.Request {
	asked := object.(*v1alpha1.PermissionGrant).Spec.Request.Session
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: asked.Namespace, Name: asked.Name}}}
}
