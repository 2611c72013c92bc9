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
	// EventSessionUserMissing is a Warning: the template takes the user from an annotation that the Pod does not have.
	EventSessionUserMissing = "SessionUserMissing"

	actionOpen = "OpenSession"
)

// capRetry is how long a Pod without a session waits for another session to end.
const capRetry = time.Minute

// errTaken: another object has the session's name, and its identity does not cover the Pod.
var errTaken = errors.New("another AgentSession has the name")

// Birth makes the session of each Pod whose ServiceAccount a session template names.
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
	err := ctrl.NewControllerManagedBy(mgr).
		Named("agentsession-birth").
		For(&corev1.Pod{}, builder.WithPredicates(adopted)).
		WatchesRawSource(trigger.On(r.Store.Changed(), r.candidates)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up birth of AgentSessions: %w", err)
	}
	return nil
}

// candidates are the Pods of governed namespaces that have session templates; a cluster holds many more.
func (r *Birth) candidates(ctx context.Context) ([]reconcile.Request, error) {
	var namespaces corev1.NamespaceList
	if err := r.Client.List(ctx, &namespaces); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	var requests []reconcile.Request
	for i := range namespaces.Items {
		name := namespaces.Items[i].Name
		if settings, _ := r.Store.Current().Namespace(name); len(settings.Templates) == 0 {
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
	if snapshot == nil || !alive(pod) || identity.Released(pod) || pod.Annotations[v1alpha1.AnnotationTemplateWriter] != "" {
		return reconcile.Result{}, nil
	}
	template, ok := snapshot.Template(pod.Namespace, pod.Spec.ServiceAccountName)
	settings, _ := snapshot.Namespace(pod.Namespace)
	if !ok || settings.Policy == nil {
		return reconcile.Result{}, nil
	}
	seen, err := r.look(ctx, pod)
	if err != nil || seen.covered {
		return reconcile.Result{}, err
	}
	if seen.live >= *settings.Policy.Spec.WithProfileDefaults().Caps.MaxSessions {
		r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, EventSessionCapReached, actionOpen,
			"No session: namespace %s has as many live sessions as profile %s allows (caps.maxSessions).", pod.Namespace, settings.Profile)
		return reconcile.Result{RequeueAfter: capRetry}, nil
	}
	session := identity.Derive(template, settings, pod, seen.root, time.Now())
	if session.Spec.UserName == "" {
		r.Recorder.Eventf(pod, nil, corev1.EventTypeWarning, EventSessionUserMissing, actionOpen,
			"No session: template %s takes the user from annotation %s, which the Pod does not have.", template.Name, v1alpha1.AnnotationUser)
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.create(ctx, session)
}

// surroundings is what a Pod is born into.
type surroundings struct {
	root v1alpha1.RootOwner
	// covered: a session covers the Pod already. An ended one does too: its work is over, and no template gives it a
	// fresh start.
	covered bool
	// live sessions of the namespace.
	live int32
}

// look reads the cache, and when no session there covers the Pod the API server itself: the cache may not have the
// Pod's owners yet, and two births in a row must not both see the last place under the cap.
func (r *Birth) look(ctx context.Context, pod *corev1.Pod) (surroundings, error) {
	var seen surroundings
	for _, reader := range []client.Reader{r.Client, r.Live} {
		root, err := identity.RootOwner(ctx, reader, pod)
		if err != nil {
			return seen, err
		}
		var list v1alpha1.AgentSessionList
		if err := reader.List(ctx, &list, client.InNamespace(pod.Namespace)); err != nil {
			return seen, fmt.Errorf("list sessions of namespace %s: %w", pod.Namespace, err)
		}
		seen = surroundings{root: root}
		for i := range list.Items {
			if identity.MatchesPod(&list.Items[i], pod, root) {
				seen.covered = true
				return seen, nil
			}
			if !identity.Ended(&list.Items[i], time.Now()) {
				seen.live++
			}
		}
	}
	return seen, nil
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
