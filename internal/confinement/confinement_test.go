package confinement_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"stepbeyond.dev/stepbeyond/internal/confinement"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

func rule(groups, resources, verbs []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: verbs}
}

func list(words ...string) []string { return words }

// everywhere binds a ClusterRole with these rules to ServiceAccount checkout/agent in the whole cluster.
func everywhere(rules ...rbacv1.PolicyRule) confinement.RBAC {
	return confinement.RBAC{
		ClusterRoles: []rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "agents"}, Rules: rules}},
		ClusterRoleBindings: []rbacv1.ClusterRoleBinding{{
			ObjectMeta: metav1.ObjectMeta{Name: "agents"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "agents"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "checkout", Name: "agent"}},
		}},
	}
}

// inNamespace binds the same in namespace checkout alone.
func inNamespace(rules ...rbacv1.PolicyRule) confinement.RBAC {
	rbac := everywhere(rules...)
	rbac.RoleBindings = []rbacv1.RoleBinding{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "agents"}, RoleRef: rbac.ClusterRoleBindings[0].RoleRef,
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "agent"}},
	}}
	rbac.ClusterRoleBindings = nil
	return rbac
}

func sentences(found []confinement.Finding) []string {
	var text []string
	for _, f := range found {
		text = append(text, string(f.Escape)+": "+f.Verb+" "+f.Resource)
	}
	return text
}

// Proves K-10.
func TestEachEscapeIsFoundAndWhatLooksLikeItIsNot(t *testing.T) {
	core, rbac, identities := list(""), list("rbac.authorization.k8s.io"), list("authentication.k8s.io")
	for _, tt := range []struct {
		name string
		rule rbacv1.PolicyRule
		// cluster is what it allows when bound in the whole cluster, namespaced what when bound in one.
		cluster, namespaced []string
	}{
		{"impersonating ServiceAccounts", rule(core, list("serviceaccounts"), list("impersonate")),
			list("Impersonate: impersonate serviceaccounts"), list("Impersonate: impersonate serviceaccounts")},
		{"impersonating users, groups and uids", rule(core, list("users", "groups", "uids"), list("impersonate")),
			list("Impersonate: impersonate users", "Impersonate: impersonate groups", "Impersonate: impersonate uids"), nil},
		{"impersonating extras", rule(identities, list("userextras/scopes"), list("impersonate")), list("Impersonate: impersonate userextras"), nil},
		{"constrained impersonation of a user", rule(identities, list("users"), list("impersonate:user-info")), list("Impersonate: impersonate:user-info users"), nil},
		{"what may be done while impersonating", rule(core, list("pods"), list("impersonate-on:user-info:list")),
			list("Impersonate: impersonate-on:user-info:list pods"), list("Impersonate: impersonate-on:user-info:list pods")},
		{"impersonating something that is no identity", rule(list("acme.example"), list("users"), list("impersonate")), nil, nil},
		{"making tokens", rule(core, list("serviceaccounts/token"), list("create")), list("Tokens: create serviceaccounts/token"), list("Tokens: create serviceaccounts/token")},
		{"reading ServiceAccounts", rule(core, list("serviceaccounts"), list("get", "list", "watch", "create")), nil, nil},
		{"a kubelet's API", rule(core, list("nodes/proxy"), list("get")), list("Nodes: get nodes/proxy"), nil},
		{"reading nodes", rule(core, list("nodes", "nodes/status"), list("get")), nil, nil},
		{"writing roles beyond one's own", rule(rbac, list("roles", "clusterroles"), list("escalate")),
			list("Authority: escalate roles", "Authority: escalate clusterroles"), list("Authority: escalate roles")},
		{"binding roles beyond one's own", rule(rbac, list("roles", "clusterroles"), list("bind")),
			list("Authority: bind roles", "Authority: bind clusterroles"), list("Authority: bind roles", "Authority: bind clusterroles")},
		{"reading and writing roles, which admission sees", rule(rbac, list("roles", "rolebindings"), list("get", "create", "update")), nil, nil},
		{"switching a webhook off, which admission does not see", rule(list("admissionregistration.k8s.io"), list("validatingwebhookconfigurations"), list("get", "delete")),
			list("Admission: delete validatingwebhookconfigurations"), nil},
		{"reading webhooks", rule(list("admissionregistration.k8s.io"), list("validatingwebhookconfigurations"), list("get", "list")), nil, nil},
		{"reading Secrets", rule(core, list("secrets"), list("get", "list", "watch")),
			list("Secrets: get secrets", "Secrets: list secrets", "Secrets: watch secrets"), list("Secrets: get secrets", "Secrets: list secrets", "Secrets: watch secrets")},
		{"writing Secrets, which admission sees", rule(core, list("secrets"), list("create", "update", "delete")), nil, nil},
		{"Secrets of another group", rule(list("acme.example"), list("secrets"), list("get")), nil, nil},
		{"every verb", rule(list("apps"), list("deployments"), list("*")), list("Wildcard: * deployments of group apps"), list("Wildcard: * deployments of group apps")},
		{"every resource", rule(core, list("*"), list("get")), list("Wildcard: get *"), list("Wildcard: get *")},
		{"every subresource", rule(core, list("*/status"), list("get")), list("Wildcard: get */status"), list("Wildcard: get */status")},
		{"every group", rule(list("*"), list("pods"), list("get")), list("Wildcard: get pods of group *"), list("Wildcard: get pods of group *")},
		{"every path that is no resource", rbacv1.PolicyRule{NonResourceURLs: list("*"), Verbs: list("*")}, nil, nil},
		{"ordinary work", rule(list("", "apps"), list("pods", "pods/exec", "deployments"), list("get", "list", "watch", "create", "update", "patch", "delete")), nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for where, test := range map[string]struct {
				rbac confinement.RBAC
				want []string
			}{"in the whole cluster": {everywhere(tt.rule), tt.cluster}, "in one namespace": {inNamespace(tt.rule), tt.namespaced}} {
				got := sentences(confinement.Find(test.rbac).OfServiceAccount("checkout", "agent"))
				slices.Sort(got)
				slices.Sort(test.want)
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", where, diff)
				}
			}
		})
	}
}

