package policy_test

import (
	"testing"

	"stepbeyond.dev/stepbeyond/policy"
)

// Proves C-3, G-9: bounds of answers join to the strictest of both namespaces, and what is not known is Exact.
func TestBoundsOfAnswersJoinToTheStrictest(t *testing.T) {
	named := func(name string, a policy.Approvals) policy.Policy {
		return policy.Policy{ID: policy.PolicyID{Kind: policy.KindProfile, Namespace: "stepbeyond-system", Name: name}, Approvals: a}
	}
	set := under(policy.Policy{})
	set.Profiles = map[string]policy.Policy{
		"wide":   named("wide", policy.Approvals{WidestScope: policy.ScopeTimeBoxed, MaxTimeBoxSeconds: 600, MaxTimeBoxUses: 5}),
		"narrow": named("narrow", policy.Approvals{WidestScope: policy.ScopeSession, MaxTimeBoxSeconds: 60, MaxTimeBoxUses: 9}),
		"odd":    named("odd", policy.Approvals{WidestScope: "Everything", MaxTimeBoxSeconds: 60, MaxTimeBoxUses: 9}),
		"silent": named("silent", policy.Approvals{WidestScope: policy.ScopeTimeBoxed}),
	}
	set.Namespaces = map[string]policy.Namespace{
		"wide": {Profile: "wide"}, "narrow": {Profile: "narrow"}, "odd": {Profile: "odd"}, "silent": {Profile: "silent"}, "lost": {Profile: "none"},
	}
	engine := compile(t, set)
	for _, test := range []struct {
		session, target string
		widest          policy.ScopeType
		seconds, uses   int32
	}{
		{"wide", "wide", policy.ScopeTimeBoxed, 600, 5},
		{"wide", "", policy.ScopeTimeBoxed, 600, 5},
		{"wide", "elsewhere", policy.ScopeTimeBoxed, 600, 5},
		{"wide", "narrow", policy.ScopeSession, 60, 5},
		{"narrow", "wide", policy.ScopeSession, 60, 5},
		{"odd", "odd", policy.ScopeExact, 60, 9},
		{"wide", "odd", policy.ScopeExact, 60, 5},
		{"silent", "silent", policy.ScopeExact, 0, 0},
		{"lost", "lost", policy.ScopeExact, 0, 0},
		{"wide", "lost", policy.ScopeExact, 600, 5},
		{"lost", "wide", policy.ScopeExact, 600, 5},
		{"elsewhere", "wide", policy.ScopeExact, 600, 5},
	} {
		b := engine.WidthBounds(test.session, test.target)
		if b.Widest != test.widest || b.Seconds != test.seconds || b.Uses != test.uses {
			t.Errorf("of %q on %q: %+v, want %s, %d s, %d uses", test.session, test.target, b, test.widest, test.seconds, test.uses)
		}
	}
	if by := engine.WidthBounds("wide", "narrow"); by.WidestBy.Name != "narrow" || by.SecondsBy.Name != "narrow" || by.UsesBy.Name != "wide" {
		t.Errorf("bounds %+v name other policies than those that set them", by)
	}
}
