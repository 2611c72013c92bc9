package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// Proves F-1, B-2, K-2.
func TestACallerWithoutALiveSessionIsRefusedWithAReason(t *testing.T) {
	const ns = "sessions"
	h := at(t, ns)
	for _, account := range []string{"stray", "twice", "late", "ended"} {
		must(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: account}}, agentPod(ns, account+"-0", account, nil))
	}
	must(t, agentPod(ns, "marked-0", "agent", map[string]string{v1alpha1.AnnotationTemplateWriter: "sessions/other"}))
	late := session(ns, "late", time.Now().Add(3*time.Second))
	ended := session(ns, "ended", time.Now().Add(time.Hour))
	must(t, late, ended, session(ns, "twice", time.Now().Add(time.Hour)))
	second := session(ns, "twice", time.Now().Add(time.Hour))
	second.Name = "twice-again"
	must(t, second)
	if err := merge(ended, `{"spec":{"deadlineTime":"2020-01-01T00:00:00Z"}}`)(t.Context(), petra); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"late", "ended"} {
		awaitSessionState(t, ns, name, v1alpha1.SessionEnded)
	}

	impersonated := func(username string) *actor {
		cfg := plane.Admin()
		cfg.Impersonate.UserName = username
		a, err := newActor("admin", cfg)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	account := func(name, pod string) *actor {
		a, err := accountActor(t.Context(), ns, name, pod)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	// Nothing is inside the authority of nobody.
	noSession := func(reason string) outcome { return denied("ASK", "NoSession", reason) }
	tests := []struct {
		name string
		who  *actor
		want outcome
		says string
	}{
		{"a ServiceAccount that no template names", account("stray", "stray-0"), noSession("NoSession"), "no session template names ServiceAccount stray"},
		{"a token that is bound to no pod", account("agent", ""), noSession("NoSession"), "the token is not bound to a pod"},
		{"the ServiceAccount default", account("default", ""), noSession("NoSession"), "the token is not bound to a pod"},
		{"a pod that an agent wrote", account("agent", "marked-0"), noSession("NoSession"), "the pod was written by an agent"},
		{"a caller that two sessions cover", account("twice", "twice-0"), noSession("SessionAmbiguous"), "sessions twice and twice-again both cover this caller"},
		{"a session whose deadline has passed", account("late", "late-0"), noSession("SessionEnded"), "session late has ended"},
		{"a session that a person ended", account("ended", "ended-0"), noSession("SessionEnded"), "session ended has ended"},
		{"an impersonated agent", impersonated(h.agent.username), byFloor("stepbeyond-floor-self"), "CredentialUnbound"},
		{"an impersonated exempt account", impersonated("system:serviceaccount:unnoticed:controller"), byFloor("stepbeyond-floor-self"), "CredentialUnbound"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.who.try(t, create(configMap(ns, "never")))
			if diff := cmp.Diff(tt.want, got.outcome); diff != "" {
				t.Errorf("outcome (-want +got):\n%s%s", diff, got.message)
			}
			expectSentence(t, got.message, tt.says)
		})
	}
	if got := h.agent.try(t, create(configMap(ns, "control"))); got.outcome != allowed("AUTO", "Allowed") {
		t.Errorf("the agent with a session: %+v %s", got.outcome, got.message)
	}
}

// expectSentence wants the reason and a next step in a message, and none of the words that requirement B-2 bans.
func expectSentence(t *testing.T, message, says string) {
	t.Helper()
	if !strings.Contains(strings.ToLower(message), strings.ToLower(says)) {
		t.Errorf("the message does not say %q: %s", says, message)
	}
	if _, next, found := strings.Cut(message, "Next: "); !found || len(next) < 10 {
		t.Errorf("the message has no next step: %s", message)
	}
	for _, banned := range []string{"controller state", "admission of exploration", "todo", "verifier lock", "repeat"} {
		if strings.Contains(strings.ToLower(message), banned) {
			t.Errorf("the message speaks of %q: %s", banned, message)
		}
	}
}