// Proves K-10.
func TestABindingReachesAnIdentityByItsNameAndByItsGroups(t *testing.T) {
	secrets := rule(list(""), list("secrets"), list("get"))
	for _, tt := range []struct {
		name    string
		subject rbacv1.Subject
		// reached are the identities that have it.
		reached []string
	}{
		{"a ServiceAccount", rbacv1.Subject{Kind: "ServiceAccount", Namespace: "checkout", Name: "agent"}, list("checkout/agent")},
		{"a ServiceAccount by its username", rbacv1.Subject{Kind: "User", Name: "system:serviceaccount:checkout:agent"}, list("checkout/agent")},
		{"a namespace's ServiceAccounts", rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts:checkout"}, list("checkout/agent", "checkout/default")},
		{"all ServiceAccounts", rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts"}, list("checkout/agent", "checkout/default", "payments/agent")},
		{"everybody", rbacv1.Subject{Kind: "Group", Name: "system:authenticated"}, list("checkout/agent", "checkout/default", "payments/agent", "robot")},
		{"a user", rbacv1.Subject{Kind: "User", Name: "robot"}, list("robot")},
		{"a group of the company's own", rbacv1.Subject{Kind: "Group", Name: "acme:platform"}, nil},
		{"a user named like a group", rbacv1.Subject{Kind: "User", Name: "system:serviceaccounts"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rbac := everywhere(secrets)
			rbac.ClusterRoleBindings[0].Subjects = []rbacv1.Subject{tt.subject}
			report := confinement.Find(rbac)
			var got []string
			for _, account := range [][2]string{{"checkout", "agent"}, {"checkout", "default"}, {"payments", "agent"}} {
				if len(report.OfServiceAccount(account[0], account[1])) > 0 {
					got = append(got, account[0]+"/"+account[1])
				}
			}
			if len(report.OfUser("robot")) > 0 {
				got = append(got, "robot")
			}
			if diff := cmp.Diff(tt.reached, got); diff != "" {
				t.Errorf("reached (-want +got):\n%s", diff)
			}
			none := func(string) bool { return false }
			if got, want := len(report.OfNamespace("checkout", none)) > 0, slices.Contains(tt.reached, "checkout/agent"); got != want {
				t.Errorf("found in namespace checkout: %v, want %v", got, want)
			}
		})
	}
}

func TestAnExemptAccountIsNotItsNamespaces(t *testing.T) {
	report := confinement.Find(everywhere(rule(list(""), list("secrets"), list("get"))))
	if got := report.OfNamespace("checkout", func(name string) bool { return name == "agent" }); len(got) > 0 {
		t.Errorf("found %v", got)
	}
	if got := report.OfNamespace("checkout", func(string) bool { return false }); len(got) != 1 {
		t.Errorf("found %v, want one without the exemption", got)
	}
}

func TestARoleIsThatOfTheBindingsNamespace(t *testing.T) {
	rbac := inNamespace()
	rbac.RoleBindings[0].RoleRef = rbacv1.RoleRef{Kind: "Role", Name: "agents"}
	rbac.Roles = []rbacv1.Role{{ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "agents"}, Rules: []rbacv1.PolicyRule{rule(list(""), list("secrets"), list("get"))}}}
	if got := confinement.Find(rbac).OfServiceAccount("checkout", "agent"); len(got) > 0 {
		t.Errorf("a Role of another namespace gives %v", got)
	}
	rbac.Roles[0].Namespace = "checkout"
	got := confinement.Find(rbac).OfServiceAccount("checkout", "agent")
	if len(got) != 1 {
		t.Fatalf("the Role gives %v, want one finding", got)
	}
	want := "Role agents, bound to checkout/agent in namespace checkout, allows get secrets"
	if diff := cmp.Diff(want, got[0].String()); diff != "" {
		t.Errorf("sentence (-want +got):\n%s", diff)
	}
}

func TestABindingToARoleThatDoesNotExistGivesNothing(t *testing.T) {
	rbac := everywhere(rule(list("*"), list("*"), list("*")))
	rbac.ClusterRoles = nil
	if got := confinement.Find(rbac).OfServiceAccount("checkout", "agent"); len(got) > 0 {
		t.Errorf("found %v", got)
	}
}

func TestEqualRBACGivesEqualReports(t *testing.T) {
	rules := []rbacv1.PolicyRule{rule(list(""), list("secrets"), list("get", "list")), rule(list(""), list("nodes/proxy"), list("get"))}
	one, other := everywhere(rules...), everywhere(rules[1], rules[0])
	if !confinement.Find(one).Equal(confinement.Find(other)) {
		t.Error("the order of the rules makes a difference")
	}
	if confinement.Find(one).Equal(confinement.Find(everywhere(rules[0]))) {
		t.Error("one escape less makes no difference")
	}
}

// Proves K-10.
func TestTheShippedRoleForAgentsIsConfined(t *testing.T) {
	objects, err := env.Read("config/rbac/agent_workload.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, &role); err != nil {
		t.Fatal(err)
	}
	if role.Name != "stepbeyond-agent-workload" || len(role.Rules) == 0 {
		t.Fatalf("read ClusterRole %s with %d rules", role.Name, len(role.Rules))
	}
	if got := sentences(confinement.Find(everywhere(role.Rules...)).OfServiceAccount("checkout", "agent")); len(got) > 0 {
		t.Errorf("it allows %v", got)
	}
	// The same check sees what is added to it.
	widened := slices.Concat(role.Rules, []rbacv1.PolicyRule{rule(list(""), list("secrets"), list("get"))})
	want := list("Secrets: get secrets")
	if diff := cmp.Diff(want, sentences(confinement.Find(everywhere(widened...)).OfServiceAccount("checkout", "agent"))); diff != "" {
		t.Errorf("with Secrets (-want +got):\n%s", diff)
	}
}
