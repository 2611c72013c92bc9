package tier

import (
	"errors"
	"fmt"
)

// Tier of the model behind a session.
type Tier string

const (
	Small  Tier = "small"
	Medium Tier = "medium"
	Large  Tier = "large"
)

// validate names a tier that is none.
func (t Tier) validate() error {
	switch t {
	case Small, Medium, Large:
		return nil
	default:
		return fmt.Errorf("tier: %q is none of %s, %s and %s", t, Small, Medium, Large)
	}
}

// Guidance is the scaffolding that goes with a decision. All of it may be ignored by its reader.
type Guidance struct {
	Tier Tier
	// Context lists what a context frame holds, in its order (requirement T-2).
	Context    []Section
	Advice     Advice
	Repair     Repair
	Delegation Delegation
	// Experiment names the isolated evaluation arm that the session belongs to; empty for none (requirement T-7).
	Experiment string
}

// Section is one part of a context frame.
type Section string

const (
	// SectionPhaseFrame is a compact frame of the current phase.
	SectionPhaseFrame Section = "PhaseFrame"
	// SectionNextEvidence is the evidence to look at next, named explicitly.
	SectionNextEvidence Section = "NextEvidence"
	// SectionCurrentEvidence is all current evidence.
	SectionCurrentEvidence Section = "CurrentEvidence"
	// SectionOrientation is a short orientation.
	SectionOrientation Section = "Orientation"
	// SectionLongHorizonPlan is the plan beyond the current step, as the model made it.
	SectionLongHorizonPlan Section = "LongHorizonPlan"
	// SectionAlternatives are the alternatives that were kept open.
	SectionAlternatives Section = "Alternatives"
)

// Signals are the observations that guidance depends on. The zero value observes nothing.
type Signals struct {
	// Repetition is set when the same action gave the same result before; nil otherwise.
	Repetition *Repetition
	// RealFailure tells that a tool ran and failed. What the runtime answers itself (denied, pending, held, deferred) is no
	// failure of a tool (requirement B-8).
	RealFailure bool
	// DelegationAskedBy tells who asked for a delegation; empty for nobody.
	DelegationAskedBy Asker
	// Experiment is the evaluation arm that the session was declared for; empty for none.
	Experiment string
}

// Repetition is what is known about an action that was seen before.
type Repetition struct {
	// CachedResult references the result; its content stays with the host. Empty when the host keeps none.
	CachedResult string
}

// Asker may ask for a delegation (requirement T-6).
type Asker string

const (
	AskedByNobody     Asker = ""
	AskedByUser       Asker = "User"
	AskedByModel      Asker = "Model"
	AskedByParentPlan Asker = "ParentPlan"
)

// Channel is where advice goes.
type Channel string

const (
	// ChannelNone: there is nothing to say.
	ChannelNone Channel = ""
	// ChannelReminder: a short line beside the result.
	ChannelReminder Channel = "Reminder"
	// ChannelTelemetry: recorded, not said.
	ChannelTelemetry Channel = "Telemetry"
)

// Advice after a repetition (requirement T-4). It stands beside the result and has no way to keep a call from running.
type Advice struct {
	Channel Channel
	// Text of a reminder, one sentence.
	Text string
	// CachedResult to be shown with a reminder, by reference; empty for none.
	CachedResult string
}

// Repair after a real failure (requirement T-5).
type Repair string

const (
	RepairNone Repair = ""
	// RepairNextExperiment: offer one next experiment.
	RepairNextExperiment Repair = "NextExperiment"
	// RepairDiagnostics: show the diagnostics and let the model choose.
	RepairDiagnostics Repair = "Diagnostics"
)

// Delegation says what to do about workers (requirement T-6).
type Delegation string

const (
	DelegationNone Delegation = ""
	// DelegationTemplates: offer simple templates.
	DelegationTemplates Delegation = "Templates"
	// DelegationOnRequest: the user, the model or the parent plan asked for it; whether it may be launched is the engine's
	// decision.
	DelegationOnRequest Delegation = "OnRequest"
)

// maxExperiment bounds the name of an evaluation arm, in bytes.
const maxExperiment = 63

