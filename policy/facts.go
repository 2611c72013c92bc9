package policy

import (
	"math/bits"
)

// Fact is one property of an operation that its class depends on (requirement C-2).
type Fact uint8

const (
	// Reversible: what the operation does can be undone by the same means.
	Reversible Fact = iota
	// Local: the effect stays inside the session's own namespaces.
	Local
	// InScope: the operation is inside what the session was given to work on.
	InScope
	// External: something becomes reachable, visible or published outside.
	External
	// Sends: a message or payload goes to somebody.
	Sends
	// Cost: material cost arises.
	Cost
	// Credentials: credentials are read, made or changed.
	Credentials
	// Security: a protection is weakened or a security setting changes.
	Security
	// Destructive: data or running work is lost.
	Destructive
	// Unbounded: the operation hits targets that it does not name.
	Unbounded
	// EscalatesAuthority: the operation gives somebody more authority than they had.
	EscalatesAuthority
	// ExfiltratesSecret: a secret leaves its place.
	ExfiltratesSecret
	// PersistsSensitiveMemory: sensitive data is remembered without a proven basis.
	PersistsSensitiveMemory
	// OutsideAuthority: the session's authority does not cover the operation.
	OutsideAuthority
	// MaterialAssumption: the operation rests on an assumption that a person would want to know.
	MaterialAssumption
	// Ambiguous: what the operation means cannot be told from what was sent.
	Ambiguous

	factCount
)

var factNames = [factCount]string{
	"Reversible", "Local", "InScope", "External", "Sends", "Cost", "Credentials", "Security", "Destructive",
	"Unbounded", "EscalatesAuthority", "ExfiltratesSecret", "PersistsSensitiveMemory", "OutsideAuthority",
	"MaterialAssumption", "Ambiguous",
}

// String gives the name used in rules and grants.
func (f Fact) String() string {
	if f >= factCount {
		return ""
	}
	return factNames[f]
}

// ParseFact reads the name used in rules and grants. ok is false for anything else.
func ParseFact(s string) (f Fact, ok bool) {
	for i, name := range factNames {
		if name == s {
			return Fact(i), true
		}
	}
	return 0, false
}

// AllFacts lists every fact in its fixed order.
func AllFacts() []Fact {
	all := make([]Fact, factCount)
	for i := range all {
		all[i] = Fact(i)
	}
	return all
}

// goodWhenPresent tells the polarity: these three are what makes an operation harmless; every other fact is a harm.
func (f Fact) goodWhenPresent() bool { return f <= InScope }

// Presence is a three-valued truth.
type Presence uint8

const (
	// Unknown counts as the fact's worst value, up to ASK (requirement C-4).
	Unknown Presence = iota
	Absent
	Present
)

// String gives the name used in rules and grants.
func (p Presence) String() string {
	switch p {
	case Absent:
		return "Absent"
	case Present:
		return "Present"
	default:
		return "Unknown"
	}
}

// Provenance tells where a fact comes from. Declared facts only raise a class (requirement C-4).
type Provenance uint8

const (
	// Declared by the agent or its adapter.
	Declared Provenance = iota + 1
	// Catalogued by the platform or the baseline, about a kind or a tool.
	Catalogued
	// Parsed by our own parsers from the request.
	Parsed
	// Authoritative: the API server's own data.
	Authoritative
)

// String gives the name used in grants.
func (p Provenance) String() string {
	switch p {
	case Declared:
		return "Declared"
	case Catalogued:
		return "Catalogued"
	case Parsed:
		return "Parsed"
	case Authoritative:
		return "Authoritative"
	default:
		return ""
	}
}

// FactValue is what is known about one fact.
type FactValue struct {
	Presence   Presence
	Provenance Provenance
	// Why says in a few words where the value comes from; literal text, safe to show to an agent.
	Why string
	// Rule names the catalogue entry that gave the value, as policy/entry; empty for parsed and authoritative values.
	Rule string
}

// Facts holds one value per fact. The zero value knows nothing.
type Facts [factCount]FactValue

// Add joins one value into the facts. The join is a maximum over unknown < harmless < harmful, so the order in which
// sources speak never matters and no source can remove what another found. A declared harmless value is dropped:
// what agents declare only raises a class (requirement C-4). Of two equal values the stronger provenance stays, of two
// of one provenance the one that comes first by rule and reason.
func (f *Facts) Add(fact Fact, v FactValue) { f.add(fact, &v) }

// add is Add without a copy.
func (f *Facts) add(fact Fact, v *FactValue) {
	if v.Presence == Unknown || (v.Provenance == Declared && !harmful(fact, v.Presence)) {
		return
	}
	old := &f[fact]
	switch {
	case old.Presence == Unknown:
	case old.Presence == v.Presence:
		if !v.precedes(old) {
			return
		}
	case harmful(fact, old.Presence):
		return
	}
	*old = *v
}

// precedes tells which of two values of one presence stays.
func (v *FactValue) precedes(old *FactValue) bool {
	switch {
	case v.Provenance != old.Provenance:
		return v.Provenance > old.Provenance
	case v.Rule != old.Rule:
		return v.Rule < old.Rule
	default:
		return v.Why < old.Why
	}
}

func harmful(fact Fact, p Presence) bool {
	if fact.goodWhenPresent() {
		return p == Absent
	}
	return p == Present
}

// Floor tells which value of the fact is the harmful one, the class that it gives by itself, and the class that not
// knowing it gives.
func (f Fact) Floor() (value Presence, harmful, unknown Class) {
	value = Present
	if f.goodWhenPresent() {
		value = Absent
	}
	return value, f.floorIfHarmful(), f.floorIfUnknown()
}

// floorIfHarmful is the class that the fact's harmful value gives (requirement C-2).
func (f Fact) floorIfHarmful() Class {
	switch f {
	case EscalatesAuthority, ExfiltratesSecret, PersistsSensitiveMemory, OutsideAuthority:
		return ClassForbidden
	case MaterialAssumption:
		return ClassAutoWithDisclosure
	default:
		return ClassAsk
	}
}

// floorIfUnknown is the class that not knowing the fact gives: its worst value up to ASK. FORBIDDEN needs a positive
// fact (requirement C-4), and a fact that only FORBIDDEN hangs on is looked for by the parsers, not assumed.
func (f Fact) floorIfUnknown() Class {
	switch f {
	case EscalatesAuthority, ExfiltratesSecret, PersistsSensitiveMemory, OutsideAuthority:
		return ClassAsk
	default:
		return f.floorIfHarmful()
	}
}

// floor is the class that the facts alone give, and the facts that gave it. Of a pure read only known harms count
// (requirement C-4).
func (f *Facts) floor(read bool) (Class, factSet) {
	class := ClassAuto
	var because factSet
	for i := range f {
		fact := Fact(i)
		c := ClassAuto
		switch {
		case f[i].Presence == Unknown && read:
		case f[i].Presence == Unknown:
			c = fact.floorIfUnknown()
		case harmful(fact, f[i].Presence):
			c = fact.floorIfHarmful()
		}
		if c > class {
			class, because = c, 0
		}
		if c == class && class > ClassAuto {
			because |= 1 << fact
		}
	}
	return class, because
}

// factSet holds one bit per fact.
type factSet uint32

func (s factSet) has(fact Fact) bool { return s>>fact&1 == 1 }

func (s factSet) len() int { return bits.OnesCount32(uint32(s)) }
