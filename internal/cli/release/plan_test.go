package release

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// governing is a cluster policy that governs by this label and binds "NAME" to an enforcing and "NAME-audit" to an auditing
// profile.
func governing(name, label string, changes ...func(*v1alpha1.ClusterAgentPolicy)) v1alpha1.ClusterAgentPolicy {
	p := v1alpha1.ClusterAgentPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1},
		Spec: v1alpha1.ClusterAgentPolicySpec{
			BaselineVersion: "v1",
			Governed: v1alpha1.GovernedSubjects{NamespaceSelector: metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: label, Operator: metav1.LabelSelectorOpExists}},
			}},
			Profiles: []v1alpha1.ProfileBinding{
				{Name: name, AgentPolicyName: "settings", FloorEnforcement: v1alpha1.FloorEnforcementEnforce},
				{Name: name + "-audit", AgentPolicyName: "settings", FloorEnforcement: v1alpha1.FloorEnforcementAudit},
			},
		},
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func releasing(p *v1alpha1.ClusterAgentPolicy) {
	p.Spec.Governed.Released = []v1alpha1.ReleasedNamespace{{Namespace: "checkout", Reason: "moved"}}
}

func sessionsOf(user, namespace string) func(*v1alpha1.ClusterAgentPolicy) {
	return func(p *v1alpha1.ClusterAgentPolicy) {
		p.Spec.Governed.Users = []v1alpha1.GovernedUser{{Name: user, SessionNamespace: namespace}}
	}
}

// Proves K-4.
func TestWhatLetsANamespaceGo(t *testing.T) {
	type labels = map[string]string
	type policies = []v1alpha1.ClusterAgentPolicy
	const profile = v1alpha1.LabelProfile
	one := policies{governing("a", profile)}
	two := policies{governing("a", "team"), governing("b", profile)}
	tests := []struct {
		name     string
		labels   labels
		policies policies
		enforced bool
		option   string
		want     string
	}{
		{"a label that enforces: entry and label", labels{profile: "a"}, one, true, "", "a, unlabel"},
		{"a label that enforces and nobody has acted on yet", labels{profile: "a"}, one, false, "", "a, unlabel"},
		{"a label without a profile enforces too", labels{profile: "unknown"}, one, true, "", "a, unlabel"},
		{"a label that only audits now: the entry alone", labels{profile: "a-audit"}, one, true, "", "a"},
		{"a lost label: the entry alone", nil, one, true, "", "a"},
		{"an entry while the label still enforces: the label", labels{profile: "a"}, policies{governing("a", profile, releasing)}, true, "", "a, unlabel"},
		{"an entry that is in force", nil, policies{governing("a", profile, releasing)}, false, "",
			"namespace/checkout is released already: neither webhook nor floor covers it"},
		{"an entry and an audited profile", labels{profile: "a-audit"}, policies{governing("a", profile, releasing)}, false, "",
			"namespace/checkout is released already: neither webhook nor floor covers it"},
		{"a profile that always audited", labels{profile: "a-audit"}, one, false, "",
			"error: namespace checkout is not enforced: its profile a-audit only audits, so there is nothing to release"},
		{"a namespace of nobody", nil, one, false, "",
			"error: namespace checkout is not governed: no ClusterAgentPolicy selects it, and neither webhook nor floor covers it"},
		{"two policies: the one that governs", labels{profile: "b"}, two, true, "", "b, unlabel"},
		{"two policies and a lost label", nil, two, true, "",
			"error: no ClusterAgentPolicy selects namespace checkout any more; choose with --policy which one releases it: a, b"},
		{"two policies, a lost label, and a choice", nil, two, true, "a", "a"},
		{"two policies, a lost label, and an entry of one", nil, policies{governing("a", "team"), governing("b", profile, releasing)}, true, "", "b"},
		{"a choice that does not exist", labels{profile: "a"}, one, true, "c", "error: --policy: there is no ClusterAgentPolicy c; there are: a"},
		{"a selector by another label", labels{profile: "b", "team": "x"}, two, true, "",
			"error: ClusterAgentPolicy a selects namespace checkout by more than the label stepbeyond.dev/profile: team; " +
				"change what it selects first, then run this again: until then the namespace stays enforced"},
		{"no policy at all", nil, nil, true, "",
			"error: there is no ClusterAgentPolicy that could release namespace checkout, which stays enforced; create one again, or use --cluster"},
		{"users of the namespace stay governed", labels{profile: "a"},
			policies{governing("a", profile, sessionsOf("robot", "checkout")), governing("z", "team", sessionsOf("other", "elsewhere"))}, true, "", "a, unlabel, robot stays"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := &world{
				namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "checkout", Labels: tt.labels}},
				policies:  tt.policies, enforced: tt.enforced,
				profiles: []v1alpha1.AgentPolicy{{ObjectMeta: metav1.ObjectMeta{Namespace: "stepbeyond-system", Name: "settings"},
					Spec: v1alpha1.AgentPolicySpec{RulesEnforcement: v1alpha1.EnforcementEnforce}}},
			}
			if diff := cmp.Diff(tt.want, planned(w.planFor(tt.option))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func planned(p *plan, err error) string {
	switch {
	case err != nil:
		return "error: " + err.Error()
	case p.nothing != "":
		return p.nothing
	}
	text := p.policy.Name
	if p.unlabel {
		text += ", unlabel"
	}
	for _, user := range p.users {
		text += ", " + user + " stays"
	}
	return text
}

func TestWhoWritesAnObjectAgainByItselfIsNamed(t *testing.T) {
	fields := func(manager, subresource, raw string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(raw)}
	}
	const spec, labels, annotations = `{"f:spec":{"f:profiles":{}}}`, `{"f:metadata":{"f:labels":{}}}`, `{"f:metadata":{"f:annotations":{}}}`
	object := &v1alpha1.ClusterAgentPolicy{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		fields("kustomize-controller", "", labels), fields("argocd-controller", "", spec), fields("argocd-controller", "", labels),
		fields("kubectl", "", spec), fields("kubectl-client-side-apply", "", spec), fields("kubectl-stepbeyond", "", spec),
		fields("stepbeyond-clusteragentpolicy", "status", `{"f:status":{},"f:spec":{}}`), fields("annotator", "", annotations),
		{Manager: "nothing"},
	}}}
	if diff := cmp.Diff("argocd-controller, kustomize-controller", managers(object)); diff != "" {
		t.Errorf("managers (-want +got):\n%s", diff)
	}
}
