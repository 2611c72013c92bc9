package enforcement_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// confined is the condition IdentitiesConfined of the policy named default.
func confined(t *testing.T) metav1.Condition {
	t.Helper()
	found := meta.FindStatusCondition(policyStatus(t, "default").Conditions, string(v1alpha1.ConditionIdentitiesConfined))
	if found == nil {
		t.Fatal("there is no condition IdentitiesConfined")
	}
	return *found
}

// bound gives a ServiceAccount of namespace held a ClusterRole there.
func bound(role string, account string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "held", Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "held", Name: account}},
	}
}

// The roles are those of the API server itself. No controller fills edit and admin here, so it is the parts of them.
//
// Proves K-10.
func TestTheStockRolesEscapeAndTheShippedOneDoesNot(t *testing.T) {
	shipped, err := env.Read("config/rbac/agent_workload.yaml")
	if err != nil {
		t.Fatal(err)
	}
	create(t, profile(), namespace("held", "standard"), shipped[0])
	defer relabel(t, "held", "null")
	for _, tt := range []struct {
		role, account string
		// says are parts of the message; none means that the identities are confined.
		says []string
	}{
		{"stepbeyond-agent-workload", "agent", nil},
		{"system:aggregate-to-view", "agent", nil},
		{"system:aggregate-to-edit", "agent", []string{
			"ClusterRole system:aggregate-to-edit, bound to held/agent in namespace held, allows impersonate serviceaccounts; ",
			"allows create serviceaccounts/token; ", "allows get secrets; ",
		}},
		{"cluster-admin", "agent", []string{"ClusterRole cluster-admin, bound to held/agent in namespace held, allows * * of group *. "}},
		{"system:aggregate-to-edit", "controller", nil}, // exempt, so not governed
		{"system:aggregate-to-edit", "default", []string{"bound to held/default"}},
	} {
		t.Run(tt.role+" for "+tt.account, func(t *testing.T) {
			create(t, bound(tt.role, tt.account))
			policy := clusterPolicy("default")
			policy.Spec.Governed.ExemptServiceAccounts = []v1alpha1.ExemptServiceAccount{{
				ServiceAccountReference: v1alpha1.ServiceAccountReference{Namespace: "held", Name: "controller"}, Reason: "The team's own controller.",
			}}
			create(t, policy)
			loaded(t) // the namespace is governed and never enforced, so that it stays out of the other tests' scope
			got := confined(t)
			want(t, "confined", len(tt.says) == 0, got.Status == metav1.ConditionTrue && got.Reason == string(v1alpha1.ReasonRolesConfined))
			for _, part := range tt.says {
				if !strings.Contains(got.Message, part) {
					t.Errorf("the message does not say %q: %s", part, got.Message)
				}
			}
		})
	}
}
