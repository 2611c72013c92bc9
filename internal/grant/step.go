package grant

// Step is a place in the protocol where the process can end, with a different state in etcd before and after it.
type Step string

// Steps in the order of a use.
const (
	// StepAsking is before a question is created, StepAsked after it.
	StepAsking Step = "asking"
	StepAsked  Step = "asked"
	// StepReserving is before an attempt is written into the grant, StepReserved after it, and StepChecked after session
	// and policies were read once more, just before the answer.
	StepReserving Step = "reserving"
	StepReserved  Step = "reserved"
	StepChecked   Step = "checked"
	// StepSettling is before the outcome of a use is written, StepSettled after it.
	StepSettling Step = "settling"
	StepSettled  Step = "settled"
)

// Steps lists all of them.
func Steps() []Step {
	return []Step{StepAsking, StepAsked, StepReserving, StepReserved, StepChecked, StepSettling, StepSettled}
}
