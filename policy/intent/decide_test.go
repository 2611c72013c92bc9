package intent_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/intent"
)

var (
	bands = []intent.Band{intent.BandLow, intent.BandMedium, intent.BandHigh, "", "high"}
	costs = []intent.MistakeCost{intent.MistakeCostLow, intent.MistakeCostMedium, intent.MistakeCostHigh, "", "low"}
	truth = []bool{false, true}
)

// named lists the outcomes of all rules whose words fit the situation, strongest first. It is the text of the
// requirements, not the table.
func named(s intent.Situation) []intent.Outcome {
	var outcomes []intent.Outcome
	if s.Sensitive || !s.Reversible {
		outcomes = append(outcomes, intent.OutcomeRequestPermission)
	}
	if s.Confidence == "Low" || s.MistakeCost == "High" {
		outcomes = append(outcomes, intent.OutcomeAskQuestion)
	}
	// What is outside of the vocabulary is known to be neither high nor low, and no assumption rests on it.
	known := s.MistakeCost == "Low" || s.MistakeCost == "Medium" || s.MistakeCost == "High"
	if s.Confidence == "Medium" && s.Reversible && s.Local && known {
		outcomes = append(outcomes, intent.OutcomeDiscloseAssumption)
	}
	if s.Confidence == "High" && s.MistakeCost == "Low" {
		outcomes = append(outcomes, intent.OutcomeProceed)
	}
	return append(outcomes, intent.OutcomeAskQuestion)
}

