package policystore_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

// values of all string constants of one type in a package of this module, sorted. A new one cannot be forgotten.
func values(t *testing.T, folder, typeName string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				if name, ok := value.Type.(*ast.Ident); !ok || name.Name != typeName {
					continue
				}
				text, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, text)
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no constants of type %s", folder, typeName)
	}
	slices.Sort(found)
	return found
}

const (
	stored = "../../api/v1alpha1"
	engine = "../../policy"
)

func TestEveryStoredValueHasItsEngineValue(t *testing.T) {
	engineOnly := map[string][]string{
		"Verb": {"impersonate"}, // closed by the baseline, and no rule need name it
	}
	for _, name := range []string{"Verb", "Origin", "Stage", "Capability", "Enforcement", "GrantState", "Effect", "ScopeType"} {
		want := append(values(t, stored, name), engineOnly[name]...)
		slices.Sort(want)
		if diff := cmp.Diff(want, values(t, engine, name)); diff != "" {
			t.Errorf("%s (-stored +engine):\n%s", name, diff)
		}
	}
	var facts, classes, tightening, presences, provenances []string
	for _, fact := range policy.AllFacts() {
		facts = append(facts, fact.String())
	}
	for class := policy.ClassAuto; class <= policy.ClassForbidden; class++ {
		classes = append(classes, class.String())
		rule := policy.Policy{Rules: []policy.Rule{{Name: "r", Class: class}}}
		if _, problems := policy.Compile(policy.Set{Cluster: []policy.Policy{rule}}); len(problems) == 0 {
			tightening = append(tightening, class.String())
		}
	}
	for _, p := range []policy.Presence{policy.Unknown, policy.Absent, policy.Present} {
		presences = append(presences, p.String())
	}
	for p := policy.Declared; p.String() != ""; p++ {
		provenances = append(provenances, p.String())
	}
	for name, got := range map[string][]string{
		"Fact": facts, "Class": classes, "RuleClass": tightening, "FactValue": presences, "Provenance": provenances,
	} {
		if diff := cmp.Diff(values(t, stored, name), slices.Sorted(slices.Values(got))); diff != "" {
			t.Errorf("%s (-stored +engine):\n%s", name, diff)
		}
	}
}

// unmapped are fields of a spec that the engine does not decide with, and who reads them instead.
var unmapped = map[string]string{
	"cluster.baselineVersion":         "Build chooses the embedded baseline with it",
	"cluster.governed":                "the scope of the webhook, compiled by internal/enforcement",
	"cluster.profiles":                "Build binds namespaces with it",
	"cluster.serviceAccountApprovers": "asked of the snapshot when a grant is decided",
	"cluster.answerRelays":            "asked of the snapshot when a grant is decided",
	"cluster.delegation":              "Build takes a namespace's own settings with it",

	"policy.modelTier":                         "scaffolding of sessions, never a class (requirement T-1)",
	"policy.initiative":                        "filters optional work and denies no call (requirement N-4)",
	"policy.confidence":                        "thresholds of declared confidence, which admission does not know",
	"policy.retention":                         "housekeeping of the controllers",
	"policy.sessionTemplates":                  "identity derives sessions from it",
	"policy.approvals.warnBeforeExpirySeconds": "a notice to people",
	"policy.approvals.sessionUser":             "admission joins it when a person answers, where the approver is known",
	"policy.caps.maxSessions":                  "counted by the controllers",
	"policy.caps.maxChildSessionsPerSession":   "counted by the controllers",
	"policy.caps.maxMutationsPerSession":       "counted by the controllers",

	"authority.budgets": "counted by the controllers",
}

