package policystore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

var now = metav1.NewTime(time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC))

// clusterPolicy governs labelled namespaces and binds profiles of the same name.
func clusterPolicy(name string, profiles ...string) v1alpha1.ClusterAgentPolicy {
	object := v1alpha1.ClusterAgentPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1}}
	object.Spec.BaselineVersion = "v1"
	object.Spec.Governed.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
		{Key: v1alpha1.LabelProfile, Operator: metav1.LabelSelectorOpExists},
	}
	for _, profile := range profiles {
		object.Spec.Profiles = append(object.Spec.Profiles, v1alpha1.ProfileBinding{
			Name: profile, AgentPolicyName: profile, FloorEnforcement: v1alpha1.FloorEnforcementEnforce,
		})
	}
	return object
}

func agentPolicy(namespace, name string) v1alpha1.AgentPolicy {
	object := v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name), Generation: 1,
	}}
	object.Spec.SessionTemplates = []v1alpha1.SessionTemplate{{Name: "agent", ServiceAccountName: "agent"}}
	return object
}

func profile(name string) v1alpha1.AgentPolicy { return agentPolicy(enforcement.SystemNamespace, name) }

func namespace(name, profile string) corev1.Namespace {
	object := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if profile != "" {
		object.Labels = map[string]string{v1alpha1.LabelProfile: profile}
	}
	return object
}

// input is one cluster policy with profile standard and two namespaces, of which one is governed.
func input() policystore.Input {
	return policystore.Input{
		Cluster:    []v1alpha1.ClusterAgentPolicy{clusterPolicy("default", "standard")},
		Policies:   []v1alpha1.AgentPolicy{profile("standard")},
		Namespaces: []corev1.Namespace{namespace("checkout", "standard"), namespace("elsewhere", "")},
		Now:        now,
	}
}

func build(t *testing.T, in policystore.Input) *policystore.Snapshot {
	t.Helper()
	snapshot, err := policystore.Build(in)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// broken is a rule whose expression does not compile.
var broken = v1alpha1.Rule{Name: "broken", Class: v1alpha1.RuleClassAsk, When: "true &&"}

// forbidding is a rule that closes the creation of ConfigMaps.
func forbidding(name string) v1alpha1.Rule {
	return v1alpha1.Rule{Name: name, Class: v1alpha1.RuleClassForbidden, Match: v1alpha1.OperationMatch{Kubernetes: []v1alpha1.KubernetesMatch{{
		Groups: []string{""}, Resources: []string{"configmaps"}, Verbs: []v1alpha1.Verb{v1alpha1.VerbCreate},
	}}}}
}

// answer to the creation of a ConfigMap by a session of namespace checkout.
func answer(snapshot *policystore.Snapshot) policy.Decision {
	const namespace = "checkout"
	op := policy.Operation{
		Capability: policy.CapabilityExecuteLocal, Stage: policy.StageExecute, Verb: policy.VerbCreate, Kubernetes: &policy.KubernetesRequest{},
		Target: policy.Target{Version: "v1", Resource: "configmaps", Namespace: namespace, Name: "web", Origin: policy.OriginUnknown},
	}
	for _, fact := range []policy.Fact{policy.Local, policy.InScope} {
		op.Facts.Add(fact, policy.FactValue{Presence: policy.Present, Provenance: policy.Authoritative})
	}
	return snapshot.Engine.Decide(op, policy.SessionView{
		State: policy.SessionActive, Namespace: namespace, Name: "agent", UID: "u", Epoch: 1,
		Authority: policy.Authority{Stages: []policy.Stage{policy.StageExecute}, Capabilities: []policy.Capability{policy.CapabilityExecuteLocal}, Namespaces: []string{namespace}},
	}, now.Time)
}

func messages(problems []policy.Problem) []string {
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.Error())
	}
	return texts
}

