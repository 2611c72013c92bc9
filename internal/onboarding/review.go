package onboarding

import (
	"slices"

	"stepbeyond.dev/stepbeyond/policy"
)

// Outcome is what would have come of a review under a profile whose floor is enforced.
type Outcome string

// Outcomes.
const (
	WouldAllow  Outcome = "WouldAllow"
	WouldAsk    Outcome = "WouldAsk"
	WouldRefuse Outcome = "WouldRefuse"
	// Undecided: deciding failed. It would have been a refusal, but says nothing about what was asked.
	Undecided Outcome = "Undecided"
)

// Account is a ServiceAccount of a namespace that is only audited.
type Account struct{ Namespace, Name string }

// Review is what a report keeps of one decision: nothing of the object that it was about.
type Review struct {
	Account Account
	Class   policy.Class
	Outcome Outcome
	// Finding is the zero value when the outcome is WouldAllow.
	Finding Finding
}

// Finding is one kind of request that would not have been allowed.
type Finding struct{ Operation, Reason, Because, Rule string }

// ReviewOf keeps what a report needs of a decision that asked no grants.
func ReviewOf(account Account, op *policy.Operation, d *policy.Decision) Review {
	r := Review{Account: account, Class: d.Class, Outcome: outcomeOf(d)}
	if r.Outcome == WouldAllow {
		return r
	}
	r.Finding = Finding{Operation: operation(op), Reason: string(d.Reason)}
	if becauseOfClass(r.Outcome, d.Reason) && len(d.Details) > 0 {
		r.Finding.Because, r.Finding.Rule = d.Details[0].Code, d.Details[0].Rule
	}
	return r
}

func outcomeOf(d *policy.Decision) Outcome {
	switch {
	case d.Verdict == policy.VerdictAllow:
		return WouldAllow
	case d.Reason == policy.ReasonUndecided, d.Reason == policy.ReasonPolicyNotLoaded:
		return Undecided
	// A session that is being made is asked about a moment later.
	case d.Verdict == policy.VerdictPending, d.Reason == policy.ReasonSessionPending:
		return WouldAsk
	default:
		return WouldRefuse
	}
}

// becauseOfClass is false for answers that are the same whatever the class, as without a session.
func becauseOfClass(o Outcome, reason policy.Reason) bool {
	return o == WouldAsk || slices.Contains([]policy.Reason{policy.ReasonForbidden, policy.ReasonOutsideAuthority, policy.ReasonUnnamed}, reason)
}

// operation is the verb and the resource, as in "update deployments.apps/scale".
func operation(op *policy.Operation) string {
	text := string(op.Verb) + " " + op.Target.Resource
	if op.Target.Group != "" {
		text += "." + op.Target.Group
	}
	if op.Target.Subresource != "" {
		text += "/" + op.Target.Subresource
	}
	return text
}
