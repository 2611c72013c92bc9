package effective

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/policy/installed"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

func TestWhomAQuestionNeedsIsSaidWithoutWhatOthersIncludeAlready(t *testing.T) {
	anybody := func(n int32) Approvers { return Approvers{Requirement: "p/any", Required: n} }
	of := func(n int32, groups ...string) Approvers {
		return Approvers{Requirement: "p/of", Required: n, Groups: groups}
	}
	for _, tt := range []struct {
		name string
		from []Approvers
		want string
	}{
		{"one person", []Approvers{anybody(1)}, "1 person"},
		{"two people are one person too", []Approvers{anybody(1), anybody(2)}, "2 people"},
		{"one of a group is one person too", []Approvers{anybody(1), of(1, "a", "b")}, "1 of a or b"},
		{"two people, one of them of a group", []Approvers{anybody(2), of(1, "a")}, "2 people, 1 of a"},
		{"one of each group", []Approvers{of(1, "a"), of(1, "b")}, "1 of a, 1 of b"},
		{"the same twice is said once", []Approvers{anybody(1), anybody(1)}, "1 person"},
		{"two of a group are two people too", []Approvers{anybody(2), of(2, "a")}, "2 of a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, needs(tt.from)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// world is one governed namespace under a profile.
func world(t *testing.T, profile v1alpha1.AgentPolicySpec, rules ...v1alpha1.Rule) *installed.Policies {
	t.Helper()
	p, err := installed.Compile(policystore.Input{
		Cluster: []v1alpha1.ClusterAgentPolicy{{
			ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "c", Generation: 1},
			Spec: v1alpha1.ClusterAgentPolicySpec{
				BaselineVersion: "v1", Rules: rules,
				Governed: v1alpha1.GovernedSubjects{NamespaceSelector: metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelProfile, Operator: metav1.LabelSelectorOpExists}},
				}},
				Profiles: []v1alpha1.ProfileBinding{{Name: "standard", AgentPolicyName: "standard", FloorEnforcement: v1alpha1.FloorEnforcementAudit}},
			},
		}},
		Policies:   []v1alpha1.AgentPolicy{{ObjectMeta: metav1.ObjectMeta{Namespace: "stepbeyond-system", Name: "standard", UID: "p", Generation: 1}, Spec: profile}},
		Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "checkout", Labels: map[string]string{v1alpha1.LabelProfile: "standard"}}}},
		Now:        metav1.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func templates(names ...string) []v1alpha1.SessionTemplate {
	var made []v1alpha1.SessionTemplate
	for _, name := range names {
		made = append(made, v1alpha1.SessionTemplate{
			Name: name, ServiceAccountName: name,
			Authority: v1alpha1.Authority{Stages: []v1alpha1.Stage{v1alpha1.StageExecute}, Capabilities: []v1alpha1.Capability{v1alpha1.CapabilityExecuteLocal}},
		})
	}
	return made
}

// Proves K-3: what is said of a namespace changes with its policies, because the engine says it.
func TestInShortFollowsThePolicies(t *testing.T) {
	class := func(t *testing.T, p *installed.Policies, name string) string {
		t.Helper()
		made, err := explain(p, "checkout", "", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for i := range made.Examples {
			if made.Examples[i].Name == name {
				return made.Examples[i].Class
			}
		}
		t.Fatalf("there is no example %q", name)
		return ""
	}
	spec := v1alpha1.AgentPolicySpec{SessionTemplates: templates("agent")}
	plain := world(t, spec)
	stricter := world(t, spec, v1alpha1.Rule{Name: "ask-deployments", Class: "FORBIDDEN", Match: v1alpha1.OperationMatch{Kubernetes: []v1alpha1.KubernetesMatch{
		{Groups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []v1alpha1.Verb{v1alpha1.VerbCreate}},
	}}})
	weaker := v1alpha1.AgentPolicySpec{SessionTemplates: templates("agent")}
	weaker.SessionTemplates[0].Authority.Capabilities = []v1alpha1.Capability{v1alpha1.CapabilityReadContext}
	const own = "own new workloads, settings and jobs"
	for _, tt := range []struct {
		name string
		p    *installed.Policies
		on   string
		want string
	}{
		{"own new objects are free", plain, own, "AUTO"},
		{"changes of others are disclosed", plain, "changes of others' workloads", "AUTO_WITH_DISCLOSURE"},
		{"data asks", plain, "deletions of data", "ASK"},
		{"what nobody knows asks", plain, "kinds that nobody has catalogued", "ASK"},
		{"another namespace is closed", plain, "other namespaces", "FORBIDDEN"},
		{"nodes are closed", plain, "nodes", "FORBIDDEN"},
		{"tokens are closed", plain, "tokens", "FORBIDDEN"},
		{"a rule closes own new objects", stricter, own, "FORBIDDEN"},
		{"a session that may only read writes nothing", world(t, weaker), own, "FORBIDDEN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := class(t, tt.p, tt.on); got != tt.want {
				t.Errorf("%s is %s, want %s", tt.on, got, tt.want)
			}
		})
	}
}

func TestTheTextOfANamespace(t *testing.T) {
	for _, tt := range []struct {
		name string
		spec v1alpha1.AgentPolicySpec
		want []string
	}{
		{"a profile that only audits says so first", v1alpha1.AgentPolicySpec{SessionTemplates: templates("agent")},
			[]string{"audit      Profile standard only audits: nothing is refused here, and what would be is counted."}},
		{"several templates can be chosen", v1alpha1.AgentPolicySpec{SessionTemplates: templates("agent", "ci")},
			[]string{"sessions   template agent (ServiceAccount agent), template ci (ServiceAccount ci); in short is for agent, --template\n           chooses"}},
		{"without a template nobody may work", v1alpha1.AgentPolicySpec{},
			[]string{"sessions   No session template: no agent of this namespace has a session, so every write of theirs is refused."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			made, err := explain(world(t, tt.spec), "checkout", "", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			text, err := made.text(terminal.Paint{})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(text, want+"\n") {
					t.Errorf("want %q in:\n%s", want, text)
				}
			}
			for line := range strings.Lines(text) {
				if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 120 {
					t.Errorf("too wide: %q", line)
				}
			}
		})
	}
}