// Proves D-1, D-2, D-3, D-4 and D-5: every combination of the inputs, words outside of the vocabulary included, has
// exactly one outcome, that of the strongest rule that names it, and a question when none does.
func TestEveryCombinationHasExactlyOneOutcome(t *testing.T) {
	reached := map[intent.Outcome]int{}
	for _, band := range bands {
		for _, cost := range costs {
			for bits := range 8 {
				s := intent.Situation{Confidence: band, MistakeCost: cost, Reversible: truth[bits&1], Local: truth[bits>>1&1], Sensitive: truth[bits>>2]}
				got := intent.Decide(s)
				reached[got]++
				if want := named(s)[0]; got != want {
					t.Errorf("Decide(%+v) = %s, want %s", s, got, want)
				}
			}
		}
	}
	// 5 x 5 words and three bits. Counted by hand from the requirements: permission 25 x 6; of the 25 x 2 others the
	// disclosed are Medium x {Low, Medium} and local, those that proceed High x Low, local or not.
	want := map[intent.Outcome]int{
		intent.OutcomeRequestPermission: 150, intent.OutcomeDiscloseAssumption: 2, intent.OutcomeProceed: 2, intent.OutcomeAskQuestion: 46,
	}
	if diff := cmp.Diff(want, reached); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func TestTheDecisionRules(t *testing.T) {
	tests := []struct {
		name string
		s    intent.Situation
		want intent.Outcome
	}{
		// Proves D-1.
		{"high confidence and low mistake cost proceeds", intent.Situation{Confidence: "High", MistakeCost: "Low", Reversible: true, Local: true}, intent.OutcomeProceed},
		// Proves D-2.
		{"medium confidence and a reversible local action discloses", intent.Situation{Confidence: "Medium", MistakeCost: "Medium", Reversible: true, Local: true}, intent.OutcomeDiscloseAssumption},
		// Proves D-3.
		{"low confidence asks", intent.Situation{Confidence: "Low", MistakeCost: "Low", Reversible: true, Local: true}, intent.OutcomeAskQuestion},
		// Proves D-3 and D-5.
		{"high mistake cost asks, however confident and local", intent.Situation{Confidence: "High", MistakeCost: "High", Reversible: true, Local: true}, intent.OutcomeAskQuestion},
		// Proves D-4.
		{"a sensitive operation needs permission, however confident", intent.Situation{Confidence: "High", MistakeCost: "Low", Reversible: true, Local: true, Sensitive: true}, intent.OutcomeRequestPermission},
		// Proves D-4.
		{"an irreversible operation needs permission, however confident", intent.Situation{Confidence: "High", MistakeCost: "Low", Local: true}, intent.OutcomeRequestPermission},
		// Proves D-5.
		{"permission beats the question", intent.Situation{Confidence: "Low", MistakeCost: "High", Sensitive: true}, intent.OutcomeRequestPermission},
		// Proves D-5.
		{"medium confidence in an action that is not local asks", intent.Situation{Confidence: "Medium", MistakeCost: "Low", Reversible: true}, intent.OutcomeAskQuestion},
		// Proves D-5.
		{"high confidence and medium mistake cost asks", intent.Situation{Confidence: "High", MistakeCost: "Medium", Reversible: true, Local: true}, intent.OutcomeAskQuestion},
		{"nothing known needs permission", intent.Situation{}, intent.OutcomeRequestPermission},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := intent.Decide(tt.s); got != tt.want {
				t.Errorf("Decide = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestBandsFollowThePolicy(t *testing.T) {
	tests := []struct {
		name       string
		thresholds intent.Thresholds
		percent    int32
		want       intent.Band
	}{
		{"below medium", intent.Thresholds{MediumPercent: 50, HighPercent: 80}, 49, intent.BandLow},
		{"at medium", intent.Thresholds{MediumPercent: 50, HighPercent: 80}, 50, intent.BandMedium},
		{"below high", intent.Thresholds{MediumPercent: 50, HighPercent: 80}, 79, intent.BandMedium},
		{"at high", intent.Thresholds{MediumPercent: 50, HighPercent: 80}, 80, intent.BandHigh},
		{"certain", intent.Thresholds{MediumPercent: 50, HighPercent: 80}, 100, intent.BandHigh},
		{"another policy", intent.Thresholds{MediumPercent: 60, HighPercent: 90}, 80, intent.BandMedium},
		{"more than certain is not believed", intent.Thresholds{MediumPercent: 50, HighPercent: 80}, 101, intent.BandLow},
		{"thresholds that were never set trust nothing", intent.Thresholds{}, 100, intent.BandLow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.thresholds.Band(tt.percent); got != tt.want {
				t.Errorf("Band(%d) = %s, want %s", tt.percent, got, tt.want)
			}
		})
	}
}

func TestThresholdsAreBounded(t *testing.T) {
	tests := []struct {
		thresholds intent.Thresholds
		want       string
	}{
		{intent.Thresholds{MediumPercent: 1, HighPercent: 2}, ""},
		{intent.Thresholds{MediumPercent: 99, HighPercent: 100}, ""},
		{intent.Thresholds{MediumPercent: 0, HighPercent: 80}, "confidence.mediumPercent: is 0, must be between 1 and 99"},
		{intent.Thresholds{MediumPercent: 100, HighPercent: 101}, "confidence.mediumPercent: is 100, must be between 1 and 99"},
		{intent.Thresholds{MediumPercent: 50, HighPercent: 50}, "confidence.highPercent: is 50, must be more than mediumPercent, 50, and at most 100"},
		{intent.Thresholds{MediumPercent: 50, HighPercent: 101}, "confidence.highPercent: is 101, must be more than mediumPercent, 50, and at most 100"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.thresholds), func(t *testing.T) {
			got := ""
			if err := tt.thresholds.Validate(); err != nil {
				got = err.Error()
				if problem := (intent.Problem{}); !errors.As(err, &problem) || problem.Reason != intent.ReasonOutOfRange {
					t.Errorf("error %v is no Problem with reason OutOfRange", err)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves D-4: each fact that makes an operation public, expensive, irreversible, credential-related or security-sensitive
// leads to a request for permission, and so does not knowing it.
func TestFactsThatNeedPermission(t *testing.T) {
	var harmless policy.Facts
	for _, fact := range policy.AllFacts() {
		presence := policy.Absent
		if fact == policy.Reversible || fact == policy.Local || fact == policy.InScope {
			presence = policy.Present
		}
		harmless[fact].Presence = presence
	}
	decide := func(facts policy.Facts) intent.Outcome {
		return intent.Decide(intent.SituationOf(intent.BandHigh, intent.MistakeCostLow, &facts))
	}
	if got := decide(harmless); got != intent.OutcomeProceed {
		t.Fatalf("a harmless operation: %s, want Proceed", got)
	}
	for _, fact := range []policy.Fact{policy.External, policy.Sends, policy.Cost, policy.Credentials, policy.Security, policy.Destructive, policy.Reversible} {
		for _, presence := range []policy.Presence{policy.Unknown, policy.Absent, policy.Present} {
			facts := harmless
			if presence == harmless[fact].Presence {
				continue
			}
			facts[fact].Presence = presence
			if got := decide(facts); got != intent.OutcomeRequestPermission {
				t.Errorf("%s %s: %s, want RequestPermission", fact, presence, got)
			}
		}
	}
	facts := harmless
	facts[policy.Local].Presence = policy.Unknown
	if got := intent.Decide(intent.SituationOf(intent.BandMedium, intent.MistakeCostLow, &facts)); got != intent.OutcomeAskQuestion {
		t.Errorf("not known to be local: %s, want AskQuestion", got)
	}
}

// Proves D-2: the disclosed assumption goes with the safest variant.
func TestTheSafestVariantIsChosen(t *testing.T) {
	h := three()
	h[0].MistakeCost, h[0].ConfidencePercent = intent.MistakeCostMedium, percent(79)
	h[1].ConfidencePercent, h[2].ConfidencePercent = percent(55), percent(60)
	set, problems := intent.Accept(h, latest(t))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got := set.Safest().Goal; got != h[2].Goal {
		t.Errorf("safest = %q, want %q: low cost before confidence, more confidence before less", got, h[2].Goal)
	}
	set.Hypotheses[1].ConfidencePercent = percent(60)
	if got := set.Safest().Goal; got != h[1].Goal {
		t.Errorf("safest of equals = %q, want the first, %q", got, h[1].Goal)
	}
}
