package policystore_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/policy"
)

// Proves K-2, K-10: what a namespace's own policy names is about its callers alone, its users among them.
func TestReadsOfANamespacesOwnPolicyAreAboutItsCallers(t *testing.T) {
	rule := func(resource string, verb v1alpha1.Verb) v1alpha1.Rule {
		return v1alpha1.Rule{Name: "r-" + resource, Class: v1alpha1.RuleClassForbidden, Match: v1alpha1.OperationMatch{Kubernetes: []v1alpha1.KubernetesMatch{{
			Groups: []string{""}, Resources: []string{resource}, Names: []string{"a"}, Verbs: []v1alpha1.Verb{verb},
		}}}}
	}
	read := func(resource string) []policy.KubernetesSelector {
		return []policy.KubernetesSelector{{Groups: []string{""}, Resources: []string{resource}, Verbs: []policy.Verb{policy.VerbRead}}}
	}
	in := input()
	in.Cluster[0].Spec.Rules = []v1alpha1.Rule{rule("services", v1alpha1.VerbRead)}
	in.Cluster[0].Spec.Governed.Users = []v1alpha1.GovernedUser{{Name: "robot@acme.example", SessionNamespace: "checkout"}}
	in.Policies[0].Spec.Rules = []v1alpha1.Rule{rule("endpoints", v1alpha1.VerbCreate), rule("pods", v1alpha1.VerbRead)}
	own := agentPolicy("checkout", "default")
	own.Spec.Rules = []v1alpha1.Rule{rule("configmaps", v1alpha1.VerbRead)}
	in.Policies = append(in.Policies, own)
	want := enforcement.Reads{
		Everybody:  append(read("services"), read("pods")...),
		Namespaces: []enforcement.NamespaceReads{{Namespace: "checkout", Users: []string{"robot@acme.example"}, Selectors: read("configmaps")}},
	}
	if diff := cmp.Diff(want, build(t, in).Reads); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	in.Policies = in.Policies[:1]
	if got := build(t, in).Reads.Namespaces; got != nil {
		t.Errorf("without a policy of its own: %v", got)
	}
}