// The manager may not create sessions for a while; then one that is being created stays so.
//
// Proves F-1, B-2.
func TestWhileASessionIsBeingCreatedAutoWorksAndAskWaits(t *testing.T) {
	const ns = "unborn"
	h := at(t, ns)
	restore := withoutRule(t, "agentsessions", "create")
	second := deployment(ns, "second")
	second.Spec.Replicas, second.Spec.Template.Spec.ServiceAccountName = new(int32(1)), "agent"
	must(t, second)
	var pods corev1.PodList
	eventually(t, func() error {
		if err := admin.List(t.Context(), &pods, client.InNamespace(ns), client.MatchingLabels{"app": "second"}); err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("%d pods of the second agent, want one", len(pods.Items))
		}
		return nil
	})
	newcomer, err := accountActor(t.Context(), ns, "agent", pods.Items[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	own, foreign := configMap(ns, "own"), configMap(ns, "foreign")
	must(t, foreign)
	if got := newcomer.try(t, create(own)); got.outcome != allowed("AUTO", "Allowed") {
		t.Errorf("AUTO before the session exists: %+v %s", got.outcome, got.message)
	}
	got := newcomer.try(t, remove(foreign))
	if diff := cmp.Diff(denied("ASK", "NoSession", "SessionPending"), got.outcome); diff != "" {
		t.Errorf("ASK before the session exists (-want +got):\n%s%s", diff, got.message)
	}
	expectSentence(t, got.message, "run this command again in 2 seconds")
	if n := len(questionsIn(t, ns)); n != 0 {
		t.Errorf("%d questions were asked without a session", n)
	}

	restore()
	eventually(t, func() error {
		if got := newcomer.try(t, remove(foreign)); got.outcome != pending("PermissionPending") {
			return fmt.Errorf("ASK once the session exists: %+v %s", got.outcome, got.message)
		}
		return nil
	})
	if asks := questionsIn(t, ns)[0].Spec.Request.Session.Name; asks == h.session.Name || !strings.HasPrefix(asks, "second-") {
		t.Errorf("session %s asks, want one of the second Deployment", asks)
	}
	if got := newcomer.try(t, remove(own)); got.outcome != allowed("AUTO", "Allowed") {
		t.Errorf("deleting what it made before the session existed: %+v %s", got.outcome, got.message)
	}
}

// Proves K-2, F-1, G-3.
func TestAGovernedUserActsInTheSessionThatAPersonOpened(t *testing.T) {
	const ns = "robots"
	h := at(t, ns)
	got := robot.try(t, create(configMap(ns, "early")))
	if diff := cmp.Diff(denied("ASK", "NoSession", "NoSession"), got.outcome); diff != "" {
		t.Errorf("without a session (-want +got):\n%s%s", diff, got.message)
	}
	expectSentence(t, got.message, "no session of type User names this user")
	s := session(ns, "robot", time.Now().Add(time.Hour))
	s.Spec.Identity = v1alpha1.SessionIdentity{Type: v1alpha1.IdentityUser, UserName: robotName}
	if err := petra.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	awaitSessionState(t, ns, "robot", v1alpha1.SessionActive)
	if got := robot.try(t, create(configMap(ns, "note"))); got.outcome != allowed("AUTO", "Allowed") {
		t.Errorf("in its session's namespace: %+v %s", got.outcome, got.message)
	}
	if got := robot.try(t, create(configMap("free", "note"))); got.outcome != denied("FORBIDDEN", "Forbidden", "OutsideAuthority") {
		t.Errorf("in a namespace that nobody governs: %+v %s", got.outcome, got.message)
	}
	foreign := configMap(ns, "foreign")
	must(t, foreign)
	asked := robot.try(t, remove(foreign))
	if asked.outcome != pending("PermissionPending") {
		t.Fatalf("a foreign object: %+v %s", asked.outcome, asked.message)
	}
	g := h.grant(t, asked.grant)
	if got := understand(robot.Patch(t.Context(), g.DeepCopy(), answer(g, v1alpha1.VerdictApprove, nil)), nil); got.Code != 403 {
		t.Errorf("answering its own question: %+v %s", got.outcome, got.message)
	}
}

// withoutRule takes verbs on a resource of ours from the manager's role; restore gives them back.
func withoutRule(t *testing.T, resource string, verbs ...string) (restore func()) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "stepbeyond-manager"}}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
		t.Fatal(err)
	}
	whole := role.DeepCopy()
	role.Rules = nil
	for _, rule := range whole.Rules {
		for _, name := range rule.Resources {
			one := *rule.DeepCopy()
			one.Resources = []string{name}
			if name == resource {
				one.Verbs = without(one.Verbs, verbs)
			}
			if len(one.Verbs) > 0 {
				role.Rules = append(role.Rules, one)
			}
		}
	}
	if err := admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	restored := false
	restore = func() {
		if restored {
			return
		}
		restored = true
		err := admin.Get(context.Background(), client.ObjectKeyFromObject(role), role)
		if err == nil {
			role.Rules = whole.Rules
			err = admin.Update(context.Background(), role)
		}
		if err != nil {
			t.Errorf("restore the manager's role: %v", err)
		}
	}
	t.Cleanup(restore)
	return restore
}

