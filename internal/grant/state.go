package grant

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// standing is where a grant stands at one moment.
type standing struct {
	answers
	// width of the approval, of an open question the exact one.
	width  width
	state  v1alpha1.GrantState
	reason v1alpha1.ConditionReason
	// deadline of the answers, and once they approve, of the use.
	deadline time.Time
	// left are the uses that have not begun or are proven to have had no effect.
	left int32
	// reserved, consumed and unknown count the uses by outcome.
	reserved, consumed, unknown int
}

// standingOf derives everything from the request, the answers and the uses. Of the stored state only an end counts that
// cannot be derived, or that a clock which steps back would undo; an end is for good.
func standingOf(g *v1alpha1.PermissionGrant, now time.Time) standing {
	s := standing{answers: weigh(g), width: exactWidth(&g.Spec.Request), deadline: g.Spec.Request.DecideByTime.Time}
	if s.last != nil {
		s.width = widthOf(&g.Spec.Request, s.approvals)
		s.deadline = s.last.DecidedTime.Add(s.width.within)
	}
	s.countUses(g)
	late := !now.Before(s.deadline)
	switch stored := g.Status.State; {
	case stored == v1alpha1.GrantSuperseded, stored == v1alpha1.GrantStale, stored == v1alpha1.GrantExpired:
		s.state, s.reason = stored, g.Status.Reason
	case s.denial != nil:
		s.state, s.reason = v1alpha1.GrantDenied, v1alpha1.ReasonApproverDenied
	case g.Spec.Revocation != nil:
		s.state, s.reason = v1alpha1.GrantRevoked, v1alpha1.ReasonApprovalRevoked
	case s.last == nil && late:
		s.state, s.reason = v1alpha1.GrantExpired, v1alpha1.ReasonNotDecidedInTime
	case s.last == nil:
		s.state, s.reason = v1alpha1.GrantPending, v1alpha1.ReasonAwaitingApproval
	case s.reserved > 0:
		s.state, s.reason = v1alpha1.GrantApproved, v1alpha1.ReasonRequirementsMet
	case s.left == 0:
		s.state, s.reason = v1alpha1.GrantExhausted, s.outcome()
	case late:
		s.state, s.reason = v1alpha1.GrantExpired, v1alpha1.ReasonNotUsedInTime
	default:
		s.state, s.reason = v1alpha1.GrantApproved, v1alpha1.ReasonRequirementsMet
	}
	return s
}

// countUses counts a use that has begun as gone unless it is proven that it had no effect (requirement G-5).
func (s *standing) countUses(g *v1alpha1.PermissionGrant) {
	s.left = s.width.uses
	for i := range g.Status.Uses {
		switch g.Status.Uses[i].Outcome {
		case v1alpha1.UseReleased:
			continue
		case v1alpha1.UseReserved:
			s.reserved++
		case v1alpha1.UseConsumed:
			s.consumed++
		default:
			s.unknown++
		}
		s.left--
	}
	s.left = max(0, s.left)
}

// outcome of the uses that have begun: the least certain one.
func (s *standing) outcome() v1alpha1.ConditionReason {
	switch {
	case s.reserved > 0:
		return v1alpha1.ReasonUseReserved
	case s.unknown > 0:
		return v1alpha1.ReasonEffectUnknown
	case s.consumed > 0:
		return v1alpha1.ReasonEffectSeen
	default:
		return v1alpha1.ReasonEffectAbsent
	}
}

// open tells whether the grant can still become, or is, of use.
func (s *standing) open() bool {
	return s.state == v1alpha1.GrantPending || s.state == v1alpha1.GrantApproved
}

