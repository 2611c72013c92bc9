package permissiongrant

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/screen"
)

// Events on a PermissionGrant. That an agent asked is none: an agent that keeps changing its question would fill etcd with
// them, and the grant itself says so.
const (
	// EventGrantExpiring is Normal: the question or the approval ends soon; see condition Expiring.
	EventGrantExpiring = "GrantExpiring"
	// EventGrantApproved is Normal: the last requirement is met.
	EventGrantApproved = "GrantApproved"
	// EventGrantDenied is Normal: a person refused.
	EventGrantDenied = "GrantDenied"
	// EventGrantExpired is Warning: nobody answered in time, or too few did.
	EventGrantExpired = "GrantExpired"
)

// maxNote of who and what in an event, in characters.
const maxNote = 240

// tellOfWrite records what only the reconciler's own write makes so, which is why it happens once.
func tellOfWrite(recorder events.EventRecorder, before *v1alpha1.PermissionGrant, written *v1alpha1.PermissionGrantStatus) {
	was := meta.FindStatusCondition(before.Status.Conditions, string(v1alpha1.ConditionExpiring))
	is := meta.FindStatusCondition(written.Conditions, string(v1alpha1.ConditionExpiring))
	if is != nil && (was == nil || was.Reason != is.Reason) {
		recorder.Eventf(before, nil, corev1.EventTypeNormal, EventGrantExpiring, "Warn", "%s %s",
			screen.Line(before.Spec.Request.Operation.Summary, maxNote), is.Message)
	}
}

// history is what this process has told and counted of each grant. Admission writes a grant too, so the reconciler may never
// see a grant between two states: it compares what stands there with what it has told, and not two versions. What happened
// before the process led was an earlier leader's to tell. The zero value is ready.
type history struct {
	mu    sync.Mutex
	since time.Time
	known map[types.NamespacedName]known
}

type known struct {
	uid       types.UID
	decided   bool
	decisions int
}

func (h *history) forget(name types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, name)
}

// observe tells and counts what is new about a grant.
func (h *history) observe(g *v1alpha1.PermissionGrant, now time.Time, recorder events.EventRecorder, metrics *Metrics) {
	name := types.NamespacedName{Namespace: g.Namespace, Name: g.Name}
	h.mu.Lock()
	if h.known == nil {
		h.known, h.since = map[types.NamespacedName]known{}, now.Truncate(time.Second)
	}
	before := h.known[name]
	if before.uid != g.UID {
		before = known{uid: g.UID}
	}
	decided := meta.FindStatusCondition(g.Status.Conditions, string(v1alpha1.ConditionDecided))
	is := known{uid: g.UID, decided: decided != nil && decided.Status == metav1.ConditionTrue, decisions: len(g.Spec.Decisions)}
	h.known[name] = is
	since := h.since
	h.mu.Unlock()

	for i := before.decisions; i < is.decisions; i++ {
		if d := &g.Spec.Decisions[i]; d.DecidedTime != nil && !d.DecidedTime.Time.Before(since) {
			metrics.decision(d)
		}
	}
	if is.decided && !before.decided && !decided.LastTransitionTime.Time.Before(since) {
		tellOfEnd(recorder, g, decided)
		metrics.answer(g, v1alpha1.ConditionReason(decided.Reason))
	}
}

// tellOfEnd records how a question ended, if people have to do with it.
func tellOfEnd(recorder events.EventRecorder, g *v1alpha1.PermissionGrant, decided *metav1.Condition) {
	reason, kind := "", corev1.EventTypeNormal
	switch v1alpha1.ConditionReason(decided.Reason) {
	case v1alpha1.ReasonRequirementsMet:
		reason = EventGrantApproved
	case v1alpha1.ReasonApproverDenied:
		reason = EventGrantDenied
	case v1alpha1.ReasonNotDecidedInTime:
		reason, kind = EventGrantExpired, corev1.EventTypeWarning
	default:
		return
	}
	recorder.Eventf(g, nil, kind, reason, "Decide", "%s: %s", screen.Line(g.Spec.Request.Operation.Summary, maxNote), screen.Line(decided.Message, maxNote))
}