func TestALabelledNamespaceIsGovernedUnderItsProfile(t *testing.T) {
	snapshot := build(t, input())
	if !snapshot.Governs("checkout") || snapshot.Governs("elsewhere") {
		t.Errorf("governed: checkout %v, elsewhere %v; want only checkout", snapshot.Governs("checkout"), snapshot.Governs("elsewhere"))
	}
	if diff := cmp.Diff(enforcement.Scope{Namespaces: []string{"checkout"}}, snapshot.Scope); diff != "" {
		t.Errorf("scope (-want +got):\n%s", diff)
	}
	if d := answer(snapshot); d.Verdict != policy.VerdictAllow {
		t.Errorf("harmless work is answered with %s %s, want Allow", d.Verdict, d.Reason)
	}
	settings, _ := snapshot.Namespace("checkout")
	if settings.ModelTier != v1alpha1.ModelTierMedium || settings.InitiativeMode != v1alpha1.InitiativeModeStandard {
		t.Errorf("tier %s and mode %s, want the defaults medium and standard", settings.ModelTier, settings.InitiativeMode)
	}
	if template, ok := snapshot.Template("checkout", "agent"); !ok || template.Name != "agent" {
		t.Errorf("template of agent = %q, %v", template.Name, ok)
	}
	if _, ok := snapshot.Template("checkout", "deployer"); ok {
		t.Error("a ServiceAccount that no template names has one")
	}
}

// Proves F-1: whatever cannot be known of a namespace's policy, governed work in it is refused.
func TestANamespaceWithoutAValidPolicyRefuses(t *testing.T) {
	for name, change := range map[string]func(*policystore.Input){
		"a label that no binding names":        func(in *policystore.Input) { in.Namespaces[0] = namespace("checkout", "standrad") },
		"a binding whose profile is not there": func(in *policystore.Input) { in.Policies = nil },
		"a profile in another namespace":       func(in *policystore.Input) { in.Policies[0].Namespace = "platform" },
		"a profile with a rule that is broken": func(in *policystore.Input) { in.Policies[0].Spec.Rules = []v1alpha1.Rule{broken} },
		"a policy of its own that is broken": func(in *policystore.Input) {
			own := agentPolicy("checkout", "default")
			own.Spec.Rules = []v1alpha1.Rule{broken}
			in.Policies = append(in.Policies, own)
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input()
			change(&in)
			snapshot := build(t, in)
			if !snapshot.Governs("checkout") || !slices.Contains(snapshot.Scope.Namespaces, "checkout") {
				t.Error("the namespace is not governed any more: a mistake would open it")
			}
			if d := answer(snapshot); d.Verdict != policy.VerdictDeny || d.Reason != policy.ReasonPolicyMissing {
				t.Errorf("answer %s %s, want Deny PolicyMissing", d.Verdict, d.Reason)
			}
		})
	}
}

func TestTwoBindingsOfOneProfileStallBoth(t *testing.T) {
	in := input()
	in.Cluster = append(in.Cluster, clusterPolicy("second", "standard"), clusterPolicy("third", "other"))
	in.Cluster[1].Spec.Rules = []v1alpha1.Rule{forbidding("r")}
	snapshot := build(t, in)
	want := []string{`profiles (standard): profile "standard" is bound by ClusterAgentPolicy default and second`}
	for _, id := range []types.UID{"uid-default", "uid-second"} {
		if diff := cmp.Diff(want, messages(snapshot.Problems(id))); diff != "" {
			t.Errorf("problems of %s (-want +got):\n%s", id, diff)
		}
	}
	if found := snapshot.Problems("uid-third"); len(found) > 0 {
		t.Errorf("a policy that shares no binding has problems: %v", found)
	}
	// The third one still selects the namespace, and does not bind its profile.
	if d := answer(snapshot); d.Reason != policy.ReasonPolicyMissing {
		t.Errorf("answer %s %s, want PolicyMissing", d.Verdict, d.Reason)
	}
}

func TestProblemsAreNamed(t *testing.T) {
	in := input()
	in.Cluster[0].Spec.BaselineVersion = "v9"
	in.Cluster[0].Spec.Rules = []v1alpha1.Rule{broken}
	in.Cluster[0].Spec.Governed.NamespaceSelector.MatchExpressions[0].Operator = "Unheard"
	in.Policies[0].Spec.Rules = []v1alpha1.Rule{broken}
	got := messages(policystore.CheckCluster(&in.Cluster[0]))
	for i, want := range []string{
		"baselineVersion (v9): this binary embeds v1", "governed.namespaceSelector (default): ", "rules[0].when (broken), line 1, column ",
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Errorf("problem %d of %q, want one that begins with %q", i, got, want)
		}
	}
	if got := messages(policystore.CheckAgentPolicy(&in.Policies[0])); len(got) != 1 || !strings.HasPrefix(got[0], "rules[0].when (broken), line 1, column ") {
		t.Errorf("problems of the profile are %q", got)
	}
	snapshot := build(t, in)
	if len(snapshot.Problems("uid-default")) != 3 {
		t.Errorf("the snapshot has the problems %v, want all three", snapshot.Problems("uid-default"))
	}
	if snapshot.Governs("checkout") {
		t.Error("an object that never was valid governs")
	}
}

