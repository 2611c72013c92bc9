package integration_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// secretWord stands for whatever must not be repeated, persisted or logged.
const secretWord = "hunter2-c0rrect-h0rse"

// Proves F-1, B-2.
func TestNoSecretValueOfARefusedRequestIsRepeatedAnywhere(t *testing.T) {
	const ns = "secrecy"
	h := at(t, ns)
	stored := secret(ns, "stored")
	stored.Data, stored.StringData = map[string][]byte{"password": []byte("old")}, nil
	people := deployment(ns, "people")
	people.Finalizers = []string{"acme.example/keep"}
	route := ingress(ns, "route")
	must(t, stored, people, route, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "stray"}}, agentPod(ns, "stray-0", "stray", nil))
	stray, err := accountActor(t.Context(), ns, "stray", "stray-0")
	if err != nil {
		t.Fatal(err)
	}
	privileged := withSecret(ns, "privileged")
	privileged.Spec.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	reviewed := h.approved(t, merge(stored, `{"stringData":{"password":"first"}}`))
	tests := []struct {
		name    string
		who     *actor
		request func(context.Context, *actor) error
		want    outcome
	}{
		{"a new Secret", h.agent, create(secret(ns, "new")), pending("PermissionPending")},
		{"a changed environment", h.agent, merge(people, fmt.Sprintf(`{"metadata":{"finalizers":null},"spec":{"template":{"spec":{"containers":[{"name":"main","image":"i","env":[{"name":"P","value":%q}]}]}}}}`, secretWord)), pending("PermissionPending")},
		{"a changed Secret beside an approved change", h.agent, merge(stored, fmt.Sprintf(`{"stringData":{"password":%q}}`, secretWord)), pending("GrantDigestMismatch")},
		{"a Deployment without a session", stray, create(withSecret(ns, "web")), denied("ASK", "NoSession", "NoSession")},
		{"a privileged Deployment", h.agent, create(privileged), byFloor("stepbeyond-floor-pods")},
		{"a Secret that is filled with a token", h.agent, create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "agent", "note": secretWord}},
			Type:       corev1.SecretTypeServiceAccountToken,
		}), byFloor("stepbeyond-floor-authority")},
		{"an annotation of a route", h.agent, merge(route, fmt.Sprintf(`{"metadata":{"annotations":{"auth":%q}}}`, secretWord)), pending("PermissionPending")},
		{"a Deployment in another namespace", h.agent, create(withSecret("free", "web")), denied("FORBIDDEN", "Forbidden", "OutsideAuthority")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.who.try(t, tt.request)
			if diff := cmp.Diff(tt.want, got.outcome); diff != "" {
				t.Errorf("outcome (-want +got):\n%s%s", diff, got.message)
			}
			expectSentence(t, got.message, ": ")
			expectNoSecret(t, "the message", got.message)
		})
	}
	if len(questionsIn(t, ns)) < 4 {
		t.Errorf("%d questions, want one for each request that asks", len(questionsIn(t, ns)))
	}
	h.becomes(t, reviewed.Name, v1alpha1.GrantApproved, v1alpha1.ReasonRequirementsMet)
	for _, list := range []client.ObjectList{
		&v1alpha1.PermissionGrantList{}, &v1alpha1.AgentSessionList{}, &corev1.EventList{}, &eventsv1.EventList{},
		&v1alpha1.ClusterAgentPolicyList{}, &v1alpha1.AgentPolicyList{},
	} {
		if err := admin.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		expectNoSecret(t, fmt.Sprintf("a %T", list), string(text))
	}
	for _, file := range []string{manager.Logs(), plane.Dir() + "/logs/audit.log"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		expectNoSecret(t, file, string(text))
	}
}

// expectNoSecret looks for the secret word as it is and in base64, at each of the three places where it can start.
func expectNoSecret(t *testing.T, where, text string) {
	t.Helper()
	forms := []string{secretWord}
	for _, before := range []string{"", "x", "xx"} {
		encoded := base64.StdEncoding.EncodeToString([]byte(before + secretWord))
		forms = append(forms, encoded[4:len(encoded)-4])
	}
	for _, form := range forms {
		if i := strings.Index(text, form); i >= 0 {
			t.Errorf("%s holds the secret: ...%s...", where, text[max(0, i-200):min(len(text), i+len(form)+50)])
		}
	}
}
