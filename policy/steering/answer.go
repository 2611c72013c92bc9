package steering

import (
	"fmt"
	"slices"

	"stepbeyond.dev/stepbeyond/policy"
)

// Call is an operation and what only the front door knows of it.
type Call struct {
	Operation *policy.Operation
	// Role of the call. Only the catalogue and the front door set it, never what an agent declares (requirement C-4).
	Role Role
	// ActionID is the started action that the call says it belongs to; empty for none.
	ActionID string
	// Mutations that the session has made so far, for budgets.
	Mutations int32
}

// Role tells calls that a hold spares from ordinary ones. The zero value is ordinary.
type Role string

const (
	RoleOrdinary Role = ""
	// RoleVerifier is a verifier of the platform's catalogue.
	RoleVerifier Role = "Verifier"
	// RoleReconciliation is the answer to a steering input itself.
	RoleReconciliation Role = "Reconciliation"
)

// Outcome is what steering has to say about a call.
type Outcome string

const (
	// OutcomeProceed: nothing of steering stands in the way.
	OutcomeProceed Outcome = "Proceed"
	// OutcomeConstrained: a constraint takes the operation away, also after every input is answered.
	OutcomeConstrained Outcome = "Constrained"
	// OutcomeHeld: the operation waits for an answer or for the end of a suspension.
	OutcomeHeld Outcome = "Held"
)

// Spare is why a call goes on under a hold (requirement R-6).
type Spare string

const (
	SpareNone           Spare = ""
	SpareRead           Spare = "Read"
	SpareDryRun         Spare = "DryRun"
	SpareAccessReview   Spare = "AccessReview"
	SpareLeaseRenewal   Spare = "LeaseRenewal"
	SpareVerifier       Spare = "Verifier"
	SpareReconciliation Spare = "Reconciliation"
	// SpareStarted: the call is a member of an atomic action that started before the input arrived.
	SpareStarted Spare = "Started"
)

// Answer is what steering has to say about one call.
type Answer struct {
	Outcome Outcome
	// Input that holds or constrains the call; nil with OutcomeProceed.
	Input *Input
	// Constraint is the path of the violated one inside the input ("constraints.forbid[0]"), with OutcomeConstrained.
	Constraint string
	// Hold is the session's, with OutcomeHeld.
	Hold Hold
	// Spared tells why a hold would not concern the call, whether or not one is in force.
	Spared Spare
}

// Answer tells what to do with a call. A constraint comes before a hold, because waiting does not lift it; the members
// of an action that has started are free of both (requirement R-1).
func (s State) Answer(call Call) Answer {
	spared := s.spare(&call)
	if spared == SpareStarted || spared == SpareReconciliation || len(s.Inputs) == 0 {
		return Answer{Outcome: OutcomeProceed, Spared: spared}
	}
	for i := range s.Inputs {
		entry := &s.Inputs[i]
		if entry.Expired {
			continue
		}
		if path := entry.Constraints.violated(&call, spared); path != "" {
			return Answer{Outcome: OutcomeConstrained, Input: &entry.Input, Constraint: path, Spared: spared}
		}
	}
	if spared != SpareNone {
		return Answer{Outcome: OutcomeProceed, Spared: spared}
	}
	if hold := s.Hold(); hold.State != HoldNone {
		return Answer{Outcome: OutcomeHeld, Input: hold.Input, Hold: hold}
	}
	return Answer{Outcome: OutcomeProceed}
}

func (s State) spare(call *Call) Spare {
	op := call.Operation
	switch {
	case call.Role == RoleReconciliation:
		return SpareReconciliation
	case call.ActionID != "" && s.started(call.ActionID, op.Digest):
		return SpareStarted
	case !op.Verb.Mutating():
		return SpareRead
	case op.DryRun:
		return SpareDryRun
	case accessReview(op):
		return SpareAccessReview
	case leaseRenewal(op):
		return SpareLeaseRenewal
	case call.Role == RoleVerifier:
		return SpareVerifier
	default:
		return SpareNone
	}
}

// started tells whether the operation was fixed as a member when its action began. Naming a running action is not
// enough: the agent chooses the name.
func (s State) started(actionID, digest string) bool {
	i := s.findAction(actionID)
	return i >= 0 && digest != "" && slices.Contains(s.InFlight[i].Members, digest)
}

// violated is the path of the first constraint that takes the call away; empty when none does. What a hold spares
// changes nothing that a narrowing or a budget protects, so only an explicit prohibition concerns it.
func (c *Constraints) violated(call *Call, spared Spare) string {
	op := call.Operation
	if i := slices.Index(c.ForbidCapabilities, op.Capability); i >= 0 {
		return fmt.Sprintf("constraints.forbidCapabilities[%d]", i)
	}
	for i := range c.Forbid {
		if c.Forbid[i].couldMatch(op) {
			return fmt.Sprintf("constraints.forbid[%d]", i)
		}
	}
	if spared != SpareNone {
		return ""
	}
	if len(c.NarrowTo) > 0 && !slices.ContainsFunc(c.NarrowTo, func(s Selector) bool { return s.surelyMatches(op) }) {
		return "constraints.narrowTo"
	}
	if limit := c.Budgets.MaxMutations; limit != nil && call.Mutations >= *limit {
		return "constraints.budgets.maxMutations"
	}
	return ""
}

// Budgets are the lowest of all inputs in force; nil where none lowers it.
func (s State) Budgets() Budgets {
	var lowest Budgets
	for i := range s.Inputs {
		if s.Inputs[i].Expired {
			continue
		}
		b := &s.Inputs[i].Constraints.Budgets
		lowest.MaxMutations = lower(lowest.MaxMutations, b.MaxMutations)
		lowest.MaxChildSessions = lower(lowest.MaxChildSessions, b.MaxChildSessions)
	}
	return lowest
}

func lower(a, b *int32) *int32 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// StrictScope is the newest input in force that says something about strict scope; nil when none does and the session's
// instructions decide alone. An instruction that is newer than a release can turn strict scope on again.
func (s State) StrictScope() *Input {
	for i := len(s.Inputs) - 1; i >= 0; i-- {
		if entry := &s.Inputs[i]; !entry.Expired && entry.Constraints.StrictScope != "" {
			return &entry.Input
		}
	}
	return nil
}