// reminder is all that a small model is told about a repetition.
const reminder = "This call gave the same result before."

// Intervention is one kind of thing that the runtime may do about a call. They are in the order of requirement B-3: what
// informs comes before what stops.
type Intervention string

const (
	// InterventionEvidence: evidence is delivered.
	InterventionEvidence Intervention = "DeliverEvidence"
	// InterventionAdvice: a reminder or a repair is offered beside it.
	InterventionAdvice Intervention = "Advise"
	// InterventionRun: the tool runs.
	InterventionRun Intervention = "Run"
	// InterventionDelegation: a worker is offered.
	InterventionDelegation Intervention = "OfferDelegation"
	// InterventionEnforcement: a boundary is enforced.
	InterventionEnforcement Intervention = "Enforce"
)

// Interventions lists what is done about one call, first to last (requirement B-3). prevented tells that a boundary of the
// engine's decision keeps the call from running; nothing in the guidance can, so enforcement is there exactly then, and
// last.
func (g *Guidance) Interventions(prevented bool) []Intervention {
	done := []Intervention{InterventionEvidence}
	if g.Advice.Channel == ChannelReminder || g.Repair != RepairNone {
		done = append(done, InterventionAdvice)
	}
	if !prevented {
		done = append(done, InterventionRun)
	}
	if g.Delegation != DelegationNone {
		done = append(done, InterventionDelegation)
	}
	if prevented {
		done = append(done, InterventionEnforcement)
	}
	return done
}

// For gives the guidance of a tier. The error names the field that is outside of its vocabulary, or the experiment where
// none may be.
func For(t Tier, s Signals) (Guidance, error) {
	if err := t.validate(); err != nil {
		return Guidance{}, err
	}
	switch s.DelegationAskedBy {
	case AskedByNobody, AskedByUser, AskedByModel, AskedByParentPlan:
	default:
		return Guidance{}, fmt.Errorf("delegationAskedBy: %q is none of %s, %s and %s", s.DelegationAskedBy, AskedByUser, AskedByModel, AskedByParentPlan)
	}
	if err := CheckExperiment(t, s.Experiment); err != nil {
		return Guidance{}, err
	}
	return Guidance{
		Tier: t, Context: contextOf(t), Advice: adviceOf(t, s.Repetition), Repair: repairOf(t, s.RealFailure),
		Delegation: delegationOf(t, s.DelegationAskedBy), Experiment: s.Experiment,
	}, nil
}

// CheckExperiment refuses an evaluation arm on anything but a session of the small tier (requirement T-7). The empty name
// is none and always right; a name has at most 63 bytes.
func CheckExperiment(t Tier, experiment string) error {
	switch {
	case experiment == "":
		return nil
	case t != Small:
		return fmt.Errorf("experiment: only a session of tier %s may belong to one, this one has tier %s", Small, t)
	case len(experiment) > maxExperiment:
		return errors.New("experiment: is longer than 63 bytes")
	default:
		return nil
	}
}

func contextOf(t Tier) []Section {
	switch t {
	case Small:
		return []Section{SectionPhaseFrame, SectionNextEvidence}
	case Medium:
		return []Section{SectionCurrentEvidence, SectionOrientation}
	default:
		return []Section{SectionCurrentEvidence, SectionLongHorizonPlan, SectionAlternatives}
	}
}

func adviceOf(t Tier, r *Repetition) Advice {
	switch {
	case r == nil:
		return Advice{}
	case t == Small:
		return Advice{Channel: ChannelReminder, Text: reminder, CachedResult: r.CachedResult}
	default:
		return Advice{Channel: ChannelTelemetry}
	}
}

func repairOf(t Tier, failed bool) Repair {
	switch {
	case !failed:
		return RepairNone
	case t == Small:
		return RepairNextExperiment
	default:
		return RepairDiagnostics
	}
}

// delegationOf: what somebody asked for counts on every tier; unasked, only a small model is offered templates.
func delegationOf(t Tier, by Asker) Delegation {
	switch {
	case by != AskedByNobody:
		return DelegationOnRequest
	case t == Small:
		return DelegationTemplates
	default:
		return DelegationNone
	}
}
