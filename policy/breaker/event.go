package breaker

import "stepbeyond.dev/stepbeyond/policy"

// Part is one component of a call: known text, possibly empty, or unknown. The zero value is unknown.
type Part struct {
	text  string
	known bool
}

// Known is a part whose text is known. Large payloads may be replaced by a digest of their own; the text itself is
// only ever hashed.
func Known(text string) Part { return Part{text: text, known: true} }

// Event is one call that has come to its end.
type Event struct {
	// Action is the tool's name, or verb and resource: a label.
	Action string
	// Inputs are the arguments; a JSON object or array is compared by content, whatever the order of its fields.
	Inputs Part
	// State is a digest of what the call reads or changes, as it was before the call: a file tree, an object's
	// resourceVersion without status noise. Unknown state never supports the label (requirement L-2).
	State Part
	// Source is what asked for the call: the instruction or plan in force.
	Source Part
	// Environment is where it ran: host, image, tool version.
	Environment Part
	// Authority is under which permission: epoch, grant, policy identity.
	Authority Part
	// Result is what the tool answered; volatile fields are removed by [NormaliseResult].
	Result   Part
	Outcome  Outcome
	Recovery Recovery
}

// Outcome is how the call ended.
type Outcome string

const (
	// OutcomeSucceeded and OutcomeFailed are the tool's own answers.
	OutcomeSucceeded Outcome = "Succeeded"
	OutcomeFailed    Outcome = "Failed"
	// The others are states of the runtime. The tool never ran, so they are no part of any signature (requirement B-8).
	OutcomeDenied             = Outcome(policy.VerdictDeny)
	OutcomePending            = Outcome(policy.VerdictPending)
	OutcomeHeld               = Outcome(policy.VerdictHeld)
	OutcomeDeferred           = Outcome("deferred")
	OutcomeRuntimeUnavailable = Outcome("RuntimeUnavailable")
)

// native tells whether the tool itself answered. An outcome that is none of the constants did not come from a tool.
func (o Outcome) native() bool { return o == OutcomeSucceeded || o == OutcomeFailed }

// Recovery tells whether an explicit recovery step can be taken. The zero value is unknown.
type Recovery string

const (
	RecoveryUnknown   Recovery = ""
	RecoveryAvailable Recovery = "Available"
	// RecoveryNone: whoever reports the event looked for a step and found none.
	RecoveryNone Recovery = "None"
)

// Component names a part of a signature.
type Component string

const (
	ComponentAction      Component = "Action"
	ComponentInputs      Component = "Inputs"
	ComponentState       Component = "State"
	ComponentSource      Component = "Source"
	ComponentEnvironment Component = "Environment"
	ComponentAuthority   Component = "Authority"
	ComponentResult      Component = "Result"
)

// components in the order of a Signature.
var components = [...]Component{
	ComponentAction, ComponentInputs, ComponentState, ComponentSource, ComponentEnvironment, ComponentAuthority, ComponentResult,
}
