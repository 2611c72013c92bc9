package policy_test

import (
	"testing"

	"stepbeyond.dev/stepbeyond/policy"
)

// Proves C-4: a catalogued or parsed pure read is AUTO whatever else is missing, and a declared one is not.
func TestAPureReadNeedsNoMoreFacts(t *testing.T) {
	harm := func(fact policy.Fact, provenance policy.Provenance) policy.Facts {
		var f policy.Facts
		f.Add(fact, policy.FactValue{Presence: policy.Present, Provenance: provenance})
		return f
	}
	entry := policy.CatalogueEntry{Name: "reads", Match: policy.Match{Tools: []string{"mcp:a/*"}}, Effect: policy.EffectRead}
	with := policy.Policy{Catalogue: []policy.CatalogueEntry{entry}}
	for _, test := range []struct {
		name   string
		tool   string
		by     policy.Provenance
		policy policy.Policy
		facts  policy.Facts
		want   policy.Class
	}{
		{"a parsed read", "b", policy.Parsed, policy.Policy{}, policy.Facts{}, policy.ClassAuto},
		{"a catalogued read", "mcp:a/b", 0, with, policy.Facts{}, policy.ClassAuto},
		{"a read that the front door takes from a catalogue", "b", policy.Catalogued, policy.Policy{}, policy.Facts{}, policy.ClassAuto},
		{"a declared read", "b", policy.Declared, policy.Policy{}, policy.Facts{}, policy.ClassAsk},
		{"a tool outside the prefix", "mcp:b/b", 0, with, policy.Facts{}, policy.ClassAsk},
		{"nothing known", "b", 0, policy.Policy{}, policy.Facts{}, policy.ClassAsk},
		{"a read with a parsed harm", "b", policy.Parsed, policy.Policy{}, harm(policy.Credentials, policy.Parsed), policy.ClassAsk},
		{"a read with a declared harm", "b", policy.Parsed, policy.Policy{}, harm(policy.Cost, policy.Declared), policy.ClassAsk},
		{"a catalogued read with a parsed harm", "mcp:a/b", 0, with, harm(policy.Sends, policy.Parsed), policy.ClassAsk},
		{"a read that takes a secret out", "b", policy.Parsed, policy.Policy{}, harm(policy.ExfiltratesSecret, policy.Parsed), policy.ClassForbidden},
		{"a read on an assumption", "b", policy.Parsed, policy.Policy{}, harm(policy.MaterialAssumption, policy.Declared), policy.ClassAutoWithDisclosure},
	} {
		t.Run(test.name, func(t *testing.T) {
			op := policy.Operation{
				Capability: policy.CapabilityExecuteLocal, Stage: policy.StageUnderstand, Verb: policy.VerbRead, Tool: test.tool,
				Facts: test.facts, ReadBy: test.by,
			}
			if got := compile(t, under(test.policy)).Decide(op, session(), now).Class; got != test.want {
				t.Errorf("class %s, want %s", got, test.want)
			}
		})
	}
}

func TestToolsAreSelectedByNameAndPrefix(t *testing.T) {
	for _, test := range []struct {
		selector, tool string
		want           bool
	}{
		{"mcp:a/b", "mcp:a/b", true}, {"mcp:a/b", "mcp:a/bc", false}, {"mcp:a/*", "mcp:a/b", true}, {"mcp:a/*", "mcp:a/", true},
		{"mcp:a/*", "mcp:ab/c", false}, {"mcp:a/*", "mcp:", false}, {"*", "anything", true}, {"*", "", false},
	} {
		rule := policy.Rule{Name: "r", Class: policy.ClassForbidden, Enforcement: policy.EnforcementEnforce, Match: policy.Match{Tools: []string{test.selector}}}
		op := update(harmless())
		op.Tool, op.Kubernetes = test.tool, nil
		got := compile(t, under(policy.Policy{Rules: []policy.Rule{rule}})).Decide(op, session(), now).Class == policy.ClassForbidden
		if got != test.want {
			t.Errorf("selector %q and tool %q: matched %v, want %v", test.selector, test.tool, got, test.want)
		}
	}
}
