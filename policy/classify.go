package policy

import (
	"slices"
	"strings"
	"sync"

	"stepbeyond.dev/stepbeyond/policy/expr"
)

// maxDecisionCost bounds the CEL cost of one decision, in CEL's units. A run cannot be interrupted, and two million units
// take a second on a busy machine: half of the webhook's own deadline.
const maxDecisionCost = 2 * expr.MaxCost

// classification is the class of an operation and everything that gave it.
type classification struct {
	view *expr.View // made for the first rule that needs it
	cost uint64

	class   Class
	details []Detail
	wouldBe []WouldBe
	// catalogued tells that an entry of a catalogue knows this kind of operation.
	catalogued bool
	// read tells that a parser or a catalogue found the operation to be a pure read.
	read bool
	// recoveries of harms, also of those that a parser found as well: the catalogue knows the way out. Nil without any.
	recoveries *[factCount]recovery
}

// subject is what is classified. The operation is the decision's own copy: what is found is joined into its facts. It is handed down and not part of the classification, some of which outlives the
// decision: so operation and session need no place on the heap.
type subject struct {
	op      *Operation
	session *SessionView
}

// recovery is the next step that a catalogue entry offers.
type recovery struct{ entry, text string }

// classify joins the floor of the facts with the rules that match. It looks at no grant, score, mode, tier or hold:
// none of them has a say (requirement C-3).
func (c *classification) classify(s subject, layers []*compiled) {
	c.read = s.op.ReadBy == Parsed || s.op.ReadBy == Catalogued
	for _, layer := range layers {
		c.addCatalogue(s, layer)
	}
	c.addAuthority(s)
	c.addMemoryBasis(s)
	c.addFloor(&s.op.Facts)
	for _, layer := range layers {
		c.addRules(s, layer)
	}
	c.addStage(s)
	c.sortDetails()
	c.done()
}

func (c *classification) addCatalogue(s subject, layer *compiled) {
	layer.factIndex.candidates(s.op, func(position int) {
		entry := &layer.entries[position]
		if !entry.Match.touches(s.op) {
			return
		}
		if entry.when != nil {
			// An entry that cannot be evaluated vouches for nothing.
			if matched, err := c.eval(entry.when, s); err != nil || !matched {
				return
			}
		}
		// What an entry says in favor of some names does not vouch for a list that shows others as well.
		whole := !s.op.readsMany() || entry.Match.matches(s.op)
		c.catalogued = c.catalogued || whole
		c.read = c.read || whole && entry.Effect == EffectRead
		entry.addFacts(s.op, Present, entry.Present, whole)
		entry.addFacts(s.op, Absent, entry.Absent, whole)
		if entry.Recovery != "" {
			c.addRecoveries(entry)
		}
	})
}

// addFacts adds all of the facts, or only those that speak against the operation.
func (e *compiledEntry) addFacts(op *Operation, presence Presence, facts []Fact, all bool) {
	value := FactValue{Presence: presence, Provenance: Catalogued, Why: e.Detail, Rule: e.fullName}
	for _, fact := range facts {
		if all || harmful(fact, presence) {
			op.Facts.add(fact, &value)
		}
	}
}

func (c *classification) addRecoveries(entry *compiledEntry) {
	for _, fact := range entry.Present {
		c.addRecovery(fact, Present, entry)
	}
	for _, fact := range entry.Absent {
		c.addRecovery(fact, Absent, entry)
	}
}

func (c *classification) addRecovery(fact Fact, presence Presence, entry *compiledEntry) {
	if !harmful(fact, presence) {
		return
	}
	// Of several entries the first by name counts, so that the order of policies never shows.
	if c.recoveries == nil {
		c.recoveries = &[factCount]recovery{}
	}
	if known := &c.recoveries[fact]; known.entry == "" || entry.fullName < known.entry {
		*known = recovery{entry: entry.fullName, text: entry.Recovery}
	}
}

// addAuthority turns what the session was given into facts: a capability or a Kubernetes operation that it does not
// name is outside its authority.
func (c *classification) addAuthority(s subject) {
	a := &s.session.Authority
	if s.session.State != SessionActive && s.session.State != SessionSuspended {
		return // there is no authority to compare with; the session guard answers
	}
	outside := func(why string) {
		s.op.Facts.Add(OutsideAuthority, FactValue{Presence: Present, Provenance: Authoritative, Why: why})
	}
	if !slices.Contains(a.Capabilities, s.op.Capability) {
		outside("the session has no capability " + string(s.op.Capability))
		return
	}
	// What is listed narrows writes; which reads a session has is said by its roles and by rules.
	if s.op.Kubernetes == nil || len(a.Kubernetes) == 0 || !s.op.Verb.Mutating() {
		s.op.Facts.Add(OutsideAuthority, FactValue{Presence: Absent, Provenance: Authoritative})
		return
	}
	for i := range a.Kubernetes {
		if a.Kubernetes[i].matches(s.op) {
			s.op.Facts.Add(OutsideAuthority, FactValue{Presence: Absent, Provenance: Authoritative})
			return
		}
	}
	outside("the session's authority names other operations")
}

// addMemoryBasis is the one exception to "unknown is at most ASK": a write to the user model without a proven basis is
// FORBIDDEN, because what was remembered cannot be asked back (requirement C-4).
func (c *classification) addMemoryBasis(s subject) {
	if s.op.Capability == CapabilityWriteUserModel && s.op.Facts[PersistsSensitiveMemory].Presence == Unknown {
		s.op.Facts.Add(PersistsSensitiveMemory, FactValue{Presence: Present, Provenance: Parsed, Why: "no basis for remembering this is proven"})
	}
}

