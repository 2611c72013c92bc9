package enforcement

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

// Proves K-6: a rule that cannot be translated with certainty is left to the webhook, with the reason.
func TestWhatIsNotCertainStaysInProcess(t *testing.T) {
	plain := func(change func(*policy.Rule)) policy.Rule {
		r := forbid("r", "", "create - configmaps")
		change(&r)
		return r
	}
	when := func(expression string) policy.Rule { return plain(func(r *policy.Rule) { r.When = expression }) }
	for name, tc := range map[string]struct {
		rule   policy.Rule
		reason v1alpha1.InProcessReason
		says   string
	}{
		"ASK":                       {plain(func(r *policy.Rule) { r.Class = policy.ClassAsk }), v1alpha1.InProcessNotForbidden, "ASK"},
		"Warn":                      {plain(func(r *policy.Rule) { r.Enforcement = policy.EnforcementWarn }), v1alpha1.InProcessNotEnforced, "Warn"},
		"Audit":                     {plain(func(r *policy.Rule) { r.Enforcement = policy.EnforcementAudit }), v1alpha1.InProcessNotEnforced, "Audit"},
		"tools only":                {policy.Rule{Name: "r", Class: policy.ClassForbidden, Enforcement: policy.EnforcementEnforce, Match: policy.Match{Tools: []string{"mcp:x/*"}}}, v1alpha1.InProcessNoRequest, "no request"},
		"reads only":                {plain(func(r *policy.Rule) { r.Match.Kubernetes[0].Verbs = []policy.Verb{policy.VerbRead} }), v1alpha1.InProcessNoRequest, "no request"},
		"an origin":                 {plain(func(r *policy.Rule) { r.Match.Kubernetes[0].Origins = []policy.Origin{policy.OriginPerson} }), v1alpha1.InProcessReadsOrigin, "match.kubernetes[0].origins"},
		"the target":                {when(`target.origin == "Person"`), v1alpha1.InProcessNotPortable, "target"},
		"the session":               {when(`session.name == "x"`), v1alpha1.InProcessNotPortable, "session"},
		"pod templates":             {when(`target.podTemplates.exists(t, t.images.exists(i, i == "x"))`), v1alpha1.InProcessNotPortable, "target"},
		"presence in the request":   {when(`has(request.namespace)`), v1alpha1.InProcessNotPortable, "request.namespace"},
		"the request as a whole":    {when(`request.resource == request.resource`), v1alpha1.InProcessNotPortable, "request.resource"},
		"the request in a function": {when(`[request].size() == 1`), v1alpha1.InProcessNotPortable, "request"},
		"arithmetic":                {when(`object.spec.a + 1 == 2`), v1alpha1.InProcessNotPortable, "+"},
		"division":                  {when(`object.spec.a / 2 == 1`), v1alpha1.InProcessNotPortable, "/"},
		"a type":                    {when(`type(object.spec.a) == int`), v1alpha1.InProcessNotPortable, "type"},
		"a conversion":              {when(`int(object.spec.a) == 1`), v1alpha1.InProcessNotPortable, "int"},
		"a parser":                  {when(`quantity(object.spec.a).isGreaterThan(quantity("1"))`), v1alpha1.InProcessNotPortable, "not the same"},
		"a pattern of the object":   {when(`request.name.matches(object.spec.a)`), v1alpha1.InProcessNotPortable, "matches"},
		"a key of the object":       {when(`object.data[object.kind] == "x"`), v1alpha1.InProcessNotPortable, "an index"},
		"a key map of the object":   {when(`{object.kind: 1}.size() == 1`), v1alpha1.InProcessNotPortable, "literals"},
		"a mixed list":              {when(`object.spec.a in [1, "x"]`), v1alpha1.InProcessNotPortable, "admission refuses it"},
		"text of unequal versions":  {when(`"%s".format([object.kind]) == "x"`), v1alpha1.InProcessNotPortable, "format"},
		"an expression too long":    {plain(func(r *policy.Rule) { r.Match.Kubernetes[0].Names = []string{strings.Repeat("x", maxRuleCodePoints)} }), v1alpha1.InProcessTooLarge, "code points"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, problems := policy.Compile(policy.Set{Cluster: []policy.Policy{clusterPolicy("p", tc.rule)}}); len(problems) > 0 {
				t.Fatal(problems)
			}
			f := CompileForbidden([]policy.Policy{clusterPolicy("p", tc.rule)})
			if len(f.Rules()) > 0 || len(f.InProcess()) != 1 {
				t.Fatalf("compiled %v, in process %v", f.Rules(), f.InProcess())
			}
			left := f.InProcess()[0]
			if left.Name != "p/r" || left.Reason != tc.reason || !strings.Contains(left.Message, tc.says) || len(left.Message) > 256 {
				t.Errorf("got %+v, want %s with %q", left, tc.reason, tc.says)
			}
		})
	}
}

func TestAToolBesideRequestsLeavesTheRequestsCompiled(t *testing.T) {
	r := forbid("r", "", "create - configmaps")
	r.Match.Tools = []string{"mcp:kubernetes/*"}
	f := CompileForbidden([]policy.Policy{clusterPolicy("p", r)})
	if diff := cmp.Diff([]string{"p/r"}, f.Rules()); diff != "" {
		t.Error(diff)
	}
}

