package lint

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/policy/installed"
	"stepbeyond.dev/stepbeyond/internal/confinement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/policytest"
	"stepbeyond.dev/stepbeyond/policy"
)

var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

const policies = `
apiVersion: stepbeyond.dev/v1alpha1
kind: ClusterAgentPolicy
metadata: {name: default}
spec:
  baselineVersion: v1
  governed:
    namespaceSelector: {matchExpressions: [{key: stepbeyond.dev/profile, operator: Exists}]}
    users: [{name: robot, sessionNamespace: checkout}]
    exemptServiceAccounts: [{namespace: checkout, name: controller, reason: leader election}]
  profiles: [{name: standard, agentPolicyName: standard, floorEnforcement: Enforce}]
---
apiVersion: stepbeyond.dev/v1alpha1
kind: AgentPolicy
metadata: {name: standard, namespace: stepbeyond-system}
spec:
  sessionTemplates:
  - name: agent
    serviceAccountName: agent
    user: {source: Fixed, name: ana@acme.example}
    authority: {stages: [execute], capabilities: [execute_local]}
---
apiVersion: v1
kind: Namespace
metadata: {name: checkout, labels: {stepbeyond.dev/profile: standard}}
---
apiVersion: v1
kind: Namespace
metadata: {name: payments, labels: {stepbeyond.dev/profile: standard}}
`

