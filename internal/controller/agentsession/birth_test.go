package agentsession_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity"
)

func TestReplicasOfADeploymentShareTheSessionThatTheWebhookDerives(t *testing.T) {
	checkout := namespace(t, "standard")
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
		Spec:       pod("", "", nil, "").Spec,
	}
	selector := &metav1.LabelSelector{MatchLabels: template.Labels}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: checkout, Name: "fix-latency"},
		Spec:       appsv1.DeploymentSpec{Selector: selector, Template: template},
	}
	create(t, deployment)
	replicas := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: checkout, Name: "fix-latency-1", OwnerReferences: controlledBy(deployment, "Deployment")},
		Spec:       appsv1.ReplicaSetSpec{Selector: selector, Template: template},
	}
	create(t, replicas)
	first, second := pod(checkout, "fix-latency-a", replicas, "ReplicaSet"), pod(checkout, "fix-latency-b", replicas, "ReplicaSet")
	create(t, first, second)
	o := start(t)
	o.bear(t, first)
	o.bear(t, second)

	got := sessions(t, checkout)
	if len(got) != 1 {
		t.Fatalf("%d sessions, want the one that both replicas share", len(got))
	}
	settings, _ := o.store.Current().Namespace(checkout)
	sessionTemplate, _ := o.store.Current().Template(checkout, "agent")
	root := v1alpha1.RootOwner{Kind: "Deployment", Name: deployment.Name, UID: deployment.UID}
	want := identity.Derive(sessionTemplate, settings, first, root, got[0].CreationTimestamp.Time)
	want.Spec.DeadlineTime = got[0].Spec.DeadlineTime
	if diff := cmp.Diff(want.Spec, got[0].Spec); diff != "" {
		t.Errorf("spec (-derived +created):\n%s", diff)
	}
	if diff := cmp.Diff([]any{want.Name, want.Labels}, []any{got[0].Name, got[0].Labels}); diff != "" {
		t.Errorf("name and labels (-derived +created):\n%s", diff)
	}
	var live []string
	for _, p := range o.observe(t, &got[0]).LivePods {
		live = append(live, p.Name)
	}
	if diff := cmp.Diff([]string{"fix-latency-a", "fix-latency-b"}, live); diff != "" {
		t.Errorf("live pods (-want +got):\n%s", diff)
	}
}

func TestBirthMakesNoSession(t *testing.T) {
	tests := []struct {
		name    string
		profile string
		change  func(t *testing.T, o *operator, pod *corev1.Pod)
		want    int // sessions that are there without this birth
		event   string
	}{
		{
			name: "for a pod whose template an agent wrote", profile: "standard",
			change: func(_ *testing.T, _ *operator, pod *corev1.Pod) {
				pod.Annotations = map[string]string{v1alpha1.AnnotationTemplateWriter: "checkout/other"}
			},
		},
		{
			name: "for a pod of another ServiceAccount", profile: "standard",
			change: func(_ *testing.T, _ *operator, pod *corev1.Pod) { pod.Spec.ServiceAccountName = "web" },
		},
		{
			name: "for a pod that a person's session covers", profile: "standard", want: 1,
			change: func(t *testing.T, _ *operator, pod *corev1.Pod) { opened(t, pod.Namespace, "by-hand", inAnHour(), nil) },
		},
		{
			name: "for a pod whose session has ended: no template gives it a fresh start", profile: "standard", want: 1,
			change: func(t *testing.T, o *operator, pod *corev1.Pod) {
				session := opened(t, pod.Namespace, "over", past(), nil)
				o.observe(t, session)
			},
		},
		{
			name: "above the profile's cap, and says so", profile: "capped", want: 1,
			change: func(t *testing.T, o *operator, other *corev1.Pod) {
				first := pod(other.Namespace, "first", nil, "")
				create(t, first)
				o.bear(t, first)
			},
			event: "Warning SessionCapReached",
		},
		{
			name: "without the annotation that names the user, and says so", profile: "annotated",
			change: func(*testing.T, *operator, *corev1.Pod) {},
			event:  "Warning SessionUserMissing",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkout := namespace(t, tt.profile)
			o := start(t)
			agent := pod(checkout, "agent-0", nil, "")
			tt.change(t, o, agent)
			create(t, agent)
			o.bear(t, agent)
			if got := len(sessions(t, checkout)); got != tt.want {
				t.Errorf("%d sessions, want %d", got, tt.want)
			}
			event := ""
			select {
			case event = <-o.events.Events:
			default:
			}
			if !strings.HasPrefix(event, tt.event) || (event == "") != (tt.event == "") {
				t.Errorf("event %q, want %q", event, tt.event)
			}
		})
	}
}

func TestAChangeOfThePoliciesWakesPodsOfGovernedNamespacesOnly(t *testing.T) {
	checkout := namespace(t, "standard")
	free := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "free-"}}
	create(t, free, pod(checkout, "agent-0", nil, ""))
	create(t, pod(free.Name, "agent-0", nil, ""))
	requests, err := start(t).birth.Candidates(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	woken := map[string]bool{}
	for _, request := range requests {
		woken[request.String()] = true
	}
	for name, want := range map[string]bool{checkout: true, free.Name: false} {
		if got := woken[name+"/agent-0"]; got != want {
			t.Errorf("%s/agent-0: woken %t, want %t", name, got, want)
		}
	}
}

func TestAPlaceUnderTheCapIsFreeAgainWhenASessionEnds(t *testing.T) {
	checkout := namespace(t, "capped")
	o := start(t)
	first, second := pod(checkout, "first", nil, ""), pod(checkout, "second", nil, "")
	create(t, first, second)
	o.bear(t, first)
	remove(t, first)
	o.observe(t, &sessions(t, checkout)[0])
	o.bear(t, second)
	if got := len(sessions(t, checkout)); got != 2 {
		t.Errorf("%d sessions, want the ended and the new one", got)
	}
}