// another is a value of each type that differs from what an omission gives.
var another = map[reflect.Type]any{
	reflect.TypeFor[string](): "x", reflect.TypeFor[int32](): int32(7),
	reflect.TypeFor[v1alpha1.Enforcement](): v1alpha1.EnforcementWarn, reflect.TypeFor[v1alpha1.RuleClass](): v1alpha1.RuleClassAsk,
	reflect.TypeFor[v1alpha1.Fact](): v1alpha1.FactCost, reflect.TypeFor[v1alpha1.Verb](): v1alpha1.VerbDelete,
	reflect.TypeFor[v1alpha1.Origin](): v1alpha1.OriginPerson, reflect.TypeFor[v1alpha1.Stage](): v1alpha1.StagePublish,
	reflect.TypeFor[v1alpha1.Effect]():              v1alpha1.EffectRead,
	reflect.TypeFor[v1alpha1.Capability]():          v1alpha1.CapabilityExecuteLocal,
	reflect.TypeFor[v1alpha1.SessionUserApproval](): v1alpha1.SessionUserRefuse,
	reflect.TypeFor[v1alpha1.ScopeType]():           v1alpha1.ScopeSession,
}

// leaf is a field without fields of its own.
type leaf struct {
	value reflect.Value
	set   func()
}

// leaves calls yield for every leaf with its path. Structures on the way exist before; lists on the way have one element.
func leaves(path string, value reflect.Value, skip func(path string) bool, yield func(path string, field leaf)) {
	if skip(path) {
		return
	}
	element := value.Type()
	if value.Kind() == reflect.Pointer || value.Kind() == reflect.Slice {
		element = element.Elem()
	}
	switch {
	case value.Kind() == reflect.Struct:
		for i := range value.NumField() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			leaves(path+"."+name, value.Field(i), skip, yield)
		}
	case value.Kind() == reflect.Pointer && element.Kind() == reflect.Struct:
		value.Set(reflect.New(element))
		leaves(path, value.Elem(), skip, yield)
	case value.Kind() == reflect.Slice && element.Kind() == reflect.Struct:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		leaves(path, value.Index(0), skip, yield)
	case value.Kind() == reflect.Pointer:
		yield(path, leaf{value, func() {
			value.Set(reflect.New(element))
			value.Elem().Set(reflect.ValueOf(another[element]))
		}})
	case value.Kind() == reflect.Slice:
		yield(path, leaf{value, func() { value.Set(reflect.Append(value, reflect.ValueOf(another[element]))) }})
	default:
		yield(path, leaf{value, func() { value.Set(reflect.ValueOf(another[element])) }})
	}
}

// checkMapped converts a spec once without and once with each field, and compares.
func checkMapped(t *testing.T, name string, spec reflect.Value, convert func() any) {
	t.Helper()
	skipped := map[string]bool{}
	skip := func(path string) bool {
		_, ok := unmapped[path]
		if ok {
			skipped[path] = true
		}
		return ok
	}
	var fields []leaf
	var paths []string
	leaves(name, spec, skip, func(path string, field leaf) {
		paths, fields = append(paths, path), append(fields, field)
	})
	before := convert()
	for i, field := range fields {
		was := reflect.ValueOf(field.value.Interface())
		field.set()
		if cmp.Equal(before, convert()) {
			t.Errorf("%s changes nothing for the engine: map it, or list it as unmapped with the reason", paths[i])
		}
		field.value.Set(was)
	}
	if len(fields) == 0 {
		t.Errorf("%s has no fields", name)
	}
	for path := range maps.Keys(unmapped) {
		if strings.HasPrefix(path, name+".") && !skipped[path] {
			t.Errorf("%s is listed as unmapped and is no field", path)
		}
	}
}

func TestEverySpecFieldReachesTheEngineOrSaysWhyNot(t *testing.T) {
	cluster, own, authority := v1alpha1.ClusterAgentPolicy{}, v1alpha1.AgentPolicy{}, v1alpha1.Authority{}
	checkMapped(t, "cluster", reflect.ValueOf(&cluster.Spec).Elem(), func() any { return policystore.FromClusterAgentPolicy(&cluster) })
	checkMapped(t, "policy", reflect.ValueOf(&own.Spec).Elem(), func() any { return policystore.FromAgentPolicy(&own, false) })
	checkMapped(t, "authority", reflect.ValueOf(&authority).Elem(), func() any { return policystore.AuthorityOf(&authority) })
}