// Proves F-1: the rules of a cluster policy that never was valid are unknown, and they would count everywhere.
func TestAClusterPolicyThatNeverWasValidRefusesEverywhere(t *testing.T) {
	in := input()
	other := clusterPolicy("broken", "other")
	other.Spec.Rules = []v1alpha1.Rule{broken}
	in.Cluster = append(in.Cluster, other)
	if d := answer(build(t, in)); d.Verdict != policy.VerdictDeny || d.Reason != policy.ReasonPolicyMissing {
		t.Errorf("answer %s %s, want Deny PolicyMissing", d.Verdict, d.Reason)
	}
}

// Proves K-2: a subject that the scope refuses keeps its policy from coming into force, and is named.
func TestSubjectsThatTheScopeRefusesAreNamed(t *testing.T) {
	object := clusterPolicy("default")
	object.Spec.Governed.Users = []v1alpha1.GovernedUser{{Name: "robot@acme.example", SessionNamespace: "checkout"}, {Name: "system:admin", SessionNamespace: "kube-system"}}
	object.Spec.Governed.ExemptServiceAccounts = []v1alpha1.ExemptServiceAccount{{ServiceAccountReference: v1alpha1.ServiceAccountReference{Namespace: "checkout", Name: "*"}}}
	var got []string
	for _, problem := range policystore.CheckCluster(&object) {
		got = append(got, problem.Field)
	}
	want := []string{"governed.users[1].name", "governed.users[1].sessionNamespace", "governed.exemptServiceAccounts[0]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields with problems (-want +got):\n%s", diff)
	}
}

func TestRulesOfEveryClusterPolicyCount(t *testing.T) {
	in := input()
	other := clusterPolicy("network")
	other.Spec.Governed.NamespaceSelector = metav1.LabelSelector{MatchLabels: map[string]string{"never": "true"}}
	other.Spec.Rules = []v1alpha1.Rule{forbidding("r")}
	in.Cluster = append(in.Cluster, other)
	if d := answer(build(t, in)); d.Class != policy.ClassForbidden || d.Details[0].Rule != "network/r" {
		t.Errorf("answer %s for %+v, want FORBIDDEN by network/r", d.Class, d.Details)
	}
}

func TestExemptionsEnd(t *testing.T) {
	before, at, after := metav1.NewTime(now.Add(-time.Second)), now, metav1.NewTime(now.Add(time.Second))
	in := input()
	exempt := func(name string, until *metav1.Time) v1alpha1.ExemptServiceAccount {
		return v1alpha1.ExemptServiceAccount{
			ServiceAccountReference: v1alpha1.ServiceAccountReference{Namespace: "checkout", Name: name}, Reason: "a pipeline", ExpirationTime: until,
		}
	}
	in.Cluster[0].Spec.Governed.ExemptServiceAccounts = []v1alpha1.ExemptServiceAccount{
		exempt("forever", nil), exempt("over", &before), exempt("over-now", &at), exempt("a-second-left", &after),
	}
	want := []enforcement.ServiceAccount{{Namespace: "checkout", Name: "forever"}, {Namespace: "checkout", Name: "a-second-left"}}
	if diff := cmp.Diff(want, build(t, in).Scope.Exempt); diff != "" {
		t.Errorf("exempt (-want +got):\n%s", diff)
	}
}

// Proves K-2: the cluster and the product never depend on themselves, whatever a selector or a label says.
func TestSystemNamespacesAreNeverGoverned(t *testing.T) {
	in := input()
	in.Namespaces = nil
	for _, name := range []string{"kube-system", "kube-public", "kube-node-lease", "kube-anything", enforcement.SystemNamespace, enforcement.CanaryNamespace} {
		in.Namespaces = append(in.Namespaces, namespace(name, "standard"))
	}
	in.Policies = append(in.Policies, agentPolicy(enforcement.SystemNamespace, "default"))
	snapshot := build(t, in)
	for _, object := range in.Namespaces {
		if snapshot.Governs(object.Name) {
			t.Errorf("namespace %s is governed", object.Name)
		}
	}
	if len(snapshot.Scope.Namespaces) > 0 {
		t.Errorf("scope holds %v", snapshot.Scope.Namespaces)
	}
}

