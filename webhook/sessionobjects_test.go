package webhook

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

type sessionChange func(*v1alpha1.AgentSession)

// opened is a session that fits the template of checkout/agent, changed as said.
func opened(changes ...sessionChange) *v1alpha1.AgentSession {
	s := &v1alpha1.AgentSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "ledger-migration"},
		Spec: v1alpha1.AgentSessionSpec{
			Identity: v1alpha1.SessionIdentity{Type: v1alpha1.IdentityServiceAccount, ServiceAccountName: "agent"},
			UserName: "carla@acme.example", ModelTier: v1alpha1.ModelTierMedium, InitiativeMode: v1alpha1.InitiativeModeStandard,
			Authority: v1alpha1.Authority{
				Stages: []v1alpha1.Stage{v1alpha1.StageExecute}, Capabilities: []v1alpha1.Capability{v1alpha1.CapabilityExecuteLocal},
				Kubernetes: []v1alpha1.KubernetesAuthority{{
					Groups: []string{"apps"}, Resources: []string{"deployments/scale"}, Names: []string{"web-1", "web-a*"}, Verbs: []v1alpha1.Verb{v1alpha1.VerbUpdate},
				}},
				Budgets: &v1alpha1.Budgets{MaxMutations: new(int32(200))},
			},
			DeadlineTime: metav1.NewTime(now.Add(time.Hour)),
		},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func kubernetes(change func(*v1alpha1.KubernetesAuthority)) sessionChange {
	return func(s *v1alpha1.AgentSession) { change(&s.Spec.Authority.Kubernetes[0]) }
}

