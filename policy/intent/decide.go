package intent

import (
	"cmp"
	"fmt"
	"slices"

	"stepbeyond.dev/stepbeyond/policy"
)

// Band is how sure the agent is, in the words of the decision rules.
type Band string

const (
	BandLow    Band = "Low"
	BandMedium Band = "Medium"
	BandHigh   Band = "High"
)

// Thresholds say where Medium and High begin; below MediumPercent is Low. They come from the policy.
type Thresholds struct {
	// MediumPercent is between 1 and 99.
	MediumPercent int32
	// HighPercent is between 2 and 100, more than MediumPercent.
	HighPercent int32
}

// Validate names the field that is out of its bounds; the error is a Problem.
func (t Thresholds) Validate() error {
	switch {
	case t.MediumPercent < 1 || t.MediumPercent > 99:
		return Problem{"confidence.mediumPercent", ReasonOutOfRange, fmt.Sprintf("is %d, must be between 1 and 99", t.MediumPercent)}
	case t.HighPercent <= t.MediumPercent || t.HighPercent > 100:
		return Problem{"confidence.highPercent", ReasonOutOfRange,
			fmt.Sprintf("is %d, must be more than mediumPercent, %d, and at most 100", t.HighPercent, t.MediumPercent)}
	default:
		return nil
	}
}

// Band of a confidence in percent. A confidence outside of 0 to 100, or thresholds that do not validate, give Low: what
// cannot be told is not trusted.
func (t Thresholds) Band(confidencePercent int32) Band {
	switch {
	case t.Validate() != nil, confidencePercent < t.MediumPercent, confidencePercent > 100:
		return BandLow
	case confidencePercent < t.HighPercent:
		return BandMedium
	default:
		return BandHigh
	}
}

// Situation is everything that the decision rules look at.
type Situation struct {
	Confidence  Band
	MistakeCost MistakeCost
	Reversible  bool
	Local       bool
	// Sensitive: public, expensive, credential-related or security-sensitive.
	Sensitive bool
}

// SituationOf reads the action's side from the engine's facts, so that the two cannot disagree. A fact that is not known
// counts as its worst value (requirement C-4).
func SituationOf(confidence Band, cost MistakeCost, facts *policy.Facts) Situation {
	s := Situation{
		Confidence: confidence, MistakeCost: cost,
		Reversible: facts[policy.Reversible].Presence == policy.Present && facts[policy.Destructive].Presence == policy.Absent,
		Local:      facts[policy.Local].Presence == policy.Present,
	}
	for _, fact := range []policy.Fact{policy.External, policy.Sends, policy.Cost, policy.Credentials, policy.Security} {
		s.Sensitive = s.Sensitive || facts[fact].Presence != policy.Absent
	}
	return s
}

// Outcome is what to do about the hypothesis that the agent would act on.
type Outcome string

const (
	// OutcomeProceed: act (requirement D-1).
	OutcomeProceed Outcome = "Proceed"
	// OutcomeDiscloseAssumption: choose the safest variant and disclose the assumption in one short sentence (D-2).
	OutcomeDiscloseAssumption Outcome = "DiscloseAssumption"
	// OutcomeAskQuestion: ask exactly one short blocking question (D-3).
	OutcomeAskQuestion Outcome = "AskQuestion"
	// OutcomeRequestPermission: ask for permission, whatever the confidence (D-4).
	OutcomeRequestPermission Outcome = "RequestPermission"
)

// Decide is the decision table. It is total: the rules are tried in the order of requirement D-5, and a situation that
// none of them names, words outside of the vocabulary included, gives a question.
func Decide(s Situation) Outcome {
	switch {
	case s.Sensitive || !s.Reversible:
		return OutcomeRequestPermission
	case s.Confidence == BandLow || s.MistakeCost.rank() >= MistakeCostHigh.rank():
		return OutcomeAskQuestion
	case s.Confidence == BandMedium && s.Local:
		return OutcomeDiscloseAssumption
	case s.Confidence == BandHigh && s.MistakeCost == MistakeCostLow:
		return OutcomeProceed
	default:
		return OutcomeAskQuestion
	}
}

// Safest is the variant to act on when the assumption is disclosed (requirement D-2): the least mistake cost, then the
// most confidence, then the first. It is meaningful for an accepted set only, which is never empty.
func (s *Set) Safest() Hypothesis {
	return slices.MinFunc(s.Hypotheses, func(a, b Hypothesis) int {
		return cmp.Or(cmp.Compare(a.MistakeCost.rank(), b.MistakeCost.rank()), cmp.Compare(*b.ConfidencePercent, *a.ConfidencePercent))
	})
}
