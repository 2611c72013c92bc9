package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

func rule(name, when string) v1alpha1.Rule {
	return v1alpha1.Rule{
		Name: name, Class: v1alpha1.RuleClassAsk, When: when,
		Match: v1alpha1.OperationMatch{Kubernetes: []v1alpha1.KubernetesMatch{{
			Groups: []string{""}, Resources: []string{"services"}, Verbs: []v1alpha1.Verb{v1alpha1.VerbCreate},
		}}},
	}
}

func TestAClusterPolicyThatCouldNotComeIntoForceIsRefused(t *testing.T) {
	petra, piet := person("petra@acme.example"), person("piet@acme.example")
	objects := objectsFor(t, governedCluster(), verbs{"petra@acme.example ungovern": true}.access)
	invalid := func(why string) string {
		return `422 Invalid: ClusterAgentPolicy.stepbeyond.dev "extra" is invalid: ` + why
	}
	released := func(namespaces ...string) func(*v1alpha1.ClusterAgentPolicy) {
		return func(p *v1alpha1.ClusterAgentPolicy) {
			for _, namespace := range namespaces {
				p.Spec.Governed.Released = append(p.Spec.Governed.Released, v1alpha1.ReleasedNamespace{Namespace: namespace, Reason: "moved"})
			}
		}
	}
	tests := []struct {
		name string
		user authenticationv1.UserInfo
		old  *v1alpha1.ClusterAgentPolicy
		new  *v1alpha1.ClusterAgentPolicy
		want string
	}{
		{"a minimal one", piet, nil, clusterPolicy("extra"), "allowed"},
		{"an expression that does not parse", piet, nil, clusterPolicy("extra", func(p *v1alpha1.ClusterAgentPolicy) {
			p.Spec.Rules = []v1alpha1.Rule{rule("fine", "true"), rule("broken", "object.spec.type ==\n  'a' &&& true")}
		}), invalid("spec.rules[1].when: Invalid value: rule broken, line 2, column 9: Syntax error: token recognition error at: '& '")},
		{"an expression with a variable that is not there", piet, nil, clusterPolicy("extra", func(p *v1alpha1.ClusterAgentPolicy) {
			p.Spec.Catalogue = []v1alpha1.CatalogueEntry{{Name: "reads", When: "secret.data == ''", Facts: v1alpha1.FactSets{Present: []v1alpha1.Fact{v1alpha1.FactLocal}}}}
		}), invalid("spec.catalogue[0].when: Invalid value: entry reads, line 1, column 1: undeclared reference to 'secret' (in container '')")},
		{"a baseline that is not embedded", piet, nil, clusterPolicy("extra", func(p *v1alpha1.ClusterAgentPolicy) { p.Spec.BaselineVersion = "v99" }),
			invalid("spec.baselineVersion: Invalid value: this binary embeds v1")},
		{"an identity of the cluster as a governed user", piet, nil, clusterPolicy("extra", func(p *v1alpha1.ClusterAgentPolicy) {
			p.Spec.Governed.Users = []v1alpha1.GovernedUser{{Name: "fine", SessionNamespace: "checkout"}, {Name: "system:kube-scheduler", SessionNamespace: "kube-system"}}
		}), invalid(`[spec.governed.users[1].name: Invalid value: users: "system:kube-scheduler" can never be governed: it is an identity of the cluster; ServiceAccounts are governed by namespace, ` +
			`spec.governed.users[1].sessionNamespace: Invalid value: namespaces: "kube-system" can never be governed]`)},
		{"the canary as an exempt account", piet, nil, clusterPolicy("extra", func(p *v1alpha1.ClusterAgentPolicy) {
			p.Spec.Governed.ExemptServiceAccounts = []v1alpha1.ExemptServiceAccount{{ServiceAccountReference: v1alpha1.ServiceAccountReference{Namespace: "stepbeyond-canary", Name: "canary"}}}
		}), invalid("spec.governed.exemptServiceAccounts[0]: Invalid value: exempt: stepbeyond-canary/canary can never be exempt: it proves enforcement")},
		{"a profile name that another one binds", piet, nil, clusterPolicy("extra", func(p *v1alpha1.ClusterAgentPolicy) {
			p.Spec.Profiles = []v1alpha1.ProfileBinding{{Name: "own", AgentPolicyName: "own"}, {Name: "standard", AgentPolicyName: "own"}}
		}), invalid("spec.profiles[1].name: Invalid value: profile standard is bound by ClusterAgentPolicy default; bind it in one of the two")},
		{"a change of the one that binds the profiles", piet, clusterPolicy("default"), &governedCluster().policies[0], "allowed"},
		{"a namespace let go by somebody with ungovern", petra, nil, clusterPolicy("extra", released("checkout")), "allowed"},
		{"a namespace let go by somebody without it", piet, clusterPolicy("extra", released("free")), clusterPolicy("extra", released("free", "checkout")),
			"403 Forbidden: spec.governed.released[1]: Forbidden: letting a namespace go needs the verb ungovern on clusteragentpolicies; ask who administers them"},
		{"a namespace let go by somebody who looks like one with ungovern", impersonated(petra), nil, clusterPolicy("extra", released("checkout")),
			"403 Forbidden: spec.governed.released[0]: Forbidden: letting a namespace go needs your own certificate or token, without --as"},
		{"an entry that was there before", piet, clusterPolicy("extra", released("free")), clusterPolicy("extra", released("free")), "allowed"},
		{"a namespace that is taken back", piet, clusterPolicy("extra", released("free")), clusterPolicy("extra"), "allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := reviewOf(t, tt.user, "ClusterAgentPolicy", tt.new, nil)
			if tt.old != nil {
				req = reviewOf(t, tt.user, "ClusterAgentPolicy", tt.new, tt.old)
			}
			if got := said(objects.Handle(t.Context(), req)); got != tt.want {
				t.Errorf("answer (-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

func TestAnInvalidObjectNamesItsFieldsForMachines(t *testing.T) {
	objects := objectsFor(t, governedCluster(), verbs{}.access)
	policy := clusterPolicy("extra", func(p *v1alpha1.ClusterAgentPolicy) { p.Spec.Rules = []v1alpha1.Rule{rule("broken", "1")} })
	got := objects.Handle(t.Context(), reviewOf(t, person("piet@acme.example"), "ClusterAgentPolicy", policy, nil)).Result.Details
	want := &metav1.StatusDetails{Group: "stepbeyond.dev", Kind: "ClusterAgentPolicy", Name: "extra", Causes: []metav1.StatusCause{
		{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.rules[0].when", Message: "Invalid value: rule broken, line 1, column 1: the expression must give a bool, not int"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
}

func TestANamespaceOwnsItsRulesAndWhatIsDelegated(t *testing.T) {
	objects := objectsFor(t, governedCluster(), verbs{}.access)
	agentPolicy := func(namespace, name string, changes ...func(*v1alpha1.AgentPolicySpec)) *v1alpha1.AgentPolicy {
		p := &v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.AgentPolicySpec{RulesEnforcement: v1alpha1.EnforcementEnforce}}
		for _, change := range changes {
			change(&p.Spec)
		}
		return p
	}
	rules := func(s *v1alpha1.AgentPolicySpec) { s.Rules = []v1alpha1.Rule{rule("ask-services", "")} }
	tier := func(s *v1alpha1.AgentPolicySpec) { s.ModelTier = v1alpha1.ModelTierSmall }
	mode := func(s *v1alpha1.AgentPolicySpec) {
		s.Initiative = &v1alpha1.Initiative{Mode: v1alpha1.InitiativeModeFast}
	}
	strict := func(s *v1alpha1.AgentPolicySpec) {
		s.Initiative = &v1alpha1.Initiative{Mode: v1alpha1.InitiativeModeStrict}
	}
	thresholds := func(s *v1alpha1.AgentPolicySpec) {
		s.Initiative = &v1alpha1.Initiative{Thresholds: []v1alpha1.InitiativeThreshold{{Mode: v1alpha1.InitiativeModeFast, MinScorePercent: 1, MaxOptionalActions: 1}}}
	}
	templates := func(accounts ...string) func(*v1alpha1.AgentPolicySpec) {
		return func(s *v1alpha1.AgentPolicySpec) {
			for i, account := range accounts {
				s.SessionTemplates = append(s.SessionTemplates, v1alpha1.SessionTemplate{Name: string(rune('a' + i)), ServiceAccountName: account})
			}
		}
	}
	settings := func(s *v1alpha1.AgentPolicySpec) {
		s.Confidence, s.Approvals, s.Caps, s.Retention = &v1alpha1.Confidence{}, &v1alpha1.Approvals{}, &v1alpha1.Caps{}, &v1alpha1.Retention{}
	}
	tools := func(names ...string) func(*v1alpha1.AgentPolicySpec) {
		return func(s *v1alpha1.AgentPolicySpec) {
			s.Catalogue = []v1alpha1.CatalogueEntry{{Name: "tools", Match: v1alpha1.OperationMatch{Tools: names}, Effect: v1alpha1.EffectRead}}
		}
	}
	notDelegated := func(path, setting string) string {
		return "spec." + path + ": Forbidden: is not delegated to this namespace; leave it to the profile, or the platform team adds " + setting +
			" to spec.delegation.namespaceMaySet of the ClusterAgentPolicy that governs it"
	}
	profiles := func(path string) string {
		return "spec." + path + ": Forbidden: belongs to the profile; a namespace's own policy tightens with rules, or the platform team makes another profile"
	}
	tests := []struct {
		name   string
		policy *v1alpha1.AgentPolicy
		want   string
	}{
		{"a profile sets everything", agentPolicy("stepbeyond-system", "strict", rules, tier, mode, templates("agent", "bot"), settings), "allowed"},
		{"a namespace has rules", agentPolicy("checkout", "default", rules), "allowed"},
		{"a namespace has a rule that does not compile", agentPolicy("checkout", "default", func(s *v1alpha1.AgentPolicySpec) {
			s.Rules = []v1alpha1.Rule{rule("broken", "1 +")}
		}), `422 Invalid: AgentPolicy.stepbeyond.dev "default" is invalid: spec.rules[0].when: Invalid value: rule broken, line 1, column 4: Syntax error: mismatched input '<EOF>' expecting ` +
			`{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}`},
		{"a namespace's policy has another name", agentPolicy("checkout", "mine"),
			`422 Invalid: AgentPolicy.stepbeyond.dev "mine" is invalid: metadata.name: Invalid value: outside stepbeyond-system an AgentPolicy is named default, because a namespace has one`},
		{"what is delegated", agentPolicy("checkout", "default", tier), "allowed"},
		{"what is not delegated: the mode", agentPolicy("checkout", "default", mode), "403 Forbidden: " + notDelegated("initiative.mode", "InitiativeMode")},
		{"the mode strict, which only tightens", agentPolicy("checkout", "default", strict), "allowed"},
		{"what is not delegated: thresholds", agentPolicy("checkout", "default", thresholds), "403 Forbidden: " + notDelegated("initiative.thresholds", "InitiativeThresholds")},
		{"what is not delegated: templates", agentPolicy("checkout", "default", templates("agent")), "403 Forbidden: " + notDelegated("sessionTemplates", "SessionTemplates")},
		{"nothing is delegated to a namespace that nobody governs", agentPolicy("free", "default", tier), "403 Forbidden: " + notDelegated("modelTier", "ModelTier")},
		{"what is delegated: a tool's facts", agentPolicy("checkout", "default", tools("mcp:checkout/*")), "allowed"},
		{"what is not delegated: another tool's facts", agentPolicy("checkout", "default", tools("mcp:checkout/stock", "mcp:ledger/balance")),
			"403 Forbidden: spec.catalogue[0].match.tools: Forbidden: names a tool that is not delegated to this namespace; begin every tool with a prefix of " +
				"spec.delegation.catalogueToolPrefixes of the ClusterAgentPolicy that governs it"},
		{"a profile catalogues any tool", agentPolicy("stepbeyond-system", "strict", tools("*")), "allowed"},
		{"the profile's own settings", agentPolicy("checkout", "default", settings),
			"403 Forbidden: [" + profiles("confidence") + ", " + profiles("approvals") + ", " + profiles("caps") + ", " + profiles("retention") + "]"},
		{"two templates of one ServiceAccount", agentPolicy("stepbeyond-system", "strict", templates("agent", "bot", "agent")),
			`422 Invalid: AgentPolicy.stepbeyond.dev "strict" is invalid: spec.sessionTemplates[2].serviceAccountName: Invalid value: is the ServiceAccount of template a as well; keep one of the two`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := said(objects.Handle(t.Context(), reviewOf(t, person("petra@acme.example"), "AgentPolicy", tt.policy, nil))); got != tt.want {
				t.Errorf("answer (-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

// kubectl apply of a Namespace and of what lives in it is one command; the cache learns of the Namespace a moment later.
func TestANamespaceThatJoinsJustNowIsNotYetGoverned(t *testing.T) {
	c := governedCluster()
	objects := objectsFor(t, c, verbs{}.access)
	objects.Reader = governedCluster()
	c.namespaces = append(c.namespaces, corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "fresh", Labels: map[string]string{v1alpha1.LabelProfile: "standard"}},
	})
	own := func(spec v1alpha1.AgentPolicySpec) *v1alpha1.AgentPolicy {
		return &v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "fresh", Name: "default"}, Spec: spec}
	}
	const notYet = "is invalid: metadata.namespace: Invalid value: fresh is not governed yet; apply it again in a moment, and if that changes nothing no ClusterAgentPolicy selects it"
	tests := []struct {
		name   string
		kind   string
		object client.Object
		want   string
	}{
		{"a policy that sets what may be delegated", "AgentPolicy", own(v1alpha1.AgentPolicySpec{ModelTier: v1alpha1.ModelTierSmall}),
			`422 Invalid: AgentPolicy.stepbeyond.dev "default" ` + notYet},
		{"a policy that only tightens", "AgentPolicy", own(v1alpha1.AgentPolicySpec{Rules: []v1alpha1.Rule{rule("ask-services", "")}}), "allowed"},
		{"a session", "AgentSession", opened(func(s *v1alpha1.AgentSession) { s.Namespace = "fresh" }),
			`422 Invalid: AgentSession.stepbeyond.dev "ledger-migration" ` + notYet},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, got := admit(t, objects, person("petra@acme.example"), tt.kind, tt.object, nil); got != tt.want {
				t.Errorf("answer (-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

func TestTheFirstClusterPolicyByNameDelegates(t *testing.T) {
	c := governedCluster()
	stricter := *clusterPolicy("a-first", func(p *v1alpha1.ClusterAgentPolicy) { p.UID = "first-uid" })
	broken := *clusterPolicy("0-broken", func(p *v1alpha1.ClusterAgentPolicy) {
		p.UID, p.Spec.BaselineVersion = "broken-uid", "v99"
		p.Spec.Delegation = &v1alpha1.Delegation{NamespaceMaySet: []v1alpha1.DelegableSetting{v1alpha1.DelegableModelTier}}
	})
	c.policies = append(c.policies, stricter, broken)
	objects := objectsFor(t, c, verbs{}.access)
	policy := &v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "default"}, Spec: v1alpha1.AgentPolicySpec{ModelTier: v1alpha1.ModelTierSmall}}
	got := objects.Handle(t.Context(), reviewOf(t, person("petra@acme.example"), "AgentPolicy", policy, nil))
	if got.Allowed {
		t.Error("a setting was taken that the governing ClusterAgentPolicy does not delegate")
	}
}
