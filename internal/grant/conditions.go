package grant

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// setConditions writes Decided, Approved and, once a use has begun, Settled. A transition keeps its time until the
// status of the condition changes; a new one has now.
func (s *standing) setConditions(g *v1alpha1.PermissionGrant, conditions *[]metav1.Condition, now time.Time) {
	set := func(kind v1alpha1.ConditionType, holds bool, reason v1alpha1.ConditionReason, message string) {
		status := metav1.ConditionFalse
		if holds {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: string(kind), Status: status, Reason: string(reason), Message: message,
			ObservedGeneration: g.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	end := s.end(g)
	switch {
	case s.last != nil:
		set(v1alpha1.ConditionDecided, true, v1alpha1.ReasonRequirementsMet, s.approved(g))
	case s.state == v1alpha1.GrantPending:
		set(v1alpha1.ConditionDecided, false, s.reason, end)
	default:
		set(v1alpha1.ConditionDecided, true, s.reason, end)
	}
	if s.last != nil && (s.state == v1alpha1.GrantApproved || s.state == v1alpha1.GrantExhausted) {
		set(v1alpha1.ConditionApproved, true, v1alpha1.ReasonRequirementsMet, end)
	} else {
		set(v1alpha1.ConditionApproved, false, s.reason, end)
	}
	if begun := len(g.Status.Uses); begun > 0 {
		message := fmt.Sprintf("%d of %d uses consumed, %d unknown, %d not settled yet.", s.consumed, begun, s.unknown, s.reserved)
		set(v1alpha1.ConditionSettled, s.reserved == 0, s.outcome(), message)
	}
}

// end says in one sentence what a person needs to know about the state.
func (s *standing) end(g *v1alpha1.PermissionGrant) string {
	until := s.deadline.UTC().Format(time.RFC3339)
	switch s.reason {
	case v1alpha1.ReasonAwaitingApproval:
		return fmt.Sprintf("Needs %d approvals, has %d.", s.needed, s.given)
	case v1alpha1.ReasonApproverDenied:
		if reopened(g) {
			return fmt.Sprintf("Denied by %s, reopened by %s: the agent may ask anew.", s.denial.Approver, g.Spec.Reopening.By)
		}
		return "Denied by " + s.denial.Approver + "."
	case v1alpha1.ReasonNotDecidedInTime:
		return fmt.Sprintf("Had %d of %d approvals at %s.", s.given, s.needed, until)
	case v1alpha1.ReasonNotUsedInTime:
		if s.width.wide {
			return fmt.Sprintf("Ended at %s with %d of %d uses left.", until, s.left, s.width.uses)
		}
		return "Was not used until " + until + "."
	case v1alpha1.ReasonApprovalRevoked:
		return "Revoked by " + g.Spec.Revocation.By + "."
	case v1alpha1.ReasonEpochRaised:
		return "The session has another plan now."
	case v1alpha1.ReasonSessionOver:
		return "The session has ended."
	case v1alpha1.ReasonNewerQuestion:
		return "The session asked anew about the same object."
	case v1alpha1.ReasonCoveredByWiderAnswer:
		return "Covered by the wider approval of permissiongrant/" + g.Status.CoveredBy + "."
	case v1alpha1.ReasonClassDropped:
		return "The operation needs no approval any more."
	case v1alpha1.ReasonPolicyChanged:
		return "A policy behind the approval has changed."
	case v1alpha1.ReasonEffectSeen, v1alpha1.ReasonEffectUnknown:
		return "Used at " + lastUse(g).UTC().Format(time.RFC3339) + "."
	}
	if s.reserved > 0 && !s.width.wide {
		return "The use has begun; its effect is not known yet."
	}
	return fmt.Sprintf("Uses left until %s: %d.", until, s.left)
}

// approved names who approved, and how wide where that is not the exact operation.
func (s *standing) approved(g *v1alpha1.PermissionGrant) string {
	by := "Approved by " + names(s.approvals, &g.Spec.Request.Requester)
	if covers := s.width.sentence(g); covers != "" {
		return by + ": " + covers + "."
	}
	return by + "."
}

// names says who approved. An approval by the session's own user, which a policy may allow, and one that a relay carried are
// told apart (requirement G-3).
func names(approvals []*v1alpha1.GrantDecision, requester *v1alpha1.Requester) string {
	list := make([]string, 0, len(approvals))
	for _, d := range approvals {
		name := d.Approver
		if name == requester.OnBehalfOf {
			name += " (for whom the agent works)"
		}
		if d.Relay != "" {
			name += " (carried by " + d.Relay + ")"
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}
