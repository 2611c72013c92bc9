package tier_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy/tier"
)

// Proves B-3: on every tier and with every signal, evidence comes first, then advice, then the tool, then the offer of a
// worker; enforcement comes last, only when a boundary prevents the call, and then the tool does not run.
func TestInterventionsGoInOrder(t *testing.T) {
	order := []tier.Intervention{"DeliverEvidence", "Advise", "Run", "OfferDelegation", "Enforce"}
	seen := map[tier.Intervention]bool{}
	for _, of := range tiers {
		for _, signals := range []tier.Signals{
			{}, {Repetition: &tier.Repetition{CachedResult: "result:7"}}, {RealFailure: true}, {DelegationAskedBy: tier.AskedByUser},
			{Repetition: &tier.Repetition{}, RealFailure: true, DelegationAskedBy: tier.AskedByModel},
		} {
			g := guidance(t, of, signals)
			for _, prevented := range []bool{false, true} {
				got := g.Interventions(prevented)
				place := func(i tier.Intervention) int { return slices.Index(order, i) }
				if !slices.IsSortedFunc(got, func(a, b tier.Intervention) int { return place(a) - place(b) }) || slices.Contains(got, "") {
					t.Errorf("tier %s, %+v, prevented %t: %v is out of order", of, signals, prevented, got)
				}
				if got[0] != tier.InterventionEvidence || slices.Contains(got, tier.InterventionRun) == prevented || slices.Contains(got, tier.InterventionEnforcement) != prevented {
					t.Errorf("tier %s, %+v, prevented %t: %v", of, signals, prevented, got)
				}
				for _, i := range got {
					seen[i] = true
				}
			}
		}
	}
	if len(seen) != len(order) {
		t.Errorf("only %v of %v were reached", seen, order)
	}
}

// Proves B-3: what is offered depends on what was observed, and a repetition alone enforces nothing.
func TestARepetitionIsAnsweredWithAdviceAndTheToolRuns(t *testing.T) {
	g := guidance(t, tier.Small, tier.Signals{Repetition: &tier.Repetition{CachedResult: "result:7"}})
	want := []tier.Intervention{tier.InterventionEvidence, tier.InterventionAdvice, tier.InterventionRun, tier.InterventionDelegation}
	if diff := cmp.Diff(want, g.Interventions(false)); diff != "" {
		t.Errorf("interventions (-want +got):\n%s", diff)
	}
}
