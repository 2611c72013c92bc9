package policy_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/expr"
)

func TestProblemsNamePolicyFieldRuleAndPlace(t *testing.T) {
	id := policy.PolicyID{Kind: "AgentPolicy", Namespace: "payments", Name: "default", UID: "u1", Generation: 4}
	own := policy.Policy{
		ID: id,
		Rules: []policy.Rule{
			{Name: "fine", Class: policy.ClassAsk, Match: everything(), When: "request.verb == 'create'"},
			{Name: "typo", Class: policy.ClassAsk, Match: everything(), When: "request.verb == 'create' &&\n  request.nam == 'a'"},
			{Name: "number", Class: policy.ClassAsk, Match: everything(), When: "1 + 1"},
			{Name: "loosens", Class: policy.ClassAuto, Match: everything()},
		},
		Catalogue: []policy.CatalogueEntry{{Name: "open", Match: everything(), When: "(true"}},
	}
	set := under(policy.Policy{})
	set.Namespaces["payments"] = policy.Namespace{Profile: "standard", Policy: &own}
	engine, got := policy.Compile(set)
	if engine != nil {
		t.Error("an engine with problems came into being: a policy would be half in force")
	}
	want := []policy.Problem{
		{Policy: id, Field: "rules[1].when", Rule: "typo", Line: 2, Column: 10, Message: "undefined field 'nam'"},
		{Policy: id, Field: "rules[2].when", Rule: "number", Line: 1, Column: 1, Message: "the expression must give a bool, not int"},
		{Policy: id, Field: "rules[3].class", Rule: "loosens", Message: "a rule tightens: the class must be ASK or FORBIDDEN"},
		{Policy: id, Field: "catalogue[0].when", Rule: "open", Line: 1, Column: 6, Message: "Syntax error: missing ')' at '<EOF>'"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if text := got[0].Error(); text != "rules[1].when (typo), line 2, column 10: undefined field 'nam'" {
		t.Errorf("problem reads %q", text)
	}
	if text := got[2].Error(); text != "rules[3].class (loosens): a rule tightens: the class must be ASK or FORBIDDEN" {
		t.Errorf("problem reads %q", text)
	}
}

// Proves F-1: a rule that errs counts as matched, a catalogue entry that errs as unmatched.
func TestWhatCannotBeEvaluatedDoesNotPass(t *testing.T) {
	const errs = "object.missing == 1"
	rule := policy.Rule{Name: "r", Class: policy.ClassForbidden, Enforcement: policy.EnforcementEnforce, Match: everything(), When: errs}
	d := compile(t, under(policy.Policy{Rules: []policy.Rule{rule}})).Decide(update(harmless()), session(), now)
	if d.Class != policy.ClassForbidden || d.Details[0].Rule != "default/r" {
		t.Errorf("class %s for %+v, want FORBIDDEN by default/r", d.Class, d.Details)
	}
	entry := policy.CatalogueEntry{Name: "e", Match: everything(), When: errs, Present: []policy.Fact{policy.Reversible}}
	f := harmless()
	f[policy.Reversible] = policy.FactValue{}
	if d := compile(t, under(policy.Policy{Catalogue: []policy.CatalogueEntry{entry}})).Decide(update(f), session(), now); d.Class != policy.ClassAsk {
		t.Errorf("class %s, want ASK: the entry vouches for nothing", d.Class)
	}
	entry.When = "true"
	if d := compile(t, under(policy.Policy{Catalogue: []policy.CatalogueEntry{entry}})).Decide(update(f), session(), now); d.Class != policy.ClassAuto {
		t.Errorf("class %s, want AUTO: the entry can be evaluated", d.Class)
	}
}

// Proves F-1: what the rules of one decision cost together is bounded, and a rule that is not run any more counts as
// matched.
func TestTheCostOfOneDecisionIsBounded(t *testing.T) {
	const costly = "!object.list.all(a, object.list.all(b, a + b >= 0))"
	op := update(harmless())
	program, err := expr.Compile(costly)
	if err != nil {
		t.Fatal(err)
	}
	numbers := func(n float64) []any {
		list := make([]any, int(n))
		for i := range list {
			list[i] = int64(i)
		}
		return list
	}
	// The cost grows with the square of the length: find one that stays just below the limit of one program.
	_, small, err := program.Eval(&expr.View{Object: map[string]any{"list": numbers(100)}})
	if err != nil {
		t.Fatal(err)
	}
	op.Kubernetes.Object["list"] = numbers(100 * math.Sqrt(0.9*expr.MaxCost/float64(small)))
	if _, cost, err := program.Eval(&expr.View{Object: op.Kubernetes.Object}); err != nil || cost < 0.8*expr.MaxCost {
		t.Fatalf("the check costs %d, %v; want just below the limit of %d", cost, err, expr.MaxCost)
	}
	classWith := func(rules int) policy.Class {
		p := policy.Policy{}
		for i := range rules {
			p.Rules = append(p.Rules, policy.Rule{Name: fmt.Sprint(i), Class: policy.ClassAsk, Enforcement: policy.EnforcementEnforce, Match: everything(), When: costly})
		}
		return compile(t, under(p)).Decide(op, session(), now).Class
	}
	if class := classWith(2); class != policy.ClassAuto {
		t.Errorf("2 rules that do not match give %s, want AUTO", class)
	}
	if class := classWith(7); class != policy.ClassAsk {
		t.Errorf("7 rules that cost more than a decision may give %s, want ASK", class)
	}
}

// A harm that several know of has the way out of the first by name, also when a parser found it too.
func TestTheCatalogueKnowsTheWayOut(t *testing.T) {
	entry := func(name, recovery string) policy.CatalogueEntry {
		return policy.CatalogueEntry{Name: name, Match: everything(), Present: []policy.Fact{policy.EscalatesAuthority}, Recovery: recovery}
	}
	f := harmless()
	f[policy.EscalatesAuthority] = policy.FactValue{Presence: policy.Present, Provenance: policy.Parsed, Why: "found"}
	for _, entries := range [][]policy.CatalogueEntry{
		{entry("a", ""), entry("b", "ask b"), entry("c", "ask c")}, {entry("c", "ask c"), entry("b", "ask b"), entry("a", "")},
	} {
		d := compile(t, under(policy.Policy{Catalogue: entries})).Decide(update(f), session(), now)
		if d.Reason != policy.ReasonForbidden || d.Recovery != "ask b" {
			t.Errorf("answer %s with next step %q, want Forbidden with that of entry b", d.Reason, d.Recovery)
		}
	}
}

// Proves C-3: requirements of several policies are listed alike, in whatever order the policies come.
func TestRequirementsAreListedAlike(t *testing.T) {
	named := func(name string) policy.Policy {
		return policy.Policy{
			ID:        policy.PolicyID{Kind: "ClusterAgentPolicy", Name: name},
			Rules:     []policy.Rule{{Name: "ask", Class: policy.ClassAsk, Enforcement: policy.EnforcementEnforce, Match: everything()}},
			Approvals: policy.Approvals{Requirements: []policy.Requirement{{Name: "r", Required: 1}}},
		}
	}
	for _, order := range [][]policy.Policy{{named("a"), named("b")}, {named("b"), named("a")}} {
		set := under(policy.Policy{})
		set.Cluster = order
		var got []string
		for _, r := range compile(t, set).Decide(update(harmless()), session(), now).Approvals.Requirements {
			got = append(got, r.Name)
		}
		if want := []string{"a/r", "b/r"}; !slices.Equal(want, got) {
			t.Errorf("requirements %v, want %v", got, want)
		}
	}
}

func TestSelectors(t *testing.T) {
	scale := update(harmless())
	scale.Target.Group, scale.Target.Resource, scale.Target.Subresource, scale.Target.Name = "apps", "deployments", "scale", "web-1"
	for _, test := range []struct {
		name     string
		selector policy.KubernetesSelector
		change   func(*policy.Operation)
		want     bool
	}{
		{"an empty selector matches everything", policy.KubernetesSelector{}, nil, true},
		{"its group, resource, name, verb and origin match", policy.KubernetesSelector{
			Groups: []string{"apps"}, Resources: []string{"deployments/scale"}, Names: []string{"web-1"},
			Verbs: []policy.Verb{policy.VerbUpdate}, Origins: []policy.Origin{policy.OriginThisSession},
		}, nil, true},
		{"another group does not", policy.KubernetesSelector{Groups: []string{""}}, nil, false},
		{"any group does", policy.KubernetesSelector{Groups: []string{"*"}}, nil, true},
		{"the resource alone does not select its subresource", policy.KubernetesSelector{Resources: []string{"deployments"}}, nil, false},
		{"a star after the slash does", policy.KubernetesSelector{Resources: []string{"deployments/*"}}, nil, true},
		{
			"a star after the slash does not select the resource itself", policy.KubernetesSelector{Resources: []string{"deployments/*"}},
			func(op *policy.Operation) { op.Target.Subresource = "" }, false,
		},
		{"a star selects subresources too", policy.KubernetesSelector{Resources: []string{"*"}}, nil, true},
		{"a star after a prefix selects the name", policy.KubernetesSelector{Names: []string{"web-*"}}, nil, true},
		{"another prefix does not", policy.KubernetesSelector{Names: []string{"api-*"}}, nil, false},
		{"a whole name is no prefix", policy.KubernetesSelector{Names: []string{"web"}}, nil, false},
		{
			"a request without a name is selected by a star only", policy.KubernetesSelector{Names: []string{"web-*", "web"}},
			func(op *policy.Operation) { op.Target.Name = "" }, false,
		},
		{
			"a star selects a request without a name", policy.KubernetesSelector{Names: []string{"*"}},
			func(op *policy.Operation) { op.Target.Name = "" }, true,
		},
		{"another verb does not", policy.KubernetesSelector{Verbs: []policy.Verb{policy.VerbCreate, policy.VerbDelete}}, nil, false},
		{"another origin does not", policy.KubernetesSelector{Origins: []policy.Origin{policy.OriginPerson}}, nil, false},
		{"a tool call is no Kubernetes request", policy.KubernetesSelector{}, func(op *policy.Operation) { op.Kubernetes, op.Tool = nil, "mcp:a" }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			op := scale
			if test.change != nil {
				test.change(&op)
			}
			rule := policy.Rule{
				Name: "r", Class: policy.ClassForbidden, Enforcement: policy.EnforcementEnforce,
				Match: policy.Match{Kubernetes: []policy.KubernetesSelector{test.selector}},
			}
			d := compile(t, under(policy.Policy{Rules: []policy.Rule{rule}})).Decide(op, session(), now)
			if got := d.Class == policy.ClassForbidden; got != test.want {
				t.Errorf("matches = %v, want %v", got, test.want)
			}
		})
	}
}

// Proves C-3: settings of several policies join to the strictest, and a policy without requirements opens nothing.
func TestApprovalsJoinToTheStrictest(t *testing.T) {
	three, nine, none := int32(3), int32(9), int32(0)
	ask := []policy.Rule{{Name: "ask", Class: policy.ClassAsk, Enforcement: policy.EnforcementEnforce, Match: everything()}}
	set := under(policy.Policy{Rules: ask})
	set.Profiles["standard"] = policy.Policy{
		ID:        policy.PolicyID{Kind: policy.KindProfile, Name: "standard"},
		Approvals: policy.Approvals{DecideWithinSeconds: 100, UseWithinSeconds: 50, AskAgainAfterSeconds: 10, MaxPendingPerSession: &three, MaxPendingPerNamespace: &three},
	}
	set.Namespaces["checkout"] = policy.Namespace{Profile: "standard", Policy: &policy.Policy{
		ID:        policy.PolicyID{Kind: "AgentPolicy", Namespace: "checkout", Name: "default"},
		Approvals: policy.Approvals{DecideWithinSeconds: 200, UseWithinSeconds: 20, AskAgainAfterSeconds: 30, MaxPendingPerSession: &none, MaxPendingPerNamespace: &nine},
	}}
	got := compile(t, set).Decide(update(harmless()), session(), now).Approvals
	want := policy.Approvals{
		DecideWithinSeconds: 100, UseWithinSeconds: 20, AskAgainAfterSeconds: 30, MaxPendingPerSession: &none, MaxPendingPerNamespace: &three,
		Requirements: []policy.Requirement{{Name: "baseline/one-person", Required: 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("approvals (-want +got):\n%s", diff)
	}
}

// Proves G-9: requirements are selected by fact, resource and rule; what is not known counts as its worst value.
func TestRequirementsAreSelected(t *testing.T) {
	f := harmless()
	f[policy.Destructive] = policy.FactValue{Presence: policy.Present, Provenance: policy.Parsed}
	f[policy.Cost] = policy.FactValue{}
	p := policy.Policy{
		Rules: []policy.Rule{{Name: "ask", Class: policy.ClassAsk, Enforcement: policy.EnforcementEnforce, Match: everything()}},
		Approvals: policy.Approvals{Requirements: []policy.Requirement{
			{Name: "every"}, {Name: "present", Facts: []policy.Fact{policy.Destructive}}, {Name: "unknown", Facts: []policy.Fact{policy.Cost}},
			{Name: "absent", Facts: []policy.Fact{policy.External, policy.Security}}, {Name: "missing-good", Facts: []policy.Fact{policy.Reversible}},
			{Name: "resource", Resources: []string{"configmaps"}}, {Name: "other-resource", Resources: []string{"secrets"}},
			{Name: "fact-and-other-resource", Facts: []policy.Fact{policy.Destructive}, Resources: []string{"secrets"}},
			{Name: "rule", Rules: []string{"default/ask"}}, {Name: "other-rule", Rules: []string{"ask", "other/ask"}},
			{Name: "rule-or-fact", Rules: []string{"none"}, Facts: []policy.Fact{policy.Destructive}},
		}},
	}
	var got []string
	for _, r := range compile(t, under(p)).Decide(update(f), session(), now).Approvals.Requirements {
		got = append(got, r.Name)
	}
	want := []string{"default/every", "default/present", "default/unknown", "default/resource", "default/rule", "default/rule-or-fact"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requirements (-want +got):\n%s", diff)
	}
}

// Proves G-2 for policies: the identity changes with each policy that counts, and with no other.
func TestPolicyIdentityIsThatOfThePoliciesThatCount(t *testing.T) {
	set := func() policy.Set {
		s := under(policy.Policy{})
		s.Profiles["production"] = policy.Policy{ID: policy.PolicyID{Kind: policy.KindProfile, Name: "production"}}
		s.Namespaces["payments"] = policy.Namespace{Profile: "production", Policy: &policy.Policy{
			ID: policy.PolicyID{Kind: "AgentPolicy", Namespace: "payments", Name: "default"},
		}}
		return s
	}
	_, before := compile(t, set()).Identity("checkout", "checkout")
	for name, test := range map[string]struct {
		change func(*policy.Set)
		counts bool
	}{
		"the baseline":               {func(s *policy.Set) { s.Baseline.ID.UID = "v2" }, true},
		"a cluster policy's spec":    {func(s *policy.Set) { s.Cluster[0].ID.Generation++ }, true},
		"a cluster policy made anew": {func(s *policy.Set) { s.Cluster[0].ID.UID = "other" }, true},
		"one more cluster policy": {func(s *policy.Set) {
			s.Cluster = append(s.Cluster, policy.Policy{ID: policy.PolicyID{Kind: "ClusterAgentPolicy", Name: "b"}})
		}, true},
		"the profile": {func(s *policy.Set) {
			s.Profiles["standard"] = policy.Policy{ID: policy.PolicyID{Kind: policy.KindProfile, Name: "standard", Generation: 2}}
		}, true},
		"another profile": {func(s *policy.Set) {
			s.Profiles["production"] = policy.Policy{ID: policy.PolicyID{Kind: policy.KindProfile, Name: "production", Generation: 2}}
		}, false},
		"another namespace's own": {func(s *policy.Set) { s.Namespaces["payments"].Policy.ID.Generation++ }, false},
		"a namespace that joins":  {func(s *policy.Set) { s.Namespaces["search"] = policy.Namespace{Profile: "standard"} }, false},
		"the namespace's new own one": {func(s *policy.Set) {
			s.Namespaces["checkout"] = policy.Namespace{Profile: "standard", Policy: &policy.Policy{ID: policy.PolicyID{Kind: "AgentPolicy", Namespace: "checkout", Name: "default"}}}
		}, true},
		"the namespace's new profile": {func(s *policy.Set) { s.Namespaces["checkout"] = policy.Namespace{Profile: "production"} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			changed := set()
			test.change(&changed)
			if _, after := compile(t, changed).Identity("checkout", "checkout"); (after != before) != test.counts {
				t.Errorf("the identity changes: %v, want %v", after != before, test.counts)
			}
		})
	}
	ids, _ := compile(t, set()).Identity("checkout", "payments")
	var names []string
	for _, id := range ids {
		names = append(names, id.RulePrefix())
	}
	if want := []string{"payments/default", "baseline", "default", "production", "standard"}; !slices.Equal(want, names) {
		t.Errorf("policies between checkout and payments are %v, want %v", names, want)
	}
}
