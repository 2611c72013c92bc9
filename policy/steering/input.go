package steering

import (
	"time"

	"stepbeyond.dev/stepbeyond/policy"
)

// InputType says what a steering input changes.
type InputType string

const (
	TypeScope    InputType = "Scope"
	TypeSafety   InputType = "Safety"
	TypePriority InputType = "Priority"
	TypePlan     InputType = "Plan"
	// TypeContext informs and changes no authority.
	TypeContext InputType = "Context"
)

// ChangesAuthority tells whether inputs of this type raise the epoch and hold the old plan (requirement R-5). Context
// does neither.
func (t InputType) ChangesAuthority() bool {
	switch t {
	case TypeScope, TypeSafety, TypePriority, TypePlan:
		return true
	default:
		return false
	}
}

// Input is one message of a person to one session. It never changes after it was applied.
type Input struct {
	// ID names the input in holds, records and reconciliations: 1 to 253 printable ASCII bytes without spaces.
	ID   string    `json:"id"`
	Type InputType `json:"type"`
	// Author is the authenticated person: 1 to 253 bytes of one line.
	Author string    `json:"author"`
	Time   time.Time `json:"time"`
	// Message is at most 1024 bytes; screening it for secrets is the caller's duty.
	Message string `json:"message,omitempty"`
	// Constraints of an input of type Context must be empty.
	Constraints Constraints `json:"constraints,omitzero"`
	// Supersedes names older inputs of the same type that need no answer any more; at most 16. An input that this
	// session never had is passed over, because one input may steer many sessions. Nothing is superseded silently.
	Supersedes []string `json:"supersedes,omitempty"`
	// Expiration ends the constraints and the visibility of Context; the zero time means never. It neither answers an
	// input nor ends a suspension.
	Expiration time.Time `json:"expiration,omitzero"`
}

// Constraints only take away; Release of strict scope is the one exception. They are in force from the moment the input
// is applied, whatever the agent answers (requirement R-6), until the input is withdrawn or expires.
type Constraints struct {
	// ForbidCapabilities are taken away from the session.
	ForbidCapabilities []policy.Capability `json:"forbidCapabilities,omitempty"`
	// Forbid refuses every operation that an entry could match. An entry without verbs means every verb but read.
	Forbid []Selector `json:"forbid,omitempty"`
	// NarrowTo refuses every write that no entry certainly matches; empty means no narrowing. Narrowings of several
	// inputs all count.
	NarrowTo    []Selector    `json:"narrowTo,omitempty"`
	StrictScope ScopeDecision `json:"strictScope,omitempty"`
	Budgets     Budgets       `json:"budgets,omitzero"`
	Activity    Activity      `json:"activity,omitempty"`
}

// ScopeDecision is what an input says about strict scope. The zero value says nothing.
type ScopeDecision string

const (
	// ScopeActivate turns strict scope on.
	ScopeActivate ScopeDecision = "Activate"
	// ScopeRelease turns it off; only inputs of type Scope may.
	ScopeRelease ScopeDecision = "Release"
)

// Activity is the kill switch. There is no value that resumes: a suspension ends when its input is withdrawn.
type Activity string

// ActivitySuspend stops every write of the session; only inputs of type Safety may.
const ActivitySuspend Activity = "Suspend"

// Budgets lower what the session may spend in its whole life. nil means not lowered, 0 means nothing more.
type Budgets struct {
	MaxMutations     *int32 `json:"maxMutations,omitempty"`
	MaxChildSessions *int32 `json:"maxChildSessions,omitempty"`
}

// Selector picks operations. Every non-empty field must fit; a selector with no field at all is refused. Kubernetes
// fields fit no tool call and Tools fit no Kubernetes request.
type Selector struct {
	// Groups are API groups; "" is the core group, "*" any.
	Groups []string `json:"groups,omitempty"`
	// Resources are plural; "deployments/scale" is a subresource, "pods/*" any subresource of pods, "*" everything.
	Resources []string `json:"resources,omitempty"`
	// Names match whole, or up to one "*" at the end.
	Names []string `json:"names,omitempty"`
	// Tools match whole, or up to one "*" at the end.
	Tools []string      `json:"tools,omitempty"`
	Verbs []policy.Verb `json:"verbs,omitempty"`
}

// Suspends tells whether the input is a kill switch.
func (in *Input) Suspends() bool { return in.Constraints.Activity == ActivitySuspend }
