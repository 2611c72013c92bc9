package identity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

// Indexes over cached AgentSessions.
const (
	// IndexServiceAccount is the ServiceAccount's name; sessions of one namespace are looked up by it.
	IndexServiceAccount = "spec.identity.serviceAccountName"
	// IndexUser is the username of sessions of type User.
	IndexUser = "spec.identity.userName"
)

// IndexSessions registers the indexes that Resolver needs.
func IndexSessions(ctx context.Context, indexer client.FieldIndexer) error {
	for field, value := range map[string]func(*v1alpha1.AgentSession) string{
		IndexServiceAccount: func(s *v1alpha1.AgentSession) string { return s.Spec.Identity.ServiceAccountName },
		IndexUser:           func(s *v1alpha1.AgentSession) string { return s.Spec.Identity.UserName },
	} {
		err := indexer.IndexField(ctx, &v1alpha1.AgentSession{}, field, func(object client.Object) []string {
			if v := value(object.(*v1alpha1.AgentSession)); v != "" {
				return []string{v}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("index agent sessions by %s: %w", field, err)
		}
	}
	return nil
}

// Resolved is the session of a caller, or why there is none (View.State and its reason).
type Resolved struct {
	View policy.SessionView
	// Session is the object, or the one derived from a template while it does not exist (UID empty); nil without one.
	Session *v1alpha1.AgentSession
	// Pod that the caller's token is bound to; nil for a user.
	Pod *corev1.Pod
}

// Key names the session in stamps: namespace/name; empty without a session.
func (r *Resolved) Key() string {
	if r.Session == nil {
		return ""
	}
	return key(r.Session.Namespace, r.Session.Name)
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=stepbeyond.dev,resources=agentsessions,verbs=get;list;watch

// Resolver finds the session of a governed caller.
type Resolver struct {
	// Cached reads sessions (with the indexes of IndexSessions), pods and owners' metadata.
	Cached client.Reader
	// Live reads pods that the cache does not have yet.
	Live client.Reader
}

// Resolve finds the one session that covers the caller. A caller without exactly one gets a view whose state says why; an
// error means that it cannot be known, and the caller must be refused.
func (r *Resolver) Resolve(ctx context.Context, caller Caller, snapshot *policystore.Snapshot, now time.Time) (Resolved, error) {
	if !caller.HasCredential() {
		return missing(caller, "", policy.ReasonCredentialUnbound, ""), nil
	}
	namespace, account, ok := caller.ServiceAccount()
	if !ok {
		return r.resolveUser(ctx, caller, snapshot, now)
	}
	podName, podUID := caller.Pod()
	if podName == "" {
		return missing(caller, namespace, policy.ReasonNoSession, "the token is not bound to a pod"), nil
	}
	pod, err := r.pod(ctx, namespace, podName, types.UID(podUID))
	if err != nil {
		return Resolved{}, err
	}
	switch {
	case pod == nil:
		return missing(caller, namespace, policy.ReasonNoSession, "the pod of the token no longer exists"), nil
	case pod.Spec.ServiceAccountName != account:
		return missing(caller, namespace, policy.ReasonNoSession, "the pod of the token runs under another ServiceAccount"), nil
	}
	root, released, err := RootOwner(ctx, cachedThenLive{r.Cached, r.Live}, pod)
	switch {
	case err != nil:
		return Resolved{}, err
	case released:
		return missing(caller, namespace, policy.ReasonNoSession, "the pod was taken out of its workload, and such pods have no session of their own"), nil
	}
	resolved, err := r.resolvePod(ctx, caller, snapshot, pod, root, now)
	resolved.Pod = pod
	return resolved, err
}

func (r *Resolver) resolvePod(ctx context.Context, caller Caller, snapshot *policystore.Snapshot, pod *corev1.Pod, root v1alpha1.RootOwner, now time.Time) (Resolved, error) {
	var list v1alpha1.AgentSessionList
	err := r.Cached.List(ctx, &list, client.InNamespace(pod.Namespace), client.MatchingFields{IndexServiceAccount: pod.Spec.ServiceAccountName}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return Resolved{}, fmt.Errorf("list sessions of ServiceAccount %s/%s: %w", pod.Namespace, pod.Spec.ServiceAccountName, err)
	}
	var matching []*v1alpha1.AgentSession
	for i := range list.Items {
		if MatchesPod(&list.Items[i], pod, root) {
			matching = append(matching, &list.Items[i])
		}
	}
	// A cache lists in no order, and an answer names its sessions.
	slices.SortFunc(matching, func(a, b *v1alpha1.AgentSession) int { return strings.Compare(a.Name, b.Name) })
	if len(matching) > 0 {
		return r.choose(ctx, caller, pod.Namespace, matching, now)
	}
	var all v1alpha1.AgentSessionList
	if err := r.Cached.List(ctx, &all, client.InNamespace(pod.Namespace)); err != nil {
		return Resolved{}, fmt.Errorf("list sessions of namespace %s: %w", pod.Namespace, err)
	}
	opening := Opening{Pod: pod, Root: root, Snapshot: snapshot, Sessions: all.Items, Now: now}
	derived, refusal := opening.Session()
	switch {
	case refusal == nil:
		standing, err := StandingOf(derived, among(all.Items), now)
		return active(caller, derived, standing), err
	case refusal.Cause == CauseWriterEnded || refusal.Cause == CausePredecessor:
		return over(caller, pod.Namespace, refusal.Text), nil
	default:
		return missing(caller, pod.Namespace, policy.ReasonNoSession, refusal.Text), nil
	}
}

func (r *Resolver) resolveUser(ctx context.Context, caller Caller, snapshot *policystore.Snapshot, now time.Time) (Resolved, error) {
	namespace, ok := snapshot.GovernedUser(caller.Username)
	if !ok {
		return missing(caller, "", policy.ReasonNoSession, "no cluster policy lists this user"), nil
	}
	var list v1alpha1.AgentSessionList
	err := r.Cached.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{IndexUser: caller.Username}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return Resolved{}, fmt.Errorf("list sessions of user in %s: %w", namespace, err)
	}
	var matching []*v1alpha1.AgentSession
	for i := range list.Items {
		if list.Items[i].Spec.Identity.Type == v1alpha1.IdentityUser {
			matching = append(matching, &list.Items[i])
		}
	}
	if len(matching) == 0 {
		return missing(caller, namespace, policy.ReasonNoSession, "no session of type User names this user"), nil
	}
	return r.choose(ctx, caller, namespace, matching, now)
}

// choose takes a copy of the one session that has not ended. Several could be meant: none is taken. All ended: the
// caller's work is over, and no template gives it a fresh start. The sessions may be the cache's own, because one
// ServiceAccount can have very many and every write looks through them.
func (r *Resolver) choose(ctx context.Context, caller Caller, namespace string, matching []*v1alpha1.AgentSession, now time.Time) (Resolved, error) {
	var live *v1alpha1.AgentSession
	var standing, last Standing
	for _, session := range matching {
		found, err := StandingOf(session, Through(ctx, r.Cached, namespace), now)
		if err != nil {
			return Resolved{}, err
		}
		if last = found; found.State == v1alpha1.SessionEnded {
			continue
		}
		if live != nil {
			resolved := missing(caller, namespace, policy.ReasonSessionAmbiguous, fmt.Sprintf("sessions %s and %s both cover this caller", live.Name, session.Name))
			resolved.View.State = policy.SessionAmbiguous
			return resolved, nil
		}
		live, standing = session, found
	}
	if live != nil {
		return active(caller, live.DeepCopy(), standing), nil
	}
	text := fmt.Sprintf("session %s has ended", last.By)
	if ended := matching[len(matching)-1]; last.By != ended.Name {
		text += fmt.Sprintf(", and session %s with it", ended.Name)
	}
	return over(caller, namespace, text), nil
}

func active(caller Caller, session *v1alpha1.AgentSession, standing Standing) Resolved {
	view := policy.SessionView{
		State: policy.SessionActive, Namespace: session.Namespace, Name: session.Name, UID: string(session.UID),
		Epoch: Epoch(session), Username: caller.Username, Deadline: standing.Deadline,
		Authority: policystore.AuthorityOf(&session.Spec.Authority, session.Namespace),
	}
	if standing.State == v1alpha1.SessionSuspended {
		view.State, view.StateReason = policy.SessionSuspended, policy.ReasonSuspended
		if standing.By != session.Name {
			view.StateDetail = fmt.Sprintf("session %s, above this one, is suspended", standing.By)
		}
	}
	return Resolved{View: view, Session: session}
}

// over is the answer to a caller whose session has ended.
func over(caller Caller, namespace, detail string) Resolved {
	resolved := missing(caller, namespace, policy.ReasonSessionEnded, detail)
	resolved.View.State = policy.SessionEnded
	return resolved
}

func missing(caller Caller, namespace string, reason policy.Reason, detail string) Resolved {
	return Resolved{View: policy.SessionView{
		State: policy.SessionMissing, StateReason: reason, StateDetail: detail, Namespace: namespace, Username: caller.Username,
	}}
}

// cachedThenLive reads what the cache does not have yet from the API server: a pod is often seen before its owner.
type cachedThenLive struct {
	client.Reader
	live client.Reader
}

// Get implements client.Reader.
func (r cachedThenLive) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := r.Reader.Get(ctx, key, object, options...); !apierrors.IsNotFound(err) {
		return err
	}
	return r.live.Get(ctx, key, object, options...)
}

// pod reads the pod of a token: from the cache, or live when the cache does not have it yet. nil means that it is gone or
// that another pod has its name.
func (r *Resolver) pod(ctx context.Context, namespace, name string, uid types.UID) (*corev1.Pod, error) {
	for _, reader := range []client.Reader{r.Cached, r.Live} {
		pod := &corev1.Pod{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod)
		if err == nil && pod.UID == uid {
			return pod, nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read pod %s/%s: %w", namespace, name, err)
		}
	}
	return nil, nil
}

// Followed tells whether the session of another agent than by follows an object that is about to change: the object, or
// what controls it, is that session's workload, or it is one of its pods. A child of by is no other.
func (r *Resolver) Followed(ctx context.Context, by *v1alpha1.AgentSession, object metav1.Object, now time.Time) (bool, error) {
	var list v1alpha1.AgentSessionList
	if err := r.Cached.List(ctx, &list, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list sessions of namespace %s: %w", object.GetNamespace(), err)
	}
	workloads := []types.UID{object.GetUID()}
	if owner := metav1.GetControllerOf(object); owner != nil {
		workloads = append(workloads, owner.UID)
	}
	for i := range list.Items {
		s := &list.Items[i]
		related := s.Namespace == by.Namespace && s.Name == by.Name || s.Spec.Parent != nil && s.Spec.Parent.UID == by.UID
		if related || Ended(s, now) {
			continue
		}
		id := &s.Spec.Identity
		isPod := func(pod v1alpha1.LivePod) bool { return pod.UID == object.GetUID() }
		if id.RootOwner != nil && slices.Contains(workloads, id.RootOwner.UID) || id.PodUID != "" && id.PodUID == object.GetUID() || slices.ContainsFunc(s.Status.LivePods, isPod) {
			return true, nil
		}
	}
	return false, nil
}