// Proves C-3: an omission never weakens.
func TestARuleWithoutEnforcementTakesItsObjects(t *testing.T) {
	const enforce, warn, audit = v1alpha1.EnforcementEnforce, v1alpha1.EnforcementWarn, v1alpha1.EnforcementAudit
	for _, test := range []struct {
		own, object v1alpha1.Enforcement
		want        policy.Enforcement
	}{
		{"", "", policy.EnforcementEnforce}, {"", enforce, policy.EnforcementEnforce}, {"", warn, policy.EnforcementWarn}, {"", audit, policy.EnforcementAudit},
		{enforce, audit, policy.EnforcementEnforce}, {warn, enforce, policy.EnforcementWarn}, {audit, warn, policy.EnforcementAudit},
		{"Unheard", "", policy.EnforcementEnforce},
	} {
		object := v1alpha1.AgentPolicy{Spec: v1alpha1.AgentPolicySpec{RulesEnforcement: test.object, Rules: []v1alpha1.Rule{{Name: "r", Enforcement: test.own}}}}
		for _, profile := range []bool{true, false} {
			if got := policystore.FromAgentPolicy(&object, profile).Rules[0].Enforcement; got != test.want {
				t.Errorf("rule %q in object %q (profile %v) is %s, want %s", test.own, test.object, profile, got, test.want)
			}
		}
	}
}

func TestOmittedNumbersAreTheDefaultsInAProfileOnly(t *testing.T) {
	five, fifty := int32(v1alpha1.DefaultMaxPendingGrantsPerSession), int32(v1alpha1.DefaultMaxPendingGrants)
	want := policy.Approvals{
		DecideWithinSeconds: v1alpha1.DefaultDecideWithinSeconds, UseWithinSeconds: v1alpha1.DefaultUseWithinSeconds,
		AskAgainAfterSeconds: v1alpha1.DefaultAskAgainAfterSeconds, MaxPendingPerSession: &five, MaxPendingPerNamespace: &fifty,
		WidestScope: policy.ScopeExact, MaxTimeBoxSeconds: v1alpha1.DefaultMaxTimeBoxSeconds, MaxTimeBoxUses: v1alpha1.DefaultMaxTimeBoxUses,
	}
	if diff := cmp.Diff(want, policystore.FromAgentPolicy(&v1alpha1.AgentPolicy{}, true).Approvals); diff != "" {
		t.Errorf("a profile that states nothing (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(policy.Approvals{}, policystore.FromAgentPolicy(&v1alpha1.AgentPolicy{}, false).Approvals); diff != "" {
		t.Errorf("a namespace's policy that states nothing would tighten the profile (-want +got):\n%s", diff)
	}
}

func TestReferencesNameTheObjectsOfAnIdentity(t *testing.T) {
	got := policystore.References([]policy.PolicyID{
		{Kind: policy.KindBaseline, Name: "baseline", UID: "v1"},
		{Kind: "ClusterAgentPolicy", Name: "default", UID: "u1", Generation: 3},
		{Kind: policy.KindProfile, Namespace: "stepbeyond-system", Name: "standard", UID: "u2", Generation: 1},
		{Kind: "AgentPolicy", Namespace: "payments", Name: "default", UID: "u3", Generation: 2},
	})
	want := []v1alpha1.PolicyReference{
		{Kind: "ClusterAgentPolicy", Name: "default", UID: "u1", Generation: 3},
		{Kind: "AgentPolicy", Namespace: "stepbeyond-system", Name: "standard", UID: "u2", Generation: 1},
		{Kind: "AgentPolicy", Namespace: "payments", Name: "default", UID: "u3", Generation: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}
