package grant

import (
	"slices"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// answers is what the people's decisions come to, before uses, time and revocation.
type answers struct {
	// denial closed the question; nil when none did.
	denial *v1alpha1.GrantDecision
	// approvals count, in order; after the one that met the last requirement none does.
	approvals []*v1alpha1.GrantDecision
	// last met the last requirement; nil while one is not met.
	last *v1alpha1.GrantDecision
	// given and needed approvals of the requirement that is furthest from being met.
	given, needed int32
}

// weigh reads the decisions in order until one closes the question: a denial at once, or the approval that meets the
// last requirement. What comes later is void, because a decided grant cannot be decided again (requirement G-4).
func weigh(g *v1alpha1.PermissionGrant) answers {
	var a answers
	a.given, a.needed = furthest(g.Spec.Request.Requirements, nil)
	for i := range g.Spec.Decisions {
		d := &g.Spec.Decisions[i]
		switch {
		case !counts(g, d):
		case d.Verdict == v1alpha1.VerdictDeny:
			a.denial = d
			return a
		case d.Verdict == v1alpha1.VerdictApprove:
			a.approvals = append(a.approvals, d)
			if a.given, a.needed = furthest(g.Spec.Request.Requirements, a.approvals); a.given >= a.needed {
				a.last = d
				return a
			}
		}
	}
	return a
}

// counts tells whether a decision was stamped for this very grant and question, by somebody else than the requester, and
// in time. Anything else is void, whatever let it in (requirements G-3, G-4, G-6).
func counts(g *v1alpha1.PermissionGrant, d *v1alpha1.GrantDecision) bool {
	request := &g.Spec.Request
	return g.UID != "" && d.GrantUID == g.UID &&
		d.ShownDigest == request.Digest &&
		d.Approver != "" && d.Approver != request.Requester.Username &&
		d.DecidedTime != nil && d.DecidedTime.Time.Before(request.DecideByTime.Time)
}

// furthest gives the requirement that lacks most, or of equal ones the one that needs most. A question without
// requirements needs one person.
func furthest(requirements []v1alpha1.GrantRequirement, approvals []*v1alpha1.GrantDecision) (given, needed int32) {
	if len(requirements) == 0 {
		requirements = []v1alpha1.GrantRequirement{{Required: 1}}
	}
	for i := range requirements {
		r := &requirements[i]
		need := max(1, r.Required)
		have := min(need, people(r, approvals))
		if lack := need - have; needed == 0 || lack > needed-given || lack == needed-given && need > needed {
			given, needed = have, need
		}
	}
	return given, needed
}

// people counts the approvers that a requirement accepts, each once.
func people(r *v1alpha1.GrantRequirement, approvals []*v1alpha1.GrantDecision) int32 {
	var accepted []*v1alpha1.GrantDecision
	for _, d := range approvals {
		member := func(group string) bool { return slices.Contains(r.ApproverGroups, group) }
		if len(r.ApproverGroups) > 0 && !slices.ContainsFunc(d.ApproverGroups, member) {
			continue
		}
		if !slices.ContainsFunc(accepted, func(other *v1alpha1.GrantDecision) bool { return samePerson(d, other) }) {
			accepted = append(accepted, d)
		}
	}
	return int32(len(accepted))
}

// samePerson compares usernames, and the authenticators' uids where both have one: one person under two names is one.
func samePerson(a, b *v1alpha1.GrantDecision) bool {
	return a.Approver == b.Approver || a.ApproverUID != "" && a.ApproverUID == b.ApproverUID
}
