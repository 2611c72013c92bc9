package policy

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

var errDecisionCost = errors.New("the rules of one decision cost too much")

// Decide answers one operation. It is total: every input has an answer, and what it does not know it does not allow.
// Grants are an input; whether an allowed use really happens once is the front door's protocol.
func (e *Engine) Decide(op Operation, session SessionView, now time.Time) (d Decision) {
	layers := e.layers(session.Namespace, op.Target.Namespace)
	c := &classification{class: ClassAuto}
	c.classify(subject{op: &op, session: &session}, layers)
	d.Class, d.Stage, d.Details, d.WouldBe = c.class, op.Stage, c.details, c.wouldBe
	q := &question{op: &op, session: &session, class: c, layers: layers, now: now, engine: e, decision: &d}
	q.ask()
	d.Boundary = d.Reason.Boundary()
	return d
}

// question is what the guards look at and the decision they write.
type question struct {
	op       *Operation
	session  *SessionView
	class    *classification
	layers   []*compiled
	engine   *Engine
	now      time.Time
	decision *Decision
}

// ask runs the guards in this order; the first that answers ends it (design section 4). They are called one by one,
// not through a list of functions: so the compiler sees that nothing outlives the decision and keeps it off the heap.
func (q *question) ask() bool {
	return guardSession(q) || guardNamespace(q) || guardForbidden(q) || guardStrictScope(q) || guardSteering(q) ||
		guardDryRun(q) || guardAsk(q) || allow(q)
}

func (q *question) answer(verdict Verdict, reason Reason) bool {
	q.decision.Verdict, q.decision.Reason = verdict, reason
	return true
}

// guardSession answers callers whose session may not act.
func guardSession(q *question) bool {
	s := q.session
	q.decision.Standing = s.StateDetail
	switch s.State {
	case SessionActive, SessionSuspended:
	case SessionAmbiguous:
		return q.answer(VerdictDeny, ReasonSessionAmbiguous)
	case SessionEnded:
		return q.answer(VerdictDeny, ReasonSessionEnded)
	default:
		if s.StateReason != "" {
			return q.answer(VerdictDeny, s.StateReason)
		}
		return q.answer(VerdictDeny, ReasonNoSession)
	}
	if !s.Deadline.IsZero() && !q.now.Before(s.Deadline) {
		q.decision.Standing = "its deadline was " + s.Deadline.UTC().Format(time.RFC3339)
		return q.answer(VerdictDeny, ReasonSessionEnded)
	}
	q.decision.Standing = ""
	return false
}

// guardNamespace refuses a session whose own namespace has no valid profile: its rules are unknown.
func guardNamespace(q *question) bool {
	if q.engine.Governs(q.session.Namespace) {
		return false
	}
	return q.answer(VerdictDeny, ReasonPolicyMissing)
}

// guardForbidden answers FORBIDDEN before any grant is looked at (requirement C-6).
func guardForbidden(q *question) bool {
	if q.class.class != ClassForbidden {
		return false
	}
	if first := q.first(); first.Fact == OutsideAuthority.String() {
		return q.answer(VerdictDeny, ReasonOutsideAuthority)
	}
	q.decision.Recovery = q.first().Recovery
	return q.answer(VerdictDeny, ReasonForbidden)
}

// guardStrictScope leaves out what the requested result does not need. Work that it needs and honest reporting of checks
// are not optional (requirement S-2).
func guardStrictScope(q *question) bool {
	if !q.session.StrictScope || !q.op.Optional {
		return false
	}
	return q.answer(VerdictDeny, ReasonStrictScope)
}

// guardSteering answers what a person changed meanwhile: a constraint first, because no reconciliation lifts it, then a
// suspension, then a hold. Reads, dry runs and spared operations go on under a hold (requirement R-6).
func guardSteering(q *question) bool {
	s := q.session
	if s.Constraint != nil {
		q.decision.Standing = fmt.Sprintf("the person's steeringinput/%s takes it away (%s)", s.Constraint.Name, s.Constraint.Path)
		return q.answer(VerdictDeny, ReasonSteeringConstraint)
	}
	if !q.op.Verb.Mutating() || q.op.DryRun || q.op.Spared {
		return false
	}
	if s.State == SessionSuspended {
		q.decision.Standing = s.StateDetail
		return q.answer(VerdictHeld, ReasonSuspended)
	}
	if s.Hold == nil {
		return false
	}
	q.decision.Standing = fmt.Sprintf("the plan was changed by %s at %s (steeringinput/%s); the command is fine", s.Hold.Author, stamp(s.Hold.Since), s.Hold.Name)
	q.decision.Recovery = fmt.Sprintf("read it with %q and reconcile it; then go on by the new plan",
		fmt.Sprintf("kubectl -n %s get steeringinput %s -o yaml", s.Hold.Namespace, s.Hold.Name))
	return q.answer(VerdictHeld, ReasonSteeringHold)
}

