package tier_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy/tier"
)

var tiers = []tier.Tier{tier.Small, tier.Medium, tier.Large}

func guidance(t *testing.T, of tier.Tier, s tier.Signals) tier.Guidance {
	t.Helper()
	g, err := tier.For(of, s)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGuidanceOfEachTier(t *testing.T) {
	tests := []struct {
		name    string
		signals tier.Signals
		got     func(g tier.Guidance) any
		want    [3]any // of the small, the medium and the large tier
	}{
		// Proves T-2.
		{"the context has the shape of the tier", tier.Signals{}, func(g tier.Guidance) any { return g.Context }, [3]any{
			[]tier.Section{"PhaseFrame", "NextEvidence"}, []tier.Section{"CurrentEvidence", "Orientation"}, []tier.Section{"CurrentEvidence", "LongHorizonPlan", "Alternatives"},
		}},
		// Proves T-4.
		{"after a repetition a small model is reminded and shown the cached result", tier.Signals{Repetition: &tier.Repetition{CachedResult: "result:7"}},
			func(g tier.Guidance) any { return g.Advice }, [3]any{
				tier.Advice{Channel: "Reminder", Text: "This call gave the same result before.", CachedResult: "result:7"}, tier.Advice{Channel: "Telemetry"}, tier.Advice{Channel: "Telemetry"},
			}},
		// Proves T-4.
		{"a reminder without a cached result shows none", tier.Signals{Repetition: &tier.Repetition{}}, func(g tier.Guidance) any { return g.Advice }, [3]any{
			tier.Advice{Channel: "Reminder", Text: "This call gave the same result before."}, tier.Advice{Channel: "Telemetry"}, tier.Advice{Channel: "Telemetry"},
		}},
		{"without a repetition there is no advice", tier.Signals{}, func(g tier.Guidance) any { return g.Advice }, [3]any{tier.Advice{}, tier.Advice{}, tier.Advice{}}},
		// Proves T-5.
		{"after a real failure a small model is offered an experiment, others get diagnostics", tier.Signals{RealFailure: true}, func(g tier.Guidance) any { return g.Repair }, [3]any{
			tier.RepairNextExperiment, tier.RepairDiagnostics, tier.RepairDiagnostics,
		}},
		// Proves T-5.
		{"without a real failure nothing is repaired", tier.Signals{}, func(g tier.Guidance) any { return g.Repair }, [3]any{tier.RepairNone, tier.RepairNone, tier.RepairNone}},
		// Proves T-6.
		{"unasked, only a small model is offered templates", tier.Signals{}, func(g tier.Guidance) any { return g.Delegation }, [3]any{
			tier.DelegationTemplates, tier.DelegationNone, tier.DelegationNone,
		}},
		// Proves T-6.
		{"what the user asks for counts on every tier", tier.Signals{DelegationAskedBy: tier.AskedByUser}, func(g tier.Guidance) any { return g.Delegation }, [3]any{
			tier.DelegationOnRequest, tier.DelegationOnRequest, tier.DelegationOnRequest,
		}},
		// Proves T-6.
		{"what the model asks for counts on every tier", tier.Signals{DelegationAskedBy: tier.AskedByModel}, func(g tier.Guidance) any { return g.Delegation }, [3]any{
			tier.DelegationOnRequest, tier.DelegationOnRequest, tier.DelegationOnRequest,
		}},
		// Proves T-6.
		{"what the parent's plan asks for counts on every tier", tier.Signals{DelegationAskedBy: tier.AskedByParentPlan}, func(g tier.Guidance) any { return g.Delegation }, [3]any{
			tier.DelegationOnRequest, tier.DelegationOnRequest, tier.DelegationOnRequest,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i, of := range tiers {
				if diff := cmp.Diff(tt.want[i], tt.got(guidance(t, of, tt.signals))); diff != "" {
					t.Errorf("tier %s (-want +got):\n%s", of, diff)
				}
			}
		})
	}
}

func TestGuidanceNamesItsTier(t *testing.T) {
	for _, of := range tiers {
		if g := guidance(t, of, tier.Signals{}); g.Tier != of {
			t.Errorf("guidance of %s names %s", of, g.Tier)
		}
	}
}

// Proves T-7: an evaluation arm belongs to a session of the small tier and to nothing else; it changes nothing else in
// the guidance, so it gates nothing.
func TestAnExperimentIsForSmallOnly(t *testing.T) {
	tests := []struct {
		name, experiment string
		of               tier.Tier
		want             string
	}{
		{"a small session may belong to one", "loop-gate-arm-b", tier.Small, ""},
		{"a name has up to 63 bytes", strings.Repeat("a", 63), tier.Small, ""},
		{"a longer name is refused", strings.Repeat("a", 64), tier.Small, "experiment: is longer than 63 bytes"},
		{"a medium session may not", "loop-gate-arm-b", tier.Medium, "experiment: only a session of tier small may belong to one, this one has tier medium"},
		{"a large session may not", "loop-gate-arm-b", tier.Large, "experiment: only a session of tier small may belong to one, this one has tier large"},
		{"none is right on a large session", "", tier.Large, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tier.For(tt.of, tier.Signals{Experiment: tt.experiment})
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tt.want, message); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if err != nil {
				return
			}
			want := guidance(t, tt.of, tier.Signals{})
			want.Experiment = tt.experiment
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("guidance (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWordsOutsideOfTheVocabularyAreRefused(t *testing.T) {
	tests := []struct {
		name    string
		of      tier.Tier
		signals tier.Signals
		want    string
	}{
		{"a tier in another case", "Small", tier.Signals{}, `tier: "Small" is none of small, medium and large`},
		{"no tier", "", tier.Signals{}, `tier: "" is none of small, medium and large`},
		{"somebody else who asks", tier.Large, tier.Signals{DelegationAskedBy: "Tool"}, `delegationAskedBy: "Tool" is none of User, Model and ParentPlan`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tier.For(tt.of, tt.signals)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
