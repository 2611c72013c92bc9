package enforcement_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
)

// forbidding is a cluster policy that forbids agents all new ConfigMaps, and Secrets by an expression.
func forbidding(name string) *v1alpha1.ClusterAgentPolicy {
	creates := func(resource string) v1alpha1.OperationMatch {
		return v1alpha1.OperationMatch{Kubernetes: []v1alpha1.KubernetesMatch{{
			Groups: []string{""}, Resources: []string{resource}, Verbs: []v1alpha1.Verb{v1alpha1.VerbCreate},
		}}}
	}
	object := clusterPolicy(name)
	object.Spec.Rules = []v1alpha1.Rule{
		{Name: "configmaps", Class: v1alpha1.RuleClassForbidden, Match: creates("configmaps")},
		{Name: "secrets", Class: v1alpha1.RuleClassForbidden, Match: creates("secrets"), When: `object.metadata.name == "vault"`},
		{Name: "services", Class: v1alpha1.RuleClassAsk, Match: creates("services")},
		{Name: "pods", Class: v1alpha1.RuleClassForbidden, Match: creates("pods"), When: `session.name != ""`},
	}
	return object
}

// ruledBy are the rules that the live policy holds, by the first line of each expression.
func ruledBy(t *testing.T) []string {
	t.Helper()
	var floor admissionregistrationv1.ValidatingAdmissionPolicy
	if err := k8s.Get(t.Context(), client.ObjectKey{Name: admission.FloorForbidden}, &floor); err != nil {
		t.Fatal(err)
	}
	if len(floor.OwnerReferences) > 0 {
		t.Errorf("it has owners: %v", floor.OwnerReferences)
	}
	var names []string
	for _, validation := range floor.Spec.Validations {
		first, _, _ := strings.Cut(validation.Expression, "\n")
		if name, ok := strings.CutPrefix(first, "// "); ok {
			names = append(names, name)
		}
	}
	return names
}

// agentOf is a client of ServiceAccount default of a namespace, to which RBAC allows everything.
func agentOf(t *testing.T, namespace string) client.Client {
	t.Helper()
	create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "agent"}})
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-agent"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "agent"}},
	})
	token, err := cluster.ServiceAccountToken(t.Context(), namespace, "agent", "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cluster.Token(token), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newConfigMap(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "x-"}}
}

// staysForbidden waits until the agent is refused by the floor, and sees a bystander's twin pass.
func staysForbidden(t *testing.T, when string, agent client.Client, namespace string) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		err := agent.Create(t.Context(), newConfigMap(namespace), client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+admission.FloorForbidden+"'") && strings.Contains(err.Error(), "(rule default/configmaps)") {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("%s: %v", when, err)
			break
		}
	}
	if err := k8s.Create(t.Context(), newConfigMap(namespace), client.DryRunAll); err != nil {
		t.Errorf("%s, a bystander: %v", when, err)
	}
}

// Proves K-6, K-2, C-3 and F-1.
func TestForbiddenRulesOutliveWhatMadeThem(t *testing.T) {
	object := forbidding("default")
	create(t, namespace("ledger", "standard"), profile(), object)
	agent := agentOf(t, "ledger")
	o := start(t)
	o.step(t)
	rules := []string{"default/configmaps", "default/secrets"}
	want(t, "rules of the floor", rules, ruledBy(t))
	staysForbidden(t, "with everything in place", agent, "ledger")
	o.step(t)
	want(t, "conditions: the rules leave the canary to its enforcers",
		[]string{"Ready=True/Compiled", "EnforcementReady=True/CanaryDenied", "IdentitiesConfined=False/RoleEscapes"}, conditions(t, "default"))
	want(t, "ruleStatuses", []v1alpha1.RuleStatus{
		{Name: "configmaps", CompiledTo: v1alpha1.CompiledToAdmissionPolicy},
		{Name: "secrets", CompiledTo: v1alpha1.CompiledToAdmissionPolicy},
		{Name: "services", CompiledTo: v1alpha1.CompiledToInProcess, Reason: v1alpha1.InProcessNotForbidden, Message: "Its class is ASK, and only the manager can ask."},
		{Name: "pods", CompiledTo: v1alpha1.CompiledToInProcess, Reason: v1alpha1.InProcessNotPortable, Message: "when: session is not the same in admission."},
	}, policyStatus(t, "default").RuleStatuses)

	relabel(t, "ledger", "null")
	o.step(t)
	want(t, "rules after the label is gone", rules, ruledBy(t))
	staysForbidden(t, "after the label is gone", agent, "ledger")

	broken := object.DeepCopy()
	if err := k8s.Get(t.Context(), client.ObjectKeyFromObject(object), broken); err != nil {
		t.Fatal(err)
	}
	broken.Spec.Rules = broken.Spec.Rules[:1]
	broken.Spec.Rules[0].When = "request.verb =="
	if err := k8s.Update(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	o.step(t)
	want(t, "rules while the policy is invalid", rules, ruledBy(t))
	want(t, "ruleStatuses while the policy is invalid", v1alpha1.CompiledToInProcess, policyStatus(t, "default").RuleStatuses[0].CompiledTo)
	start(t).step(t)
	want(t, "rules while the policy has never been valid since the start", rules, ruledBy(t))

	if err := k8s.Delete(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		start(t).step(t)
		want(t, "rules after the policy is deleted", rules, ruledBy(t))
	}
	staysForbidden(t, "after the policy is deleted", agent, "ledger")

	create(t, clusterPolicy("other"))
	start(t).step(t)
	if got := ruledBy(t); slices.Contains(got, "default/configmaps") {
		t.Errorf("a valid policy is there and alone, and rules that nobody wrote stay: %v", got)
	}
}