func TestAnEmptySelectorGovernsNothing(t *testing.T) {
	in := input()
	in.Cluster[0].Spec.Governed.NamespaceSelector = metav1.LabelSelector{}
	snapshot := build(t, in)
	if snapshot.Governs("checkout") || snapshot.Governs("elsewhere") {
		t.Error("an empty selector governs namespaces")
	}
}

func TestAuditedProfilesAreCountedAsOnboarding(t *testing.T) {
	in := input()
	in.Cluster[0].Spec.Profiles = append(in.Cluster[0].Spec.Profiles, v1alpha1.ProfileBinding{
		Name: "onboarding", AgentPolicyName: "standard", FloorEnforcement: v1alpha1.FloorEnforcementAudit,
	})
	in.Namespaces = append(in.Namespaces, namespace("search", "onboarding"), namespace("cart", "onboarding"))
	snapshot := build(t, in)
	if diff := cmp.Diff([]string{"cart", "search"}, snapshot.Onboarding); diff != "" {
		t.Errorf("onboarding (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"checkout"}, snapshot.Scope.Namespaces); diff != "" {
		t.Errorf("enforced namespaces (-want +got):\n%s", diff)
	}
	if !snapshot.Governs("search") {
		t.Error("an onboarding namespace is not governed")
	}
}

// Proves K-2.
func TestABindingThatAuditsNeverEnforcesWhateverIsBroken(t *testing.T) {
	for name, breaks := range map[string]func(*policystore.Input){
		"the profile's AgentPolicy is missing": func(in *policystore.Input) { in.Policies = nil },
		"the profile's AgentPolicy is invalid": func(in *policystore.Input) { in.Policies[0].Spec.Rules = []v1alpha1.Rule{broken} },
		"another cluster policy is invalid": func(in *policystore.Input) {
			other := clusterPolicy("other", "elsewhere")
			other.Spec.Rules = []v1alpha1.Rule{broken}
			in.Cluster = append(in.Cluster, other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input()
			in.Cluster[0].Spec.Profiles = append(in.Cluster[0].Spec.Profiles, v1alpha1.ProfileBinding{
				Name: "onboarding", AgentPolicyName: "standard", FloorEnforcement: v1alpha1.FloorEnforcementAudit,
			})
			in.Namespaces = append(in.Namespaces, namespace("search", "onboarding"), namespace("cart", "unknown"))
			breaks(&in)
			snapshot := build(t, in)
			if diff := cmp.Diff([]string{"search"}, snapshot.Onboarding); diff != "" {
				t.Errorf("onboarding (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"cart", "checkout"}, snapshot.Scope.Namespaces); diff != "" {
				t.Errorf("enforced namespaces (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsersReleasesAndApproversAreUnions(t *testing.T) {
	in := input()
	second := clusterPolicy("second", "other")
	second.Spec.Governed.Users = []v1alpha1.GovernedUser{{Name: "robot@acme.example", SessionNamespace: "checkout"}}
	second.Spec.Governed.Released = []v1alpha1.ReleasedNamespace{{Namespace: "zoo", Reason: "closed"}, {Namespace: "attic", Reason: "closed"}}
	second.Spec.ServiceAccountApprovers = []v1alpha1.ServiceAccountReference{{Namespace: "ops", Name: "approver"}}
	in.Cluster = append(in.Cluster, second)
	snapshot := build(t, in)
	if got, ok := snapshot.GovernedUser("robot@acme.example"); got != "checkout" || !ok {
		t.Errorf("session namespace of the user = %q, %v", got, ok)
	}
	if _, ok := snapshot.GovernedUser("ana@acme.example"); ok {
		t.Error("a user that nobody lists is governed")
	}
	if diff := cmp.Diff([]string{"attic", "zoo"}, snapshot.Released); diff != "" {
		t.Errorf("released (-want +got):\n%s", diff)
	}
	for account, want := range map[[2]string]bool{{"ops", "approver"}: true, {"ops", "other"}: false, {"checkout", "approver"}: false} {
		if got := snapshot.MayApprove(account[0], account[1]); got != want {
			t.Errorf("ServiceAccount %v may approve: %v, want %v", account, got, want)
		}
	}
}

// Proves K-3: a namespace sets what is delegated to it, and nothing else.
func TestANamespaceSetsWhatIsDelegated(t *testing.T) {
	type settings struct {
		Template string
		Tier     v1alpha1.ModelTier
		Mode     v1alpha1.InitiativeMode
	}
	byProfile := settings{"agent", v1alpha1.ModelTierMedium, v1alpha1.InitiativeModeStandard}
	own := settings{"own", v1alpha1.ModelTierLarge, v1alpha1.InitiativeModeExploratory}
	for _, test := range []struct {
		name      string
		delegated []v1alpha1.DelegableSetting
		mode      v1alpha1.InitiativeMode
		want      settings
	}{
		{"nothing", nil, own.Mode, byProfile},
		{"the tier", []v1alpha1.DelegableSetting{v1alpha1.DelegableModelTier}, own.Mode, settings{byProfile.Template, own.Tier, byProfile.Mode}},
		{"the mode", []v1alpha1.DelegableSetting{v1alpha1.DelegableInitiativeMode}, own.Mode, settings{byProfile.Template, byProfile.Tier, own.Mode}},
		{"templates", []v1alpha1.DelegableSetting{v1alpha1.DelegableSessionTemplates}, own.Mode, settings{own.Template, byProfile.Tier, byProfile.Mode}},
		{"strict needs no delegation", nil, v1alpha1.InitiativeModeStrict, settings{byProfile.Template, byProfile.Tier, v1alpha1.InitiativeModeStrict}},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := input()
			in.Cluster[0].Spec.Delegation = &v1alpha1.Delegation{NamespaceMaySet: test.delegated}
			object := agentPolicy("checkout", "default")
			object.Spec.ModelTier, object.Spec.Initiative = own.Tier, &v1alpha1.Initiative{Mode: test.mode}
			object.Spec.SessionTemplates[0].Name = own.Template
			in.Policies = append(in.Policies, object)
			got, _ := build(t, in).Namespace("checkout")
			if diff := cmp.Diff(test.want, settings{got.Templates[0].Name, got.ModelTier, got.InitiativeMode}); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves C-3: what a namespace says of its tools counts only for tools that are delegated to it.
func TestANamespaceCataloguesTheToolsThatAreDelegatedToIt(t *testing.T) {
	reads := func(name string, tools ...string) v1alpha1.CatalogueEntry {
		return v1alpha1.CatalogueEntry{Name: name, Match: v1alpha1.OperationMatch{Tools: tools}, Effect: v1alpha1.EffectRead}
	}
	in := input()
	in.Cluster[0].Spec.Delegation = &v1alpha1.Delegation{CatalogueToolPrefixes: []string{"mcp:checkout/"}}
	object := agentPolicy("checkout", "default")
	object.Spec.Catalogue = []v1alpha1.CatalogueEntry{
		reads("own", "mcp:checkout/stock", "mcp:checkout/orders-*"), reads("all", "*"), reads("others", "mcp:checkout/price", "mcp:ledger/balance"), reads("near", "mcp:checkouts/list"),
	}
	in.Policies = append(in.Policies, object)
	engine := build(t, in).Engine
	free := map[string]bool{}
	for _, tool := range []string{"mcp:checkout/stock", "mcp:checkout/orders-open", "mcp:checkout/price", "mcp:ledger/balance", "mcp:checkouts/list"} {
		d := engine.Decide(policy.Operation{Capability: policy.CapabilityExecuteLocal, Stage: policy.StageUnderstand, Verb: policy.VerbRead, Tool: tool},
			policy.SessionView{State: policy.SessionActive, Namespace: "checkout", UID: "uid-agent", Authority: policy.Authority{
				Stages: []policy.Stage{policy.StageUnderstand}, Capabilities: []policy.Capability{policy.CapabilityExecuteLocal}, Namespaces: []string{"checkout"},
			}}, in.Now.Time)
		free[tool] = d.Class == policy.ClassAuto
	}
	want := map[string]bool{
		"mcp:checkout/stock": true, "mcp:checkout/orders-open": true, "mcp:checkout/price": false, "mcp:ledger/balance": false, "mcp:checkouts/list": false,
	}
	if diff := cmp.Diff(want, free); diff != "" {
		t.Errorf("tools that are free (-want +got):\n%s", diff)
	}
}
