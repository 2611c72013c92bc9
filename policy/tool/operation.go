package tool

import (
	"slices"

	"stepbeyond.dev/stepbeyond/policy"
)

// Call is a tool call as the agent's host sees it.
type Call struct {
	// Name of the tool, with its server where the host knows one, as in "mcp:kubernetes/pods_list".
	Name string
	// Description that the tool's server gives; empty when not known.
	Description string
	// Arguments as decoded JSON.
	Arguments map[string]any
	Declared  Declared
}

// Declared is what the agent or its adapter says about the call. It only raises (requirement C-4).
type Declared struct {
	// Stage of the call; empty when nothing is declared. A lower one than the derived counts for nothing.
	Stage   policy.Stage
	Present []policy.Fact
	Absent  []policy.Fact
}

// Known is what the front door knows about the call from elsewhere.
type Known struct {
	// Context tells that the call reads what the session itself holds, such as its plan: capability read_context
	// instead of read_project.
	Context bool
	// Optional marks work that the requested result does not need.
	Optional bool
	// Target as a catalogue of the platform resolved it; the zero value when nobody did.
	Target policy.Target
}

// stages in their order; a declared stage counts when it is later.
var stages = []policy.Stage{policy.StageUnderstand, policy.StagePropose, policy.StageExecute, policy.StagePublish}

// Operation translates a call for the engine. A pure read has verb read and stage understand; everything else is at least
// execute, and publish when it sends or reaches outside.
func Operation(call Call, known Known) policy.Operation {
	told := dispatched(call)
	r := &reading{name: words(ownName(told.Name)), description: firstSentence(told.Description)}
	r.arguments(told.Arguments)
	op := policy.Operation{Tool: call.Name, Target: known.Target, Optional: known.Optional}
	if op.Target.Origin == "" {
		op.Target.Origin = policy.OriginUnknown
	}
	if r.reads() || r.readsUnlessSet(told) {
		op.Capability, op.Stage, op.Verb, op.ReadBy = policy.CapabilityReadProject, policy.StageUnderstand, policy.VerbRead, policy.Parsed
		if known.Context {
			op.Capability = policy.CapabilityReadContext
		}
		r.factsOfRead(&op.Facts)
	} else {
		op.Capability, op.Stage, op.Verb = policy.CapabilityExecuteLocal, policy.StageExecute, r.verb()
		r.factsOfChange(&op.Facts)
		if op.Facts[policy.Sends].Presence == policy.Present || op.Facts[policy.External].Presence == policy.Present {
			op.Capability, op.Stage = policy.CapabilityPublishExternal, policy.StagePublish
		}
	}
	if slices.Index(stages, call.Declared.Stage) > slices.Index(stages, op.Stage) {
		op.Stage = call.Declared.Stage
	}
	declare(&op.Facts, call.Declared.Present, policy.Present)
	declare(&op.Facts, call.Declared.Absent, policy.Absent)
	return op
}

func declare(facts *policy.Facts, declared []policy.Fact, presence policy.Presence) {
	for _, fact := range declared {
		facts.Add(fact, policy.FactValue{Presence: presence, Provenance: policy.Declared, Why: "declared by the agent or its adapter"})
	}
}

// verb of a call that is no pure read.
func (r *reading) verb() policy.Verb {
	switch {
	case r.has(losing):
		return policy.VerbDelete
	case r.has(making):
		return policy.VerbCreate
	case r.has(running):
		return policy.VerbConnect
	default:
		return policy.VerbUpdate
	}
}

func present(facts *policy.Facts, fact policy.Fact, why string) {
	facts.Add(fact, policy.FactValue{Presence: policy.Present, Provenance: policy.Parsed, Why: why})
}

// factsOfRead finds the harms of a pure read.
func (r *reading) factsOfRead(facts *policy.Facts) {
	if r.namesSecrets() || r.secretField || r.secretValue || r.secretTarget {
		present(facts, policy.Credentials, "it reads or carries credentials")
	}
	if r.addressWithData {
		present(facts, policy.Sends, "an address among its arguments carries data")
	}
}

// factsOfChange finds the harms of everything else.
func (r *reading) factsOfChange(facts *policy.Facts) {
	for _, harm := range []struct {
		found bool
		fact  policy.Fact
		why   string
	}{
		{r.has(losing) || r.losingStatement, policy.Destructive, "its words say that something is lost"},
		{r.has(sending) || r.recipient, policy.Sends, "its words or arguments say that somebody receives something"},
		{r.has(publishing) || r.address, policy.External, "its words or arguments reach outside"},
		{r.has(paying) || r.amount, policy.Cost, "its words or arguments speak of money"},
		{r.has(opening), policy.Security, "its words speak of access"},
		{r.namesSecrets() || r.secretField || r.secretValue || r.secretTarget, policy.Credentials, "its words or arguments hold credentials"},
		{r.has(many) || r.everything, policy.Unbounded, "its words or arguments name no bounded targets"},
	} {
		if harm.found {
			present(facts, harm.fact, harm.why)
		}
	}
	if r.secretValue && (facts[policy.Sends].Presence == policy.Present || facts[policy.External].Presence == policy.Present) {
		present(facts, policy.ExfiltratesSecret, "a secret among its arguments leaves its place")
	}
}
