package agentsession

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/trigger"
)

// Events on a Pod.
const (
	// EventSessionCapReached is a Warning: the namespace has as many live sessions as its profile allows.
	EventSessionCapReached = "SessionCapReached"
	// EventChildSessionCapReached is a Warning: the session whose agent wrote the Pod, or one above it, has as many
	// children as it may.
	EventChildSessionCapReached = "ChildSessionCapReached"
	// EventSessionHeldBack is a Warning: a person stopped the session of an earlier Pod of the same workload.
	EventSessionHeldBack = "SessionHeldBack"
	// EventSessionUserMissing is a Warning: the template takes the user from an annotation that the Pod does not have.
	EventSessionUserMissing = "SessionUserMissing"

	actionOpen = "OpenSession"
)

// capRetry is how long a Pod without a session waits for another session to end or to go.
const capRetry = time.Minute

// errTaken: another object has the session's name, and its identity does not cover the Pod.
var errTaken = errors.New("another AgentSession has the name")

// Birth makes the session of each Pod whose ServiceAccount a session template names, and the child session of each Pod
// that an agent wrote.
type Birth struct {
	Client client.Client
	// Live reads past the cache: a Pod is often seen before the workload that made it.
	Live     client.Reader
	Store    *policystore.Store
	Recorder events.EventRecorder
}

// +kubebuilder:rbac:groups="",resources=pods;namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=stepbeyond.dev,resources=agentsessions,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Birth) SetupWithManager(mgr ctrl.Manager) error {
	// Nothing else of a Pod that exists changes whose session it gets.
	adopted := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return controllerUID(e.ObjectOld) != controllerUID(e.ObjectNew)
	}}
	created := predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("agentsession-birth").
		For(&corev1.Pod{}, builder.WithPredicates(adopted)).
		// A Pod that an agent wrote waits for the agent's session.
		Watches(&v1alpha1.AgentSession{}, handler.EnqueueRequestsFromMapFunc(r.writtenBy), builder.WithPredicates(created)).
		WatchesRawSource(trigger.On(r.Store.Changed(), r.candidates)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up birth of AgentSessions: %w", err)
	}
	return nil
}

// candidates are the Pods of governed namespaces; a cluster holds many more.
func (r *Birth) candidates(ctx context.Context) ([]reconcile.Request, error) {
	var namespaces corev1.NamespaceList
	if err := r.Client.List(ctx, &namespaces); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	var requests []reconcile.Request
	for i := range namespaces.Items {
		name := namespaces.Items[i].Name
		if settings, _ := r.Store.Current().Namespace(name); settings.Policy == nil {
			continue
		}
		var pods corev1.PodList
		if err := r.Client.List(ctx, &pods, client.InNamespace(name)); err != nil {
			return requests, fmt.Errorf("list pods of namespace %s: %w", name, err)
		}
		for j := range pods.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pods.Items[j])})
		}
	}
	return requests, nil
}

// writtenBy are the Pods that the session's agent wrote.
func (r *Birth) writtenBy(ctx context.Context, session client.Object) []reconcile.Request {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.InNamespace(session.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Pods that the agent of a new session wrote get theirs with the next change of the policies only")
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		if pods.Items[i].Annotations[v1alpha1.AnnotationTemplateWriter] == session.GetNamespace()+"/"+session.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pods.Items[i])})
		}
	}
	return requests
}

func controllerUID(object client.Object) types.UID {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return owner.UID
	}
	return ""
}

// Reconcile makes the session of one Pod, exactly as the webhook derives it until then.
func (r *Birth) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := r.Client.Get(ctx, request.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	snapshot := r.Store.Current()
	if snapshot == nil || !alive(pod) {
		return reconcile.Result{}, nil
	}
	opening := identity.Opening{Pod: pod, Snapshot: snapshot, Now: time.Now()}
	if !opening.Eligible() {
		return reconcile.Result{}, nil
	}
	open, err := r.look(ctx, &opening)
	if err != nil || !open {
		return reconcile.Result{}, err
	}
	session, refusal := opening.Session()
	if refusal != nil {
		return r.refused(pod, refusal)
	}
	return reconcile.Result{}, r.create(ctx, session)
}

// refused says on the Pod what a person can change, and looks again where time may change it.
func (r *Birth) refused(pod *corev1.Pod, refusal *identity.Refusal) (reconcile.Result, error) {
	tell := func(reason string) {
		r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, reason, actionOpen, "No session: %s.", refusal.Text)
	}
	switch refusal.Cause {
	case identity.CauseSessionCap:
		tell(EventSessionCapReached)
	case identity.CauseChildCap:
		tell(EventChildSessionCapReached)
	case identity.CausePredecessor:
		tell(EventSessionHeldBack)
	case identity.CauseUserMissing:
		tell(EventSessionUserMissing)
		return reconcile.Result{}, nil
	case identity.CauseNameTaken:
		return reconcile.Result{}, fmt.Errorf("session of pod %s/%s: %w", pod.Namespace, pod.Name, errTaken)
	default:
		return reconcile.Result{}, nil // what it waits for is a change
	}
	return reconcile.Result{RequeueAfter: capRetry}, nil
}

// look fills in root and sessions from the cache, and when no session there covers the Pod from the API server itself: the
// cache may not have the Pod's owners yet, and two births in a row must not both see the last place under a cap. A
// session that has ended covers the Pod too: its work is over, and no template gives it a fresh start. A Pod that was
// taken out of its workload opens none.
func (r *Birth) look(ctx context.Context, o *identity.Opening) (open bool, err error) {
	for _, reader := range []client.Reader{r.Client, r.Live} {
		var released bool
		if o.Root, released, err = identity.RootOwner(ctx, reader, o.Pod); err != nil {
			return false, err
		}
		var list v1alpha1.AgentSessionList
		if err := reader.List(ctx, &list, client.InNamespace(o.Pod.Namespace)); err != nil {
			return false, fmt.Errorf("list sessions of namespace %s: %w", o.Pod.Namespace, err)
		}
		o.Sessions, open = list.Items, !released
		for i := range list.Items {
			if identity.MatchesPod(&list.Items[i], o.Pod, o.Root) {
				return false, nil
			}
		}
	}
	return open, nil
}

func (r *Birth) create(ctx context.Context, session *v1alpha1.AgentSession) error {
	err := r.Client.Create(ctx, session)
	switch {
	case apierrors.IsAlreadyExists(err):
		err = fmt.Errorf("create session %s/%s: %w", session.Namespace, session.Name, errTaken)
	case apierrors.IsInvalid(err):
		err = reconcile.TerminalError(fmt.Errorf("create session %s/%s: %w", session.Namespace, session.Name, err))
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		err = nil
	case err != nil:
		err = fmt.Errorf("create session %s/%s: %w", session.Namespace, session.Name, err)
	}
	return err
}

// alive is false for a Pod that is going or has run to its end: it acts no more.
func alive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}