// What does not fit stays in process, and what comes after it by name and fits is compiled.
func TestRulesThatDoNotFitTheObjectStayInProcess(t *testing.T) {
	var rules []policy.Rule
	for i := range 20 {
		r := forbid(fmt.Sprintf("r%02d", i), "", "create - configmaps")
		r.Match.Kubernetes[0].Names = []string{strings.Repeat("x", 70_000)}
		rules = append(rules, r)
	}
	rules = append(rules, forbid("small", "", "create - configmaps"))
	f := CompileForbidden([]policy.Policy{clusterPolicy("p", rules...)})
	if n := len(f.Rules()); n != 10 || !slices.Contains(f.Rules(), "p/small") {
		t.Errorf("%d rules are compiled: %v", n, f.Rules())
	}
	for _, left := range f.InProcess() {
		if left.Reason != v1alpha1.InProcessTooLarge {
			t.Errorf("%+v", left)
		}
	}
}

func rendered(t *testing.T, f Forbidden) string {
	t.Helper()
	p := f.floorPolicy()
	text, err := json.Marshal(p.policy(nil, "v1"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func live(t *testing.T, f Forbidden) *admissionregistrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	var object admissionregistrationv1.ValidatingAdmissionPolicy
	if err := json.Unmarshal([]byte(rendered(t, f)), &object); err != nil {
		t.Fatal(err)
	}
	return &object
}

func TestEqualRulesGiveEqualBytes(t *testing.T) {
	a, b := slices.Clone(selectorRules), slices.Clone(selectorRules)
	slices.Reverse(b)
	for i := range b {
		b[i].Rules = slices.Clone(b[i].Rules)
		slices.Reverse(b[i].Rules)
	}
	if diff := cmp.Diff(rendered(t, CompileForbidden(a)), rendered(t, CompileForbidden(b))); diff != "" {
		t.Error(diff)
	}
}

// Proves K-6 and C-3: the rules of a cluster policy that is not in force stay word for word, also when they are kept again and
// again; those of a policy in force are replaced.
func TestRulesOfAPolicyThatIsGoneAreKept(t *testing.T) {
	withText := forbid("b", `object.data.mode == "x"`, "update apps deployments")
	withText.Detail, withText.Recovery = "Someone else owns it.", "Ask the owner."
	before := CompileForbidden([]policy.Policy{clusterPolicy("gone", forbid("a", "", "create - pods"), withText), clusterPolicy("here", forbid("old", "", "create - secrets"))})
	want := CompileForbidden([]policy.Policy{clusterPolicy("gone", forbid("a", "", "create - pods"), withText), clusterPolicy("here", forbid("new", "", "create - secrets"))})
	object := live(t, before)
	for range 3 {
		now := CompileForbidden([]policy.Policy{clusterPolicy("here", forbid("new", "", "create - secrets"))})
		now.Keep(object, []string{"here"})
		if diff := cmp.Diff(want.Rules(), now.Rules()); diff != "" {
			t.Fatal(diff)
		}
		wanted, got := live(t, want), live(t, now)
		if diff := cmp.Diff(wanted.Spec.Validations, got.Spec.Validations); diff != "" {
			t.Errorf("validations (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(len(wanted.Spec.MatchConstraints.ResourceRules), len(got.Spec.MatchConstraints.ResourceRules)); diff != "" {
			t.Errorf("rules of the constraints (-want +got):\n%s", diff)
		}
		object = got
	}
	none := CompileForbidden(nil)
	none.Keep(live(t, CompileForbidden(nil)), nil)
	if diff := cmp.Diff(rendered(t, CompileForbidden(nil)), rendered(t, none)); diff != "" {
		t.Errorf("a policy that forbids nothing is kept as a rule:\n%s", diff)
	}
}

// A refusal reads the same whether the manager or the API server gives it, but for its end.
func TestTheFloorWordsARuleAsTheEngineDoes(t *testing.T) {
	for name, change := range map[string]func(*policy.Rule){
		"neither detail nor recovery": func(*policy.Rule) {},
		"detail and recovery": func(r *policy.Rule) {
			r.Detail, r.Recovery = "The ledger is closed at night.", "Wait until the morning."
		},
		"text that is not ASCII": func(r *policy.Rule) { r.Detail = "Straße" },
	} {
		t.Run(name, func(t *testing.T) {
			r := forbid("ledger", "", "create - configmaps")
			change(&r)
			d := policy.Decision{
				Class: policy.ClassForbidden, Verdict: policy.VerdictDeny, Reason: policy.ReasonForbidden, Recovery: r.Recovery,
				Details: []policy.Detail{{Code: policy.CodeRule, Rule: "default/ledger", Class: policy.ClassForbidden, Why: r.Detail, Recovery: r.Recovery}},
			}
			op := policy.Operation{Verb: policy.VerbCreate, Target: policy.Target{Resource: "configmaps", Namespace: "shop", Name: "x"}}
			f := CompileForbidden([]policy.Policy{clusterPolicy("default", r)})
			before, after := f.checks[0].parts("v1")
			want := d.Message(&op, "floor v1")
			if got := before + "create configmaps shop/x" + after; got != want {
				t.Errorf("\nfloor:  %s\nengine: %s", got, want)
			}
		})
	}
	t.Run("the longest texts keep the bound and the next step", func(t *testing.T) {
		r := forbid(strings.Repeat("r", 63), "", "create - configmaps")
		r.Detail, r.Recovery = strings.Repeat("d", 240), strings.Repeat("n", 240)
		f := CompileForbidden([]policy.Policy{clusterPolicy(strings.Repeat("p", 253), r)})
		before, after := f.checks[0].parts("v12")
		message := before + strings.Repeat("o", maxOperation) + after
		if len(message) > maxMessage || !strings.Contains(message, "Next: "+strings.Repeat("n", 157)) || !strings.HasSuffix(message, ". [floor v12]") {
			t.Errorf("%d bytes: %s", len(message), message)
		}
	})
}
