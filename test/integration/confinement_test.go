package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// Proves K-10, M-2: with the roles as the API server and config/ have them.
func TestASessionIsRuntimeBackedOnlyWhileItsRoleIsConfined(t *testing.T) {
	const ns = "confined"
	h := at(t, ns)
	bind := func(role string) *rbacv1.RoleBinding {
		b := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "agent"}},
		}
		must(t, b)
		return b
	}
	// becomes waits for the guarantee; an empty role is none that escapes.
	becomes := func(role string) {
		t.Helper()
		eventually(t, func() error {
			status := h.read(t).Status
			lost := slices.Contains(status.Degraded, v1alpha1.LostConfinement)
			at := slices.IndexFunc(status.Conditions, func(c metav1.Condition) bool { return c.Type == string(v1alpha1.ConditionGuaranteeMet) })
			met := status.Conditions[at]
			switch {
			case role == "" && status.Guarantee == v1alpha1.GuaranteeRuntimeBacked && !lost && met.Status == metav1.ConditionTrue:
				return nil
			case role != "" && status.Guarantee == v1alpha1.GuaranteePromptOnly && lost && met.Reason == string(v1alpha1.ReasonRoleEscapes) &&
				strings.Contains(met.Message, "ClusterRole "+role+", bound to"):
				return nil
			}
			return fmt.Errorf("guarantee %s, degraded %v, %s: %s; want that of role %q", status.Guarantee, status.Degraded, met.Reason, met.Message, role)
		})
	}
	becomes("cluster-admin") // as every home has it
	if err := admin.Delete(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "too-much-" + ns}}); err != nil {
		t.Fatal(err)
	}
	bind("stepbeyond-agent-workload")
	becomes("")
	h.writes(t)
	for _, role := range []string{"edit", "admin"} {
		binding := bind(role)
		becomes(role)
		if err := admin.Delete(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
		becomes("")
	}
	// Other homes still have too much.
	policy := &v1alpha1.ClusterAgentPolicy{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: "default"}, policy); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(policy.Status.Conditions, func(c metav1.Condition) bool { return c.Type == string(v1alpha1.ConditionIdentitiesConfined) })
	if got := policy.Status.Conditions[at]; got.Status != metav1.ConditionFalse || got.Reason != string(v1alpha1.ReasonRoleEscapes) ||
		!strings.Contains(got.Message, "allows * * of group *") || strings.Contains(got.Message, "namespace "+ns+" ") {
		t.Errorf("IdentitiesConfined is %s for %s: %s", got.Status, got.Reason, got.Message)
	}
}