// looked is the world with these policies, one text of them replaced, in which every account exists.
func looked(t *testing.T, old, changed string) *world {
	t.Helper()
	if strings.Count(policies, old) != 1 && old != "" {
		t.Fatalf("%q stands %d times in the policies", old, strings.Count(policies, old))
	}
	in, problems := policytest.ReadPolicies([]policytest.Source{{Name: "policies.yaml", Content: []byte(strings.Replace(policies, old, changed, 1))}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	in.Now = metav1.NewTime(now)
	p, err := installed.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	return &world{now: now, policies: p, everywhere: true, selected: p.Governed(), kinds: discovered(), accounts: map[types.NamespacedName]bool{
		{Namespace: "checkout", Name: "agent"}: true, {Namespace: "payments", Name: "agent"}: true, {Namespace: "checkout", Name: "controller"}: true,
	}}
}

func messages(w *world) []string {
	made := &Report{}
	w.check(made)
	made.sort()
	var texts []string
	for _, f := range made.Findings {
		texts = append(texts, string(f.Severity)+" "+string(f.Check)+" "+f.Object+": "+f.Message)
	}
	return texts
}

func TestWhatIsFoundInPolicies(t *testing.T) {
	for _, tt := range []struct {
		name, old, changed string
		want               []string
	}{
		{"nothing is wrong", "", "", nil},
		{"an exemption that has ended", "reason: leader election", `reason: INC-1, expirationTime: "2026-11-01T00:00:00Z"`, []string{
			"Warning ExemptionEnded ClusterAgentPolicy default: The exemption of ServiceAccount checkout/controller (INC-1) ended at 2026-11-01 00:00Z: the account is governed."}},
		{"an exemption for nobody", "name: controller", "name: contoller", []string{
			"Warning ExemptionUnused ClusterAgentPolicy default: The exemption of ServiceAccount checkout/contoller (leader election) matches nobody: the account does not exist. Whoever makes one of that name is not governed."}},
		{"an exemption in a namespace that is not governed", "namespace: checkout, name: controller", "namespace: free, name: controller", []string{
			"Warning ExemptionUnused ClusterAgentPolicy default: The exemption of ServiceAccount free/controller (leader election) matches nobody: namespace free is not governed or does not exist."}},
		{"a template for nobody", "serviceAccountName: agent", "serviceAccountName: robot", []string{
			"Warning TemplateUnused AgentPolicy stepbeyond-system/standard: Session template agent is for ServiceAccount robot, which does not exist in namespace checkout, payments."}},
		{"a label that means nothing", "payments, labels: {stepbeyond.dev/profile: standard}", "payments, labels: {stepbeyond.dev/profile: std}", []string{
			`Error ProfileMissing Namespace payments: Every governed write is refused: no valid AgentPolicy is bound to its profile "std", or its own AgentPolicy is not valid.`}},
		{"a rule that never fires", "floorEnforcement: Enforce}]", "floorEnforcement: Enforce}]\n  rules: [{name: r, class: ASK, match: {kubernetes: [{groups: [apps], resources: [deployment], verbs: [create]}]}}]", []string{
			"Warning NeverMatches ClusterAgentPolicy default: Rule r can never match: no API server has deployment (did you mean deployments?) in group apps."}},
		{"a selector of a rule that never fires", "floorEnforcement: Enforce}]", "floorEnforcement: Enforce}]\n  rules: [{name: r, class: ASK, match: {kubernetes: [{groups: [apps], resources: [deployments], verbs: [create]}, {groups: [gone.example], resources: ['*'], verbs: [create]}]}}]", []string{
			"Info UnknownResource ClusterAgentPolicy default: Rule r matches nothing by spec.rules[0].match.kubernetes[1]: no API server has group gone.example."}},
		{"a rule that also names tools can fire", "floorEnforcement: Enforce}]", "floorEnforcement: Enforce}]\n  rules: [{name: r, class: ASK, match: {tools: ['mcp:a/*'], kubernetes: [{groups: [gone.example], resources: ['*'], verbs: [create]}]}}]", []string{
			"Info UnknownResource ClusterAgentPolicy default: Rule r matches nothing by spec.rules[0].match.kubernetes[0]: no API server has group gone.example."}},
		{"a resource that is misspelled among others", "floorEnforcement: Enforce}]", "floorEnforcement: Enforce}]\n  rules: [{name: r, class: ASK, match: {kubernetes: [{groups: [apps], resources: [deployments, deploy], verbs: [create]}]}}]", []string{
			"Warning UnknownResource ClusterAgentPolicy default: Rule r names deploy (did you mean deployments?), which group apps does not have."}},
		{"a requirement for a rule that does not exist", "  sessionTemplates:", "  approvals: {requirements: [{name: q, match: {rules: [default/r, baseline/secrets]}}]}\n  sessionTemplates:", []string{
			"Warning RequirementNeverMatches AgentPolicy stepbeyond-system/standard: Requirement q is for default/r, which no policy has."}},
		{"a requirement for nothing else", "  sessionTemplates:", "  approvals: {requirements: [{name: q, match: {rules: [default/r]}}]}\n  sessionTemplates:", []string{
			"Warning RequirementNeverMatches AgentPolicy stepbeyond-system/standard: Requirement q is for nothing but default/r, which no policy has, so it is never asked for."}},
		{"a rule that does not compile", "floorEnforcement: Enforce}]", "floorEnforcement: Enforce}]\n  rules: [{name: r, class: ASK, when: 'object ==', match: {tools: [a]}}]", []string{
			"Error NotInForce ClusterAgentPolicy default: This generation cannot come into force: spec.rules[0].when (r), line 1, column 10: Syntax error: mismatched input '<EOF>'"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := messages(looked(t, tt.old, tt.changed))
			if len(got) == len(tt.want) {
				for i := range got {
					// The parser lists what it expected.
					if strings.Contains(tt.want[i], "Syntax error") && strings.HasPrefix(got[i], tt.want[i]) {
						got[i] = tt.want[i]
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Proves K-10.
func TestWhatRolesAllowIsSaidOncePerBinding(t *testing.T) {
	subject := func(kind, namespace, name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: kind, Namespace: namespace, Name: name}}
	}
	edit := rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"}
	w := looked(t, "", "")
	w.roles = confinement.Find(confinement.RBAC{
		ClusterRoles: []rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "edit"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}},
		}}},
		RoleBindings: []rbacv1.RoleBinding{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "old"}, RoleRef: edit, Subjects: subject("ServiceAccount", "checkout", "agent")},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "exempt"}, RoleRef: edit, Subjects: subject("ServiceAccount", "checkout", "controller")},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "free", Name: "free"}, RoleRef: edit, Subjects: subject("ServiceAccount", "free", "agent")},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "all"}, RoleRef: edit, Subjects: subject("Group", "", "system:serviceaccounts")},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "robot"}, RoleRef: edit, Subjects: subject("User", "", "robot")},
		},
	})
	var got []string
	for _, f := range w.escapes() {
		got = append(got, f.Object+": "+f.Message+" "+f.Advice)
	}
	const allows = " in namespace payments, allows impersonate serviceaccounts; get, list secrets; admission does not see it. "
	want := []string{
		"RoleBinding checkout/old: ClusterRole edit, bound to checkout/agent in namespace checkout, allows impersonate serviceaccounts; get, list secrets; admission does not see it. " +
			"Bind ClusterRole stepbeyond-agent-workload instead and take this binding away: kubectl -n checkout delete rolebinding old.",
		"RoleBinding payments/all: ClusterRole edit, bound to every ServiceAccount" + allows +
			"This is bound to a group that others are in too: bind it to those who need it, and not to every account.",
		"RoleBinding payments/robot: ClusterRole edit, bound to robot" + allows +
			"Bind ClusterRole stepbeyond-agent-workload instead and take this binding away: kubectl -n payments delete rolebinding robot.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	w.everywhere, w.selected = false, []string{"payments"}
	if found := w.escapes(); len(found) != 1 || found[0].Object != "RoleBinding payments/all" {
		t.Errorf("in payments alone: %+v", found)
	}
}