// guardDryRun lets the dry run of an ASK pass with a warning: it changes nothing. Dry runs that touch credentials could
// print them and are asked like the real thing.
func guardDryRun(q *question) bool {
	if q.class.class != ClassAsk || !q.op.DryRun || q.op.Facts[Credentials].Presence != Absent {
		return false
	}
	q.decision.Disclosures = append(q.decision.Disclosures, "dry run only: the real request needs a person's approval")
	return q.answer(VerdictAllow, ReasonDryRun)
}

func guardAsk(q *question) bool {
	if q.class.class != ClassAsk {
		return false
	}
	// Only a grant is bound to policies, so only a question pays for their digest.
	q.decision.Policies, q.decision.PolicyIdentity = q.engine.identity(q.session.Namespace, q.op.Target.Namespace)
	q.decision.Approvals = joinApprovals(q.layers, q.op, q.class)
	if q.session.UID == "" {
		return q.answer(VerdictDeny, ReasonSessionPending)
	}
	return answerGrant(q)
}

// allow is the last guard: AUTO, or AUTO_WITH_DISCLOSURE. A missing disclosure text never denies (requirement B-6), so
// the engine writes it.
func allow(q *question) bool {
	if q.class.class == ClassAutoWithDisclosure {
		q.decision.Disclosures = append(q.decision.Disclosures, disclosure(q.op, q.decision.Details))
		return q.answer(VerdictAllow, ReasonDisclosed)
	}
	return q.answer(VerdictAllow, ReasonAllowed)
}

func (q *question) first() Detail {
	if len(q.decision.Details) == 0 {
		return Detail{}
	}
	return q.decision.Details[0]
}

// joinApprovals joins the settings of all layers to the strictest and keeps the requirements that match.
func joinApprovals(layers []*compiled, op *Operation, c *classification) Approvals {
	var joined Approvals
	for _, layer := range layers {
		a := &layer.approvals
		joined.DecideWithinSeconds = stricter(joined.DecideWithinSeconds, a.DecideWithinSeconds, false)
		joined.UseWithinSeconds = stricter(joined.UseWithinSeconds, a.UseWithinSeconds, false)
		joined.AskAgainAfterSeconds = stricter(joined.AskAgainAfterSeconds, a.AskAgainAfterSeconds, true)
		joined.MaxPendingPerSession = lower(joined.MaxPendingPerSession, a.MaxPendingPerSession)
		joined.MaxPendingPerNamespace = lower(joined.MaxPendingPerNamespace, a.MaxPendingPerNamespace)
		for _, requirement := range a.Requirements {
			if requirement.matches(op, c) {
				requirement.Name = layer.prefix + "/" + requirement.Name
				joined.Requirements = append(joined.Requirements, requirement)
			}
		}
	}
	if len(joined.Requirements) == 0 {
		// A policy that forgets its requirements has not thereby opened the gate.
		joined.Requirements = onePerson
	}
	return joined
}

// onePerson is shared by all decisions.
var onePerson = []Requirement{{Name: "baseline/one-person", Required: 1}}

// lower joins two caps of which nil means not set.
func lower(a, b *int32) *int32 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// stricter joins two bounds of which 0 means not set.
func stricter(a, b int32, larger bool) int32 {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	case larger:
		return max(a, b)
	default:
		return min(a, b)
	}
}

func (r *Requirement) matches(op *Operation, c *classification) bool {
	if len(r.Resources) > 0 && !matchesResource(r.Resources, &op.Target) {
		return false
	}
	if len(r.Facts) == 0 && len(r.Rules) == 0 {
		return true
	}
	for _, fact := range r.Facts {
		// What is not known counts as its worst value here too (requirement C-4).
		if p := op.Facts[fact].Presence; p == Unknown || harmful(fact, p) {
			return true
		}
	}
	return slices.ContainsFunc(c.details, func(d Detail) bool { return d.Rule != "" && slices.Contains(r.Rules, d.Rule) })
}
