package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/policy"
)

// statement is one source's word on one fact.
type statement struct {
	fact  policy.Fact
	value policy.FactValue
}

var (
	presences   = []policy.Presence{policy.Unknown, policy.Absent, policy.Present}
	provenances = []policy.Provenance{policy.Declared, policy.Catalogued, policy.Parsed, policy.Authoritative}
)

var statements = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) statement {
	return statement{
		fact: rapid.SampledFrom(policy.AllFacts()).Draw(t, "fact"),
		value: policy.FactValue{
			Presence:   rapid.SampledFrom(presences).Draw(t, "presence"),
			Provenance: rapid.SampledFrom(provenances).Draw(t, "provenance"),
			Why:        rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "why"),
			Rule:       rapid.SampledFrom([]string{"", "default/a", "default/b"}).Draw(t, "rule"),
		},
	}
}), 0, 40)

func factsFrom(list []statement) policy.Facts {
	var f policy.Facts
	for _, s := range list {
		f.Add(s.fact, s.value)
	}
	return f
}

// drawFacts are of every class: what any sources say together is mostly forbidden, so most draws say little.
func drawFacts(t *rapid.T) policy.Facts {
	switch rapid.SampledFrom([]string{"harmless", "an assumption", "an assumption", "one fact", "one fact", "said on top of harmless", "said on top of harmless", "said"}).Draw(t, "facts") {
	case "harmless":
		return harmless()
	case "an assumption":
		f := harmless()
		f[policy.MaterialAssumption].Presence = rapid.SampledFrom([]policy.Presence{policy.Unknown, policy.Present}).Draw(t, "assumption")
		return f
	case "one fact":
		// One hole is enough to ask, and only as long as nobody may talk it away.
		f := harmless()
		f[rapid.SampledFrom(policy.AllFacts()).Draw(t, "fact")] = policy.FactValue{
			Presence:   rapid.SampledFrom(presences).Draw(t, "presence"),
			Provenance: rapid.SampledFrom(provenances).Draw(t, "provenance"),
		}
		return f
	case "said on top of harmless":
		return join(harmless(), factsFrom(statements.Draw(t, "said")))
	default:
		return factsFrom(statements.Draw(t, "said"))
	}
}

func join(a, b policy.Facts) policy.Facts {
	for _, fact := range policy.AllFacts() {
		a.Add(fact, b[fact])
	}
	return a
}

// Proves C-3 for facts: sources join the same in any order and any grouping, and repeating one changes nothing.
func TestSourcesOfFactsJoinInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := statements.Draw(t, "statements")
		shuffled := rapid.Permutation(list).Draw(t, "shuffled")
		want := factsFrom(list)
		if diff := cmp.Diff(want, factsFrom(shuffled)); diff != "" {
			t.Fatalf("another order gives other facts (-want +got):\n%s", diff)
		}
		a, b, c := factsFrom(list), factsFrom(statements.Draw(t, "b")), factsFrom(statements.Draw(t, "c"))
		if diff := cmp.Diff(join(join(a, b), c), join(a, join(b, c))); diff != "" {
			t.Fatalf("another grouping gives other facts:\n%s", diff)
		}
		if diff := cmp.Diff(join(a, b), join(b, a)); diff != "" {
			t.Fatalf("another order gives other facts:\n%s", diff)
		}
		if diff := cmp.Diff(a, join(a, a)); diff != "" {
			t.Fatalf("saying the same again gives other facts:\n%s", diff)
		}
	})
}

// drawDeclared is what is known about an operation, and the same with what an agent or adapter declares on top.
func drawDeclared(t *rapid.T) (known, declared policy.Facts) {
	known = drawFacts(t)
	declared = known
	for _, s := range statements.Draw(t, "declared") {
		s.value.Provenance = policy.Declared
		declared.Add(s.fact, s.value)
	}
	return known, declared
}

// Proves C-4: what an agent or adapter declares raises a class and never lowers it, whatever else is known.
func TestDeclaredFactsOnlyRaise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		known, declared := drawDeclared(t)
		if without, with := classOf(t, known), classOf(t, declared); with < without {
			t.Fatalf("the declared facts lower the class from %s to %s", without, with)
		}
	})
}

// Proves C-4: of no source can one fact make another source's harm disappear.
func TestNoSourceTakesAHarmAway(t *testing.T) {
	harms := []policy.Fact{
		policy.External, policy.Sends, policy.Cost, policy.Credentials, policy.Security, policy.Destructive, policy.Unbounded,
		policy.EscalatesAuthority, policy.ExfiltratesSecret, policy.PersistsSensitiveMemory, policy.OutsideAuthority,
		policy.MaterialAssumption, policy.Ambiguous,
	}
	for _, harm := range harms {
		for _, found := range provenances {
			for _, said := range provenances {
				var f policy.Facts
				f.Add(harm, policy.FactValue{Presence: policy.Present, Provenance: found})
				f.Add(harm, policy.FactValue{Presence: policy.Absent, Provenance: said})
				if f[harm].Presence != policy.Present {
					t.Errorf("%s, found as %s, is taken away by %s", harm, found, said)
				}
			}
		}
	}
}

// Proves C-2 and C-4: the class of each fact alone, everything else being harmless.
func TestClassOfEachFact(t *testing.T) {
	type classes struct{ Good, Bad, Unknown string }
	ask := classes{"AUTO", "ASK", "ASK"}
	forbidden := classes{"AUTO", "FORBIDDEN", "ASK"}
	want := map[string]classes{
		"Reversible": ask, "Local": ask, "InScope": ask, "External": ask, "Sends": ask, "Cost": ask, "Credentials": ask,
		"Security": ask, "Destructive": ask, "Unbounded": ask, "Ambiguous": ask,
		"EscalatesAuthority": forbidden, "ExfiltratesSecret": forbidden, "PersistsSensitiveMemory": forbidden,
		"OutsideAuthority":   {"AUTO", "FORBIDDEN", "AUTO"}, // the session's authority is compared by the engine itself
		"MaterialAssumption": {"AUTO", "AUTO_WITH_DISCLOSURE", "AUTO_WITH_DISCLOSURE"},
	}
	got := map[string]classes{}
	for _, fact := range policy.AllFacts() {
		good, bad := policy.Absent, policy.Present
		if harmless()[fact].Presence == policy.Present {
			good, bad = bad, good
		}
		with := func(p policy.Presence) string {
			f := harmless()
			f[fact].Presence = p
			return classOf(t, f).String()
		}
		got[fact.String()] = classes{with(good), with(bad), with(policy.Unknown)}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
}

func TestNamesReadBack(t *testing.T) {
	for _, fact := range policy.AllFacts() {
		if got, ok := policy.ParseFact(fact.String()); !ok || got != fact {
			t.Errorf("fact %d is spelled %q and read as %d, %v", fact, fact, got, ok)
		}
	}
	for class := policy.ClassAuto; class <= policy.ClassForbidden; class++ {
		if got, ok := policy.ParseClass(class.String()); !ok || got != class {
			t.Errorf("class %d is spelled %q and read as %d, %v", class, class, got, ok)
		}
	}
	for _, text := range []string{"", "auto", "Auto", "AUTO ", "Reversible "} {
		if _, ok := policy.ParseFact(text); ok {
			t.Errorf("%q is read as a fact", text)
		}
		if _, ok := policy.ParseClass(text); ok {
			t.Errorf("%q is read as a class", text)
		}
	}
}