// Proves K-1 for sessions that people open.
func TestASessionFitsItsNamespaceAndProfile(t *testing.T) {
	objects := objectsFor(t, governedCluster(), verbs{}.access)
	invalid := func(why string) string {
		return `422 Invalid: AgentSession.stepbeyond.dev "ledger-migration" is invalid: ` + why
	}
	const beyond = `exceeds session template "agent"; leave it out, or the platform team widens the template`
	const uncovered = "spec.authority.kubernetes[0]: Invalid value: no single entry covers it: it " + beyond
	user := func(name string) sessionChange {
		return func(s *v1alpha1.AgentSession) {
			s.Spec.Identity = v1alpha1.SessionIdentity{Type: v1alpha1.IdentityUser, UserName: name}
		}
	}
	tests := []struct {
		name    string
		session *v1alpha1.AgentSession
		want    string
	}{
		{"one that fits", opened(), "allowed"},
		{"an account without a template", opened(func(s *v1alpha1.AgentSession) {
			s.Spec.Identity.ServiceAccountName, s.Spec.Authority.Kubernetes = "migration", nil
		}), "allowed"},
		{"a deadline that has passed", opened(func(s *v1alpha1.AgentSession) { s.Spec.DeadlineTime = metav1.NewTime(now) }),
			invalid("spec.deadlineTime: Invalid value: has passed; give a time to come")},
		{"a namespace that is not governed", opened(func(s *v1alpha1.AgentSession) { s.Namespace = "free" }),
			invalid("metadata.namespace: Invalid value: free is not governed, so a session there would bind nobody; label it stepbeyond.dev/profile=PROFILE or use a governed namespace")},
		{"a namespace of the cluster", opened(func(s *v1alpha1.AgentSession) { s.Namespace = "kube-system" }),
			invalid("metadata.namespace: Invalid value: kube-system is not governed, so a session there would bind nobody; label it stepbeyond.dev/profile=PROFILE or use a governed namespace")},
		{"a governed user", opened(user("release-agent")), "allowed"},
		{"a user that is not governed", opened(user("carla@acme.example")),
			invalid("spec.identity.userName: Invalid value: is not a governed user with sessionNamespace checkout; the platform team lists it in spec.governed.users of a ClusterAgentPolicy")},
		{"a governed user of another namespace", opened(user("release-agent"), func(s *v1alpha1.AgentSession) { s.Namespace = "payments" }),
			invalid("spec.identity.userName: Invalid value: is not a governed user with sessionNamespace payments; the platform team lists it in spec.governed.users of a ClusterAgentPolicy")},
		{"a stage beyond the template", opened(func(s *v1alpha1.AgentSession) {
			s.Spec.Authority.Stages = []v1alpha1.Stage{v1alpha1.StageExecute, v1alpha1.StagePublish}
		}), invalid("spec.authority.stages[1]: Invalid value: " + beyond)},
		{"a capability beyond the template", opened(func(s *v1alpha1.AgentSession) {
			s.Spec.Authority.Capabilities = []v1alpha1.Capability{v1alpha1.CapabilityPublishExternal}
		}), invalid("spec.authority.capabilities[0]: Invalid value: " + beyond)},
		{"no narrowing where the template narrows", opened(func(s *v1alpha1.AgentSession) { s.Spec.Authority.Kubernetes = nil }),
			invalid(`spec.authority.kubernetes: Required value: session template "agent" narrows the writes, so this session must narrow them as well`)},
		{"another group", opened(kubernetes(func(k *v1alpha1.KubernetesAuthority) { k.Groups = []string{"apps", "*"} })), invalid(uncovered)},
		{"another resource", opened(kubernetes(func(k *v1alpha1.KubernetesAuthority) { k.Resources = []string{"deploymentsets/scale"} })), invalid(uncovered)},
		{"every resource", opened(kubernetes(func(k *v1alpha1.KubernetesAuthority) { k.Resources = []string{"*"} })), invalid(uncovered)},
		{"another name", opened(kubernetes(func(k *v1alpha1.KubernetesAuthority) { k.Names = []string{"we*"} })), invalid(uncovered)},
		{"every name", opened(kubernetes(func(k *v1alpha1.KubernetesAuthority) { k.Names = nil })), invalid(uncovered)},
		{"another verb", opened(kubernetes(func(k *v1alpha1.KubernetesAuthority) { k.Verbs = []v1alpha1.Verb{v1alpha1.VerbDelete} })), invalid(uncovered)},
		{"a larger budget", opened(func(s *v1alpha1.AgentSession) { s.Spec.Authority.Budgets.MaxMutations = new(int32(201)) }),
			invalid("spec.authority.budgets.maxMutations: Invalid value: must be at most 200: it " + beyond)},
		{"no budget", opened(func(s *v1alpha1.AgentSession) { s.Spec.Authority.Budgets = nil }),
			invalid("spec.authority.budgets.maxMutations: Invalid value: must be at most 200: it " + beyond)},
		{"somebody else as the opener", opened(func(s *v1alpha1.AgentSession) {
			s.Annotations = map[string]string{v1alpha1.AnnotationOpenedBy: "ben@acme.example"}
		}), "403 Forbidden: metadata.annotations[stepbeyond.dev/opened-by]: Forbidden: is written by the server; leave it out"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, got := admit(t, objects, person("petra@acme.example"), "AgentSession", tt.session, nil); got != tt.want {
				t.Errorf("answer (-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

func TestASessionWithoutTheOpenersStampIsRefused(t *testing.T) {
	objects := objectsFor(t, governedCluster(), verbs{}.access)
	want := "403 Forbidden: metadata.annotations[stepbeyond.dev/opened-by]: Forbidden: is written by the server; leave it out"
	if got := said(objects.Handle(t.Context(), reviewOf(t, person("petra@acme.example"), "AgentSession", opened(), nil))); got != want {
		t.Errorf("answer (-want +got):\n%s", cmp.Diff(want, got))
	}
}

func TestAnEndedSessionMayBeChanged(t *testing.T) {
	objects := objectsFor(t, governedCluster(), verbs{}.access)
	ended := opened(func(s *v1alpha1.AgentSession) { s.Spec.DeadlineTime = metav1.NewTime(now.Add(-time.Hour)) })
	if got := said(objects.Handle(t.Context(), reviewOf(t, person("petra@acme.example"), "AgentSession", ended, opened()))); got != "allowed" {
		t.Error(got)
	}
}

func TestTheOpenerIsWrittenOnCreateAndKept(t *testing.T) {
	annotated := func(annotations map[string]string) *v1alpha1.AgentSession {
		return opened(func(s *v1alpha1.AgentSession) { s.Annotations = annotations })
	}
	carla := map[string]string{v1alpha1.AnnotationOpenedBy: "carla@acme.example"}
	tests := []struct {
		name     string
		new, old *v1alpha1.AgentSession
		want     map[string]string
	}{
		{"created without annotations", opened(), nil, map[string]string{v1alpha1.AnnotationOpenedBy: "petra@acme.example"}},
		{"created with another annotation", annotated(map[string]string{"change": "INC-4412"}), nil,
			map[string]string{v1alpha1.AnnotationOpenedBy: "petra@acme.example", "change": "INC-4412"}},
		{"updated and kept", annotated(carla), annotated(carla), carla},
		{"updated and dropped", opened(), annotated(carla), carla},
		{"updated and changed", annotated(map[string]string{v1alpha1.AnnotationOpenedBy: "petra@acme.example"}), annotated(carla), carla},
		{"added to a session of the manager", annotated(carla), opened(), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stamper := &ObjectsStamp{Store: loaded(t, governedCluster()), Now: func() time.Time { return now }}
			req := reviewOf(t, person("petra@acme.example"), "AgentSession", tt.new, nil)
			if tt.old != nil {
				req = reviewOf(t, person("petra@acme.example"), "AgentSession", tt.new, tt.old)
			}
			response := stamper.Handle(t.Context(), req)
			if !response.Allowed {
				t.Fatal(said(response))
			}
			var got v1alpha1.AgentSession
			if err := json.Unmarshal(patched(t, req, response), &got); err != nil {
				t.Fatal(err)
			}
			if len(got.Annotations) == 0 {
				got.Annotations = nil
			}
			if diff := cmp.Diff(tt.want, got.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves F-1.
func TestNothingIsStampedBeforeASnapshotIsLoaded(t *testing.T) {
	stamper := &ObjectsStamp{Now: func() time.Time { return now }, Store: &policystore.Store{}}
	got := stamper.Handle(t.Context(), reviewOf(t, person("petra@acme.example"), "AgentSession", opened(), nil))
	want := "403 PolicyNotLoaded: Denied: create agentsessions checkout/ledger-migration is refused: Step Beyond is starting and has no policy yet; nothing was asked. Next: run this command again in 10 seconds."
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}