func (c *classification) addFloor(facts *Facts) {
	class, because := facts.floor(c.read)
	c.class = class
	if because == 0 {
		return
	}
	unknown := 0
	for i := range facts {
		if because.has(Fact(i)) && facts[i].Presence == Unknown {
			unknown++
		}
	}
	if !c.catalogued && unknown > 0 && unknown == because.len() {
		c.details = append(make([]Detail, 0, 2), Detail{Code: CodeUncatalogued, Class: class, Why: "nobody has catalogued this kind of operation"})
		return
	}
	c.details = make([]Detail, 0, because.len()+1)
	for i := range facts {
		fact, v := Fact(i), &facts[i]
		if !because.has(fact) {
			continue
		}
		c.details = append(c.details, Detail{
			Code: fact.String(), Fact: fact.String(), Presence: v.Presence, Provenance: v.Provenance, Rule: v.Rule,
			Class: class, Why: v.Why, Recovery: c.recovery(fact),
		})
	}
}

func (c *classification) recovery(fact Fact) string {
	if c.recoveries == nil {
		return ""
	}
	return c.recoveries[fact].text
}

func (c *classification) addRules(s subject, layer *compiled) {
	layer.ruleIndex.candidates(s.op, func(position int) {
		rule := &layer.rules[position]
		if !rule.Match.touches(s.op) {
			return
		}
		if rule.when != nil {
			// A tightening rule that cannot be evaluated counts as matched: what fails does not pass.
			if matched, err := c.eval(rule.when, s); err == nil && !matched {
				return
			}
		}
		if rule.Enforcement != EnforcementEnforce {
			w := WouldBe{Rule: rule.fullName, Class: rule.Class, Enforcement: rule.Enforcement, Detail: rule.Detail}
			if !slices.Contains(c.wouldBe, w) {
				c.wouldBe = append(c.wouldBe, w)
			}
			return
		}
		c.class = max(c.class, rule.Class)
		c.details = append(c.details, Detail{
			Code: CodeRule, Rule: rule.fullName, Class: rule.Class, Why: rule.Detail, Recovery: rule.Recovery,
		})
	})
}

// addStage asks for what the session may not do on its own: a stage that is absent from its authority.
func (c *classification) addStage(s subject) {
	if s.session.State != SessionActive && s.session.State != SessionSuspended {
		return
	}
	if !slices.Contains(s.session.Authority.Stages, s.op.Stage) {
		c.class = max(c.class, ClassAsk)
		c.details = append(c.details, Detail{
			Code: CodeStageNotGranted, Class: ClassAsk, Why: "the session may not " + string(s.op.Stage) + " on its own",
		})
	}
}

// sortDetails puts first what a message names: the largest class, then known harms, then what is known to be missing,
// then rules, then what is unknown; within that, by name, so that the order of policies never shows. Duplicates go.
func (c *classification) sortDetails() {
	if len(c.details)+len(c.wouldBe) < 2 {
		return
	}
	rank := func(d *Detail) int {
		switch {
		case d.Code == CodeRule:
			return 2
		case d.Presence == Unknown:
			return 3
		case d.Presence == Absent:
			return 1
		default:
			return 0
		}
	}
	slices.SortStableFunc(c.details, func(a, b Detail) int {
		if a.Class != b.Class {
			return int(b.Class) - int(a.Class)
		}
		if ra, rb := rank(&a), rank(&b); ra != rb {
			return ra - rb
		}
		if a.Code == CodeRule && b.Code == CodeRule {
			return strings.Compare(a.Rule, b.Rule)
		}
		return 0 // facts keep their fixed order
	})
	c.details = slices.Compact(c.details)
	slices.SortFunc(c.wouldBe, func(a, b WouldBe) int { return strings.Compare(a.Rule, b.Rule) })
}

func (c *classification) eval(program *expr.Program, s subject) (bool, error) {
	if c.cost >= maxDecisionCost {
		return false, errDecisionCost
	}
	if k := s.op.Kubernetes; k != nil {
		if matched, cost, known := program.Plain(k.Object, k.OldObject); known {
			c.cost += cost
			return matched, nil
		}
	}
	if c.view == nil {
		c.view = viewOf(s.op, s.session)
	}
	matched, cost, err := program.Eval(c.view)
	c.cost += cost
	return matched, err
}

// views are used again: one decision needs one for as long as it runs.
var views = sync.Pool{New: func() any { return new(expr.View) }}

func viewOf(op *Operation, session *SessionView) *expr.View {
	t, view := &op.Target, views.Get().(*expr.View)
	view.Request = expr.Request{
		Verb: string(op.Verb), Namespace: t.Namespace, Name: t.Name, DryRun: op.DryRun,
		Resource: expr.Resource{Group: t.Group, Version: t.Version, Resource: t.Resource, Subresource: t.Subresource},
	}
	view.Target.Origin, view.Target.UID = string(t.Origin), t.UID
	view.Session = expr.Session{Namespace: session.Namespace, Name: session.Name, Username: session.Username}
	if k := op.Kubernetes; k != nil {
		view.Object, view.OldObject = k.Object, k.OldObject
		view.Target.PodTemplates = k.PodTemplates
	}
	return view
}

// done gives the view back. No program keeps what it has seen.
func (c *classification) done() {
	if c.view != nil {
		c.view.Forget()
		views.Put(c.view)
		c.view = nil
	}
}
