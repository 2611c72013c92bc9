package identity_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

func TestSessionNames(t *testing.T) {
	for _, test := range []struct{ name, owner, uid, want string }{
		{"a name and five characters of the UID", "web", "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9", "web-0a1b2"},
		{"the dashes of a UID do not count", "web", "0a-1-b-2c3", "web-0a1b2"},
		{"a long name is cut", strings.Repeat("x", 253), "0a1b2c3d", strings.Repeat("x", 57) + "-0a1b2"},
		{"a cut leaves no dash or dot before the UID", strings.Repeat("x", 55) + ".-yyyyyyyyy", "0a1b2c3d", strings.Repeat("x", 55) + "-0a1b2"},
		{"a name that just fits stays whole", strings.Repeat("x", 57), "0a1b2c3d", strings.Repeat("x", 57) + "-0a1b2"},
		{"a short UID is taken whole", "web", "ab", "web-ab"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := identity.SessionName(v1alpha1.RootOwner{Kind: "Deployment", Name: test.owner, UID: types.UID(test.uid)})
			if got != test.want {
				t.Errorf("SessionName = %q, want %q", got, test.want)
			}
		})
	}
}

// A session's name is an object name and the value of a label on its grants, whatever its owner is called.
func TestEverySessionNameIsAnObjectNameAndALabelValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?`).Filter(func(s string) bool {
			return len(validation.IsDNS1123Subdomain(s)) == 0
		}).Draw(t, "owner")
		uid := rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`).Draw(t, "uid")
		got := identity.SessionName(v1alpha1.RootOwner{Kind: "Job", Name: name, UID: types.UID(uid)})
		if found := append(validation.IsDNS1123Subdomain(got), validation.IsValidLabelValue(got)...); len(found) > 0 {
			t.Fatalf("%q: %v", got, found)
		}
	})
}

func TestAnOwnerMadeAnewHasAnotherSession(t *testing.T) {
	first := identity.SessionName(v1alpha1.RootOwner{Name: "web", UID: "0a1b2c3d-4e5f"})
	if second := identity.SessionName(v1alpha1.RootOwner{Name: "web", UID: "9f8e7d6c-4e5f"}); first == second {
		t.Errorf("both are %q", first)
	}
}

func TestDerivedSessions(t *testing.T) {
	root := v1alpha1.RootOwner{Kind: "Deployment", Name: "web", UID: "0a1b2c3d"}
	settings := policystore.Namespace{Profile: "standard", Policy: &v1alpha1.AgentPolicy{}, ModelTier: v1alpha1.ModelTierLarge, InitiativeMode: v1alpha1.InitiativeModeFast}
	workload := func() *v1alpha1.AgentSession {
		return &v1alpha1.AgentSession{
			ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "web-0a1b2", Labels: map[string]string{v1alpha1.LabelTemplate: "agent"}},
			Spec: v1alpha1.AgentSessionSpec{
				Identity: v1alpha1.SessionIdentity{Type: v1alpha1.IdentityServiceAccount, ServiceAccountName: "agent", RootOwner: &root},
				UserName: "ana@acme.example", ModelTier: v1alpha1.ModelTierLarge, InitiativeMode: v1alpha1.InitiativeModeFast,
				Authority: template().Authority, DeadlineTime: metav1.NewTime(now.Add(time.Hour)),
			},
		}
	}
	for _, test := range []struct {
		name   string
		change func(*v1alpha1.SessionTemplate, *corev1.Pod)
		want   func(*v1alpha1.AgentSession)
	}{
		{"one per workload", func(*v1alpha1.SessionTemplate, *corev1.Pod) {}, func(*v1alpha1.AgentSession) {}},
		{
			"one per pod", func(t *v1alpha1.SessionTemplate, _ *corev1.Pod) { t.Lifetime = v1alpha1.SessionLifetimePod },
			func(s *v1alpha1.AgentSession) {
				s.Name, s.Labels[v1alpha1.LabelRootOwner] = "web-1-abcde-podui", "0a1b2c3d"
				s.Spec.Identity.RootOwner, s.Spec.Identity.PodName, s.Spec.Identity.PodUID = nil, "web-1-abcde", "pod-uid"
			},
		},
		{
			"the user of the pod's annotation", func(t *v1alpha1.SessionTemplate, p *corev1.Pod) {
				t.User = v1alpha1.TemplateUser{Source: v1alpha1.UserSourcePodAnnotation}
				p.Annotations = map[string]string{v1alpha1.AnnotationUser: "ben@acme.example"}
			},
			func(s *v1alpha1.AgentSession) { s.Spec.UserName = "ben@acme.example" },
		},
		{
			"a fixed user, whatever the pod says", func(_ *v1alpha1.SessionTemplate, p *corev1.Pod) {
				p.Annotations = map[string]string{v1alpha1.AnnotationUser: "ben@acme.example"}
			},
			func(*v1alpha1.AgentSession) {},
		},
		{
			"48 hours where the template names no age", func(t *v1alpha1.SessionTemplate, _ *corev1.Pod) { t.MaxAgeSeconds = 0 },
			func(s *v1alpha1.AgentSession) { s.Spec.DeadlineTime = metav1.NewTime(now.Add(48 * time.Hour)) },
		},
		{
			"the template's adapter", func(t *v1alpha1.SessionTemplate, _ *corev1.Pod) { t.Adapter = &v1alpha1.Adapter{Name: "kubectl"} },
			func(s *v1alpha1.AgentSession) { s.Spec.Adapter = &v1alpha1.Adapter{Name: "kubectl"} },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			from, pod, want := template(), agentPod(), workload()
			test.change(&from, pod)
			test.want(want)
			got := identity.Derive(from, settings, pod, root, now.Add(300*time.Millisecond))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("derived (-want +got):\n%s", diff)
			}
			if !identity.MatchesPod(got, pod, root) {
				t.Error("the derived session does not cover the pod that it was derived for")
			}
		})
	}
}

