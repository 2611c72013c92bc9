package steering

import (
	"fmt"
	"slices"
	"time"
)

// Status is the agent's answer to one input, spelled as the specification does.
type Status string

const (
	StatusApplied       Status = "applied"
	StatusNotApplicable Status = "not_applicable"
	// StatusNeedsClarification keeps the hold; the input can be answered again.
	StatusNeedsClarification Status = "needs_clarification"
)

func (s Status) closes() bool { return s == StatusApplied || s == StatusNotApplicable }

// Reconciliation is the structured answer to one input (requirement R-2). All four fields are required. The texts are
// the agent's; they change nothing but the record, and screening them is the caller's duty.
type Reconciliation struct {
	InputID string `json:"inputId,omitempty"`
	Status  Status `json:"status,omitempty"`
	// ChangedConstraints are at most 16 texts of at most 256 bytes. nil means that the field was left out, which is
	// rejected; an empty list says that none changed.
	ChangedConstraints []string `json:"changedConstraints"`
	// RevisedNextAction is 1 to 512 bytes.
	RevisedNextAction string `json:"revisedNextAction,omitempty"`
}

// Validate checks the shape. The error is a [Rejection].
func (r *Reconciliation) Validate() error {
	if err := checkName("inputId", r.InputID); err != nil {
		return err
	}
	switch {
	case r.Status == "":
		return reject("status", ProblemMissing)
	case !slices.Contains([]Status{StatusApplied, StatusNotApplicable, StatusNeedsClarification}, r.Status):
		return reject("status", ProblemInvalid)
	case r.ChangedConstraints == nil:
		return reject("changedConstraints", ProblemMissing)
	case len(r.ChangedConstraints) > maxChanges:
		return reject("changedConstraints", ProblemTooLong)
	}
	for i, change := range r.ChangedConstraints {
		if err := checkLine(fmt.Sprintf("changedConstraints[%d]", i), change, maxChange, true); err != nil {
			return err
		}
	}
	return checkLine("revisedNextAction", r.RevisedNextAction, maxNextAction, true)
}

// Reconciled brings the agent's answer. Inputs are answered in the order in which they arrived; Context and suspensions
// ask for no answer. Whatever the status, the input's constraints stay in force (requirement R-6).
type Reconciled struct {
	Reconciliation Reconciliation
	Time           time.Time
}

func (e Reconciled) at() time.Time { return e.Time }

func (e Reconciled) apply(next *State) error {
	answer := e.Reconciliation
	if err := answer.Validate(); err != nil {
		return err
	}
	i := next.find(answer.InputID)
	if i < 0 {
		return reject("inputId", ProblemUnknown)
	}
	if next.Inputs[i].Suspends() {
		return reject("inputId", ProblemSuspension)
	}
	if !next.Inputs[i].open() {
		return reject("inputId", ProblemNotOpen)
	}
	if first := slices.IndexFunc(next.Inputs, func(other Entry) bool { return other.open() }); first < i {
		return &Rejection{Field: "inputId", Problem: ProblemOutOfOrder, InputID: next.Inputs[first].ID}
	}
	next.Inputs[i].Answer = answer
	next.forget(i)
	return nil
}