func asked(group, resource, verb string, reasons ...string) v1alpha1.PermissionGrant {
	g := v1alpha1.PermissionGrant{ObjectMeta: metav1.ObjectMeta{Namespace: "checkout"}}
	g.Spec.Request.Operation = v1alpha1.GrantOperation{Verb: v1alpha1.Verb(verb), Target: v1alpha1.GrantTarget{Group: group, Version: "v1", Resource: resource, Namespace: "checkout", Name: "x"}}
	for _, reason := range reasons {
		g.Spec.Request.Rules = append(g.Spec.Request.Rules, v1alpha1.GrantRule{Reason: reason})
	}
	return g
}

// The entries are read as a cluster reads them, and do what their sentence says.
func TestTheKindsThatCostMostQuestionsHaveAReadyEntry(t *testing.T) {
	w := looked(t, "", "")
	for range 3 {
		w.grants = append(w.grants, asked("acme.example", "widgets", "create", policy.CodeUncatalogued), asked("acme.example", "widgets", "update", policy.CodeUncatalogued))
	}
	w.grants = append(w.grants, asked("acme.example", "widgets", "delete", policy.CodeUncatalogued))
	for _, resource := range []string{"a", "b", "c", "d", "e"} {
		w.grants = append(w.grants, asked("other.example", resource, "create", policy.CodeUncatalogued))
	}
	w.grants = append(w.grants, asked("", "configmaps", "create", policy.CodeUncatalogued)) // is catalogued by now
	w.grants = append(w.grants, asked("third.example", "x", "create", policy.CodeRule))
	found := w.uncatalogued()
	if len(found) != mostKinds || found[0].Object != "widgets.acme.example" || found[0].Message != "7 questions about create, delete, update of a kind that nobody has catalogued." {
		t.Fatalf("found %+v", found)
	}
	if found[1].Object != "a.other.example" {
		t.Errorf("the second is %s", found[1].Object)
	}

	entry := strings.ReplaceAll(found[0].Entry, "\n", "\n  ")
	catalogued := looked(t, "floorEnforcement: Enforce}]", "floorEnforcement: Enforce}]\n  catalogue:\n  "+entry)
	for _, tt := range []struct {
		verb   policy.Verb
		origin policy.Origin
		want   policy.Class
	}{
		{policy.VerbCreate, policy.OriginUnknown, policy.ClassAuto},
		{policy.VerbUpdate, policy.OriginThisSession, policy.ClassAuto},
		{policy.VerbUpdate, policy.OriginPerson, policy.ClassAutoWithDisclosure},
		{policy.VerbDelete, policy.OriginThisSession, policy.ClassAuto},
		{policy.VerbDelete, policy.OriginPerson, policy.ClassAsk},
	} {
		if got := decide(catalogued.policies.Snapshot, tt.verb, tt.origin); got != tt.want {
			t.Errorf("%s of %s is %s, want %s", tt.verb, tt.origin, got, tt.want)
		}
	}
	catalogued.grants = w.grants
	if again := catalogued.uncatalogued(); again[0].Object == "widgets.acme.example" {
		t.Error("a kind that is catalogued is still named")
	}

	w.grants = []v1alpha1.PermissionGrant{asked("acme.example", "machines", "connect", policy.CodeUncatalogued)}
	if found := w.uncatalogued(); len(found) != 1 || found[0].Entry != "" {
		t.Errorf("nobody can vouch for a connection: %+v", found)
	}
}

func decide(snapshot *policystore.Snapshot, verb policy.Verb, origin policy.Origin) policy.Class {
	op := policy.Operation{
		Capability: policy.CapabilityExecuteLocal, Stage: policy.StageExecute, Verb: verb, Kubernetes: &policy.KubernetesRequest{},
		Target: policy.Target{Group: "acme.example", Version: "v1", Resource: "widgets", Namespace: "checkout", Name: "x", Origin: origin},
	}
	for _, fact := range []policy.Fact{policy.Local, policy.InScope} { // as admission finds them in the session's own namespace
		op.Facts.Add(fact, policy.FactValue{Presence: policy.Present, Provenance: policy.Authoritative})
	}
	return snapshot.Engine.Decide(op, policy.SessionView{
		State: policy.SessionActive, Namespace: "checkout", UID: "u", Epoch: 1,
		Authority: policy.Authority{Stages: []policy.Stage{policy.StageExecute}, Capabilities: []policy.Capability{policy.CapabilityExecuteLocal}},
	}, now).Class
}

func TestAnEntryIsOneListOfYAML(t *testing.T) {
	k := kindAsked{group: "acme.example", resource: "widgets/scale", verbs: []string{"update"}}
	var entries []v1alpha1.CatalogueEntry
	if err := yaml.UnmarshalStrict([]byte(k.entry()), &entries); err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 || entries[0].Name != "widgets-scale-own" || entries[1].Name != "widgets-scale-foreign" {
		t.Errorf("entries %+v", entries)
	}
}