func TestADerivedSessionSharesNothingWithItsTemplate(t *testing.T) {
	from := template()
	got := identity.Derive(from, policystore.Namespace{}, agentPod(), v1alpha1.RootOwner{}, now)
	got.Spec.Authority.Stages[0] = v1alpha1.StagePublish
	if from.Authority.Stages[0] != v1alpha1.StageExecute {
		t.Error("a change of the session changes the template of the snapshot")
	}
}

func TestWhichPodsASessionCovers(t *testing.T) {
	root := v1alpha1.RootOwner{Kind: "Deployment", Name: "web", UID: "deploy-uid"}
	for _, test := range []struct {
		name   string
		change func(*v1alpha1.SessionIdentity, *corev1.Pod)
		want   bool
	}{
		{"every pod of the ServiceAccount", func(*v1alpha1.SessionIdentity, *corev1.Pod) {}, true},
		{"no pod of another ServiceAccount", func(_ *v1alpha1.SessionIdentity, p *corev1.Pod) { p.Spec.ServiceAccountName = "batch" }, false},
		{"no pod of another namespace", func(_ *v1alpha1.SessionIdentity, p *corev1.Pod) { p.Namespace = "payments" }, false},
		{"no pod for a user", func(i *v1alpha1.SessionIdentity, _ *corev1.Pod) { i.Type = v1alpha1.IdentityUser }, false},
		{"the workload's", func(i *v1alpha1.SessionIdentity, _ *corev1.Pod) { i.RootOwner = &v1alpha1.RootOwner{UID: "deploy-uid"} }, true},
		{"not those of a workload made anew", func(i *v1alpha1.SessionIdentity, _ *corev1.Pod) {
			i.RootOwner = &v1alpha1.RootOwner{Kind: "Deployment", Name: "web", UID: "older"}
		}, false},
		{"the pod itself", func(i *v1alpha1.SessionIdentity, _ *corev1.Pod) { i.PodName, i.PodUID = "web-1-abcde", "pod-uid" }, true},
		{"not the next pod of its name", func(i *v1alpha1.SessionIdentity, _ *corev1.Pod) { i.PodName, i.PodUID = "web-1-abcde", "older" }, false},
		{"not another pod", func(i *v1alpha1.SessionIdentity, _ *corev1.Pod) { i.PodName = "web-2" }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, pod := bySession("a", nil), agentPod()
			test.change(&s.Spec.Identity, pod)
			if got := identity.MatchesPod(s, pod, root); got != test.want {
				t.Errorf("covers = %v, want %v", got, test.want)
			}
		})
	}
}

// Proves F-1 for a session's end: the deadline itself is over.
func TestASessionEndsAtItsDeadline(t *testing.T) {
	s := bySession("a", nil)
	for offset, want := range map[time.Duration]bool{-time.Second: false, 0: true, time.Second: true} {
		if got := identity.Ended(s, s.Spec.DeadlineTime.Add(offset)); got != want {
			t.Errorf("ended %s from the deadline: %v, want %v", offset, got, want)
		}
	}
	s.Status.State = v1alpha1.SessionEnded
	if !identity.Ended(s, now) {
		t.Error("a session whose end was recorded has not ended")
	}
	if got := identity.Epoch(s); got != 1 {
		t.Errorf("epoch of a session that no controller saw = %d, want 1", got)
	}
}

func TestWhoACallerIs(t *testing.T) {
	for name, want := range map[string][2]string{
		"system:serviceaccount:checkout:agent":      {"checkout", "agent"},
		"system:serviceaccount:checkout:agent:more": {"checkout", "agent:more"},
		"system:serviceaccount:checkout:":           {},
		"system:serviceaccount::agent":              {},
		"system:serviceaccount:checkout":            {},
		"system:node:worker-3":                      {},
		"ana@acme.example":                          {},
		"":                                          {},
	} {
		c := identity.Caller{UserInfo: authenticationv1.UserInfo{Username: name}}
		namespace, account, ok := c.ServiceAccount()
		if ok != (want != [2]string{}) || ok && (namespace != want[0] || account != want[1]) {
			t.Errorf("%q is ServiceAccount %q/%q, %v; want %v", name, namespace, account, ok, want)
		}
		if c.HasCredential() {
			t.Errorf("%q has a credential without one", name)
		}
	}
}

// Proves F-1: the answer of the engine to a session that is not there is a refusal, whatever its state says.
func TestAMissingSessionIsRefusedByTheEngine(t *testing.T) {
	resolver := identity.Resolver{Cached: &reader{}, Live: &reader{}}
	policies := snapshot(t)
	got, err := resolver.Resolve(t.Context(), caller(nil), policies, now)
	if err != nil {
		t.Fatal(err)
	}
	op := policy.Operation{Capability: policy.CapabilityExecuteLocal, Stage: policy.StageExecute, Verb: policy.VerbCreate, Kubernetes: &policy.KubernetesRequest{}}
	if d := policies.Engine.Decide(op, got.View, now); d.Verdict != policy.VerdictDeny || d.Reason != policy.ReasonNoSession {
		t.Errorf("answer %s %s, want Deny NoSession", d.Verdict, d.Reason)
	}
}
