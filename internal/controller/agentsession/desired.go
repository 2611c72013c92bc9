package agentsession

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/confinement"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/status"
)

// input is everything that a session's status depends on.
type input struct {
	session  *v1alpha1.AgentSession
	snapshot *policystore.Snapshot
	manager  string
	// asked is when the canary was answered last, zero for never; proven whether everything was refused.
	asked  time.Time
	proven bool
	// lately: nobody was asked since the start, and an earlier leader has proven everything a moment ago.
	lately bool
	// enforced tells whether the scope in force covers the session's identity.
	enforced bool
	// escapes are what RBAC lets the identity do past admission.
	escapes []confinement.Finding
	pods    []v1alpha1.LivePod
	pending int32
	// rival is another live session for the same caller.
	rival     string
	ownerGone bool
	// podFinished: the one Pod that the session was made for has run to its end.
	podFinished bool
	// above is the session's standing with what comes down from its ancestors.
	above identity.Standing
}

// desired is the whole status. What other steps decide (suspension, epoch) is kept; an epoch never falls and an end is
// final, also when the deadline is moved afterwards.
func (in input) desired(now metav1.Time) v1alpha1.AgentSessionStatus {
	before := &in.session.Status
	ids, _ := in.snapshot.Engine.Identity(in.session.Namespace, in.session.Namespace)
	desired := v1alpha1.AgentSessionStatus{
		ObservedGeneration: in.session.Generation,
		CreatedBy:          before.CreatedBy,
		UserSource:         before.UserSource,
		LivePods:           in.pods,
		Policies:           bounded(policystore.References(ids), maxPolicies),
		Epoch:              identity.Epoch(in.session),
		StartTime:          new(in.session.CreationTimestamp),
		EndTime:            before.EndTime,
		PendingGrants:      &in.pending,
	}
	in.opened(&desired)
	ready, reason, message := in.state(&desired, now)
	conditions := status.NewConditions(before.Conditions, in.session.Generation, now)
	conditions.Set(v1alpha1.ConditionReady, ready, reason, message)
	in.guarantee(&desired, conditions)
	if reason == v1alpha1.ReasonDuplicateSession {
		conditions.Set(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, message)
	}
	desired.Conditions = conditions.List()
	return desired
}

// opened says who opened the session and where its user's name came from, once: the annotation that the webhook stamps
// can be edited later.
func (in input) opened(desired *v1alpha1.AgentSessionStatus) {
	if desired.CreatedBy != "" {
		return
	}
	if person := in.session.Annotations[v1alpha1.AnnotationOpenedBy]; person != "" {
		desired.CreatedBy, desired.UserSource = person, v1alpha1.UserSourceExplicit
		return
	}
	desired.CreatedBy, desired.UserSource = in.manager, v1alpha1.UserSourceFixed
	if len(in.above.Ancestors) > 0 {
		desired.UserSource = cmp.Or(in.above.Ancestors[0].Status.UserSource, desired.UserSource)
		return
	}
	template, ok := in.snapshot.Template(in.session.Namespace, in.session.Spec.Identity.ServiceAccountName)
	if ok && template.User.Source != "" {
		desired.UserSource = template.User.Source
	}
}

// state sets state and endTime and returns the condition Ready.
func (in input) state(desired *v1alpha1.AgentSessionStatus, now metav1.Time) (metav1.ConditionStatus, v1alpha1.ConditionReason, string) {
	deadline := in.session.Spec.DeadlineTime
	switch {
	case in.session.Status.State == v1alpha1.SessionEnded:
		desired.State, desired.EndTime = v1alpha1.SessionEnded, orNow(desired.EndTime, now)
		if before := meta.FindStatusCondition(in.session.Status.Conditions, string(v1alpha1.ConditionReady)); before != nil && isEnd(before.Reason) {
			return before.Status, v1alpha1.ConditionReason(before.Reason), before.Message
		}
		return metav1.ConditionFalse, v1alpha1.ReasonEnded, "The session was ended."
	case identity.Ended(in.session, now.Time):
		desired.State, desired.EndTime = v1alpha1.SessionEnded, &deadline
		return metav1.ConditionFalse, v1alpha1.ReasonDeadlinePassed, "The deadline has passed: every governed write is refused."
	case in.ownerGone && !in.heldBack():
		desired.State, desired.EndTime = v1alpha1.SessionEnded, orNow(desired.EndTime, now)
		return metav1.ConditionFalse, v1alpha1.ReasonOwnerGone, "The workload that the session followed no longer exists."
	case in.above.State == v1alpha1.SessionEnded:
		desired.State, desired.EndTime = v1alpha1.SessionEnded, orNow(desired.EndTime, now)
		return metav1.ConditionFalse, v1alpha1.ReasonParentEnded, fmt.Sprintf("Session %s, above this one, has ended or is gone.", in.above.By)
	case in.session.Status.State == v1alpha1.SessionSuspended:
		desired.State = v1alpha1.SessionSuspended
		return metav1.ConditionFalse, v1alpha1.ReasonSuspended, "Writes are held until a person resumes the session."
	}
	return in.active(desired)
}

// heldBack tells that a person suspended the session of a pod that is gone. It stays until it is resumed or its deadline
// passes, because it holds back the next pod of the workload.
func (in input) heldBack() bool {
	return in.session.Status.State == v1alpha1.SessionSuspended && in.session.Labels[v1alpha1.LabelRootOwner] != ""
}

// active is Ready of a session that has not ended and is not suspended itself. The suspension of an ancestor is not
// written into state: state is what a person set on this very session, and resuming the ancestor resumes this one.
func (in input) active(desired *v1alpha1.AgentSessionStatus) (metav1.ConditionStatus, v1alpha1.ConditionReason, string) {
	desired.State = v1alpha1.SessionActive
	settings, _ := in.snapshot.Namespace(in.session.Namespace)
	switch {
	case in.above.State == v1alpha1.SessionSuspended:
		return metav1.ConditionFalse, v1alpha1.ReasonParentSuspended, fmt.Sprintf(
			"Writes are held until a person resumes session %s, above this one.", in.above.By)
	case in.rival != "":
		return metav1.ConditionFalse, v1alpha1.ReasonDuplicateSession, fmt.Sprintf(
			"Session %s covers the same caller, so governed writes are refused: end one of the two.", in.rival)
	case settings.Policy == nil:
		return metav1.ConditionFalse, v1alpha1.ReasonNoPolicy, "No valid policy covers the namespace: every governed write is refused."
	default:
		return metav1.ConditionTrue, v1alpha1.ReasonActive, fmt.Sprintf("The session is served by profile %s.", settings.Profile)
	}
}

// bounded keeps a list within the schema's bound; a status that is refused would say nothing at all.
func bounded[E any](list []E, most int) []E { return list[:min(len(list), most)] }

func isEnd(reason string) bool {
	switch v1alpha1.ConditionReason(reason) {
	case v1alpha1.ReasonEnded, v1alpha1.ReasonDeadlinePassed, v1alpha1.ReasonOwnerGone, v1alpha1.ReasonParentEnded:
		return true
	default:
		return false
	}
}

func orNow(t *metav1.Time, now metav1.Time) *metav1.Time {
	if t == nil {
		return &now
	}
	return t
}