func without(list, gone []string) []string {
	var kept []string
	for _, item := range list {
		if !strings.Contains(" "+strings.Join(gone, " ")+" ", " "+item+" ") {
			kept = append(kept, item)
		}
	}
	return kept
}

func awaitSessionState(t *testing.T, namespace, name string, want v1alpha1.SessionState) {
	t.Helper()
	eventually(t, func() error {
		var s v1alpha1.AgentSession
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &s); err != nil {
			return err
		}
		if s.Status.State != want {
			return fmt.Errorf("session %s is %q, want %q", name, s.Status.State, want)
		}
		return nil
	})
}

func questionsIn(t *testing.T, namespace string) []v1alpha1.PermissionGrant {
	t.Helper()
	var list v1alpha1.PermissionGrantList
	if err := admin.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// A token that no live pod holds is refused, each kind with its own reason; the same ServiceAccount with the token of its
// own pod works.
//
// Proves F-1, K-2.
func TestATokenThatNoLivePodHoldsIsRefused(t *testing.T) {
	const ns = "sessions"
	h := at(t, ns)
	legacy := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "long-lived", Annotations: map[string]string{corev1.ServiceAccountNameKey: "agent"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	must(t, legacy)
	eventually(t, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(legacy), legacy); err != nil {
			return err
		}
		if len(legacy.Data[corev1.ServiceAccountTokenKey]) == 0 {
			return fmt.Errorf("Secret %s has no token yet", legacy.Name)
		}
		return nil
	})
	longLived, err := newActor("system:serviceaccount:"+ns+":agent", plane.Token(string(legacy.Data[corev1.ServiceAccountTokenKey])))
	if err != nil {
		t.Fatal(err)
	}
	got := longLived.try(t, create(configMap(ns, "never")))
	if diff := cmp.Diff(byFloor("stepbeyond-floor-self"), got.outcome); diff != "" {
		t.Errorf("a token of a Secret (-want +got):\n%s%s", diff, got.message)
	}
	expectSentence(t, got.message, "CredentialUnbound")

	must(t, agentPod(ns, "short-lived", "agent", nil))
	doomed, err := accountActor(t.Context(), ns, "agent", "short-lived")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return doomed.Create(t.Context(), configMap(ns, "of-a-pod"), client.DryRunAll) })
	if err := admin.Delete(t.Context(), agentPod(ns, "short-lived", "agent", nil)); err != nil {
		t.Fatal(err)
	}
	// The API server knows the token for some seconds more; after that it does not let it in at all.
	eventually(t, func() error {
		got := doomed.try(t, create(configMap(ns, "never"), client.DryRunAll))
		if got.Code == http.StatusUnauthorized || got.Reason == "NoSession" && strings.Contains(got.message, "The pod of the token no longer exists") {
			return nil
		}
		return fmt.Errorf("a token of a pod that is gone: %+v %s", got.outcome, got.message)
	})
	if got := h.agent.try(t, create(configMap(ns, "never"), client.DryRunAll)); got.outcome != allowed("AUTO", "Allowed") {
		t.Errorf("the token of its own pod: %+v %s", got.outcome, got.message)
	}
}