// Compute is the status that a grant should have at a moment. It is derived from the request, the decisions, the
// revocation and the uses alone; of the stored state only an end counts that cannot be derived from them (Superseded,
// Stale, with its reason) or that only the clock gave (Expired). Who closes a grant as Superseded or Stale sets state
// and reason and computes again. Expiry never approves (requirement G-6) and never overwrites a use: while one is
// Reserved, an approved grant stays Approved without a use left.
//
// The uses and boundPolicies are kept as they are, the latter only while the answers approve.
func Compute(g *v1alpha1.PermissionGrant, now time.Time) v1alpha1.PermissionGrantStatus {
	s := standingOf(g, now)
	status := *g.Status.DeepCopy()
	status.ObservedGeneration = g.Generation
	status.State, status.Reason = s.state, s.reason
	status.Target = displayTarget(&g.Spec.Request.Operation, &s.width)
	status.Approvals = fmt.Sprintf("%d/%d", s.given, s.needed)
	status.ApproveCommand, status.ExpirationTime, status.Expires, status.UsesLeft = "", nil, "", nil
	if s.state == v1alpha1.GrantPending {
		status.ApproveCommand = approveCommand(g)
	}
	if s.open() {
		status.ExpirationTime = &metav1.Time{Time: s.deadline}
		status.Expires = s.deadline.UTC().Format("01-02 15:04Z")
	}
	if s.last == nil {
		status.BoundPolicyIdentity, status.BoundPolicies = "", nil
	} else {
		status.BoundPolicyIdentity = s.last.PolicyIdentity
		left := s.left
		if !s.open() {
			left = 0 // what is closed allows nothing, used or not
		}
		status.UsesLeft = &left
	}
	s.setConditions(g, &status.Conditions, now)
	return status
}

// ToEngine is what the engine compares an operation with. It is computed from the live object, never read from its
// stored state alone.
func ToEngine(g *v1alpha1.PermissionGrant, now time.Time) policy.Grant {
	s := standingOf(g, now)
	request := &g.Spec.Request
	view := policy.Grant{
		Name: g.Name, State: policy.GrantState(s.state), Digest: request.Digest, Stage: policy.Stage(request.Stage),
		Requester: request.Requester.Username, SessionUID: string(request.Session.UID), Epoch: request.Session.Epoch,
		Expiration: s.deadline, Approvals: int(s.given), Required: int(s.needed),
	}
	if s.last != nil {
		view.PolicyIdentity = s.last.PolicyIdentity
	}
	if s.state == v1alpha1.GrantApproved {
		view.UsesLeft, view.Width = int(s.left), s.width.toEngine(g)
	}
	switch {
	case s.state == v1alpha1.GrantDenied:
		view.Closed, view.ClosedBy, view.ClosedWhy = s.denial.DecidedTime.Time, s.denial.Approver, s.denial.Reason
		view.Reopened = reopened(g)
	case s.reason == v1alpha1.ReasonCoveredByWiderAnswer:
		view.CoveredBy = g.Status.CoveredBy
	case s.state == v1alpha1.GrantRevoked && g.Spec.Revocation.Time != nil:
		view.Closed = g.Spec.Revocation.Time.Time
	case s.state == v1alpha1.GrantExhausted, s.reserved > 0:
		view.Closed = lastUse(g)
	}
	return view
}

// lastUse is when the newest use was settled, or began when it is not settled yet.
func lastUse(g *v1alpha1.PermissionGrant) time.Time {
	var last time.Time
	for i := range g.Status.Uses {
		use := &g.Status.Uses[i]
		at := use.ReservedTime.Time
		if use.SettledTime != nil {
			at = use.SettledTime.Time
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}

// reopened tells whether a person has ended the rest of a denial, by admission's own stamp.
func reopened(g *v1alpha1.PermissionGrant) bool {
	return g.Spec.Reopening != nil && g.Spec.Reopening.By != "" && g.Spec.Reopening.Time != nil
}

// displayTarget names the operation, of a wide approval with its pattern and the number of its uses.
func displayTarget(operation *v1alpha1.GrantOperation, w *width) string {
	t := &operation.Target
	target := policy.Target{
		Group: t.Group, Version: t.Version, Resource: t.Resource, Subresource: t.Subresource, Namespace: t.Namespace, Name: t.Name,
	}
	if w.name != "" {
		target.Name = w.name
	}
	text := kube.DisplayTarget(policy.Verb(operation.Verb), target)
	if w.wide {
		text += fmt.Sprintf(" (%d uses)", w.uses)
	}
	return text
}

// approveCommand approves exactly this question. A digest holds no quote, so it needs no escaping in the shell.
func approveCommand(g *v1alpha1.PermissionGrant) string {
	return fmt.Sprintf(`kubectl -n %s patch permissiongrant %s --type=json -p '[{"op":"add","path":"/spec/decisions/-","value":{"verdict":"Approve","shownDigest":"%s"}}]'`,
		g.Namespace, g.Name, g.Spec.Request.Digest)
}
