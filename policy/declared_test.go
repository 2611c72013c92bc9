package policy_test

import (
	"testing"

	"stepbeyond.dev/stepbeyond/policy"
)

// Proves C-4: of an operation about which one thing is not known, nothing that an agent declares fills the gap, while the
// platform's catalogue and our parsers do.
func TestNoDeclarationFillsAGap(t *testing.T) {
	for _, fact := range policy.AllFacts() {
		if fact == policy.OutsideAuthority {
			continue // the engine compares the session's authority itself, whatever anybody says of it
		}
		good := harmless()[fact].Presence
		gap := harmless()
		gap[fact] = policy.FactValue{}
		unknown := classOf(t, gap)
		if unknown == policy.ClassAuto {
			t.Errorf("%s: not knowing it is AUTO", fact)
		}
		for provenance, want := range map[policy.Provenance]policy.Class{
			policy.Declared: unknown, policy.Catalogued: policy.ClassAuto, policy.Parsed: policy.ClassAuto, policy.Authoritative: policy.ClassAuto,
		} {
			filled := gap
			filled.Add(fact, policy.FactValue{Presence: good, Provenance: provenance})
			if got := classOf(t, filled); got != want {
				t.Errorf("%s, said as %s to be harmless, gives %s, want %s", fact, provenance, got, want)
			}
		}
	}
}
