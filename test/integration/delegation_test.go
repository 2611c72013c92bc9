package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// Proves G-3, F-1.
func TestTheSuspensionAndTheEndOfASessionComeDownToItsDescendants(t *testing.T) {
	const ns = "delegation"
	h := another(t, ns, "commander")
	child := h.child(t, "soldier", "agent")
	grandchild := child.child(t, "recruit", "agent")
	for _, below := range []*home{child, grandchild} {
		below.writes(t)
	}
	h.set(t, suspend)
	for _, below := range []*home{child, grandchild} {
		expectSentence(t, below.isHeld(t), "session "+h.session.Name+", above this one, is suspended")
		if state := below.read(t).Status.State; state != v1alpha1.SessionActive {
			t.Errorf("session %s is %s itself, want what a person set on it", below.session, state)
		}
		eventually(t, func() error { return readyFor(below.read(t), v1alpha1.ReasonParentSuspended) })
	}
	h.set(t, resume)
	for _, below := range []*home{child, grandchild} {
		below.writes(t)
	}
	// What is set below does not go up.
	child.set(t, suspend)
	grandchild.isHeld(t)
	h.writes(t)

	if err := merge(h.read(t), `{"spec":{"deadlineTime":"2020-01-01T00:00:00Z"}}`)(t.Context(), petra); err != nil {
		t.Fatal(err)
	}
	for _, below := range []*home{child, grandchild} {
		below.isRefused(t, "SessionEnded")
		awaitSessionState(t, ns, below.session.Name, v1alpha1.SessionEnded)
		eventually(t, func() error { return readyFor(below.read(t), v1alpha1.ReasonParentEnded) })
	}
}

func readyFor(s *v1alpha1.AgentSession, want v1alpha1.ConditionReason) error {
	for _, condition := range s.Status.Conditions {
		if condition.Type == string(v1alpha1.ConditionReady) && condition.Reason == string(want) {
			return nil
		}
	}
	return fmt.Errorf("session %s has conditions %+v, want %s", s.Name, s.Status.Conditions, want)
}

// Proves G-2, G-3.
func TestAGrantOfAParentIsNotItsChilds(t *testing.T) {
	const ns = "delegation"
	h := another(t, ns, "holder")
	child := h.child(t, "borrower", "agent")
	foreign := configMap(ns, "guarded")
	must(t, foreign)
	g := h.approved(t, remove(foreign))
	asked := child.agent.try(t, remove(foreign))
	if asked.outcome != pending("PermissionPending") || asked.grant == g.Name {
		t.Fatalf("the child with its parent's approval: %+v %s, want a question of its own beside %s", asked.outcome, asked.message, g.Name)
	}
	if session := h.grant(t, asked.grant).Spec.Request.Session.Name; session != child.session.Name {
		t.Errorf("session %s asks, want the child's", session)
	}
	if got := h.agent.try(t, remove(foreign)); got.outcome != allowed("ASK", "Granted") {
		t.Errorf("the parent with its own approval: %+v %s", got.outcome, got.message)
	}
}

// Proves G-3, K-7.
func TestChildrenCountAgainstTheCapsOfEverySessionAbove(t *testing.T) {
	const ns = "delegation"
	h := another(t, ns, "small")
	if err := merge(h.read(t), `{"spec":{"authority":{"budgets":{"maxChildSessions":2}}}}`)(t.Context(), petra); err != nil {
		t.Fatal(err)
	}
	child := h.child(t, "first", "agent")
	child.child(t, "second", "agent")
	// The third is refused, whoever of the two makes it.
	for name, maker := range map[string]*home{"third": h, "fourth": child} {
		if got := maker.agent.try(t, create(agents(ns, name, "agent"))); got.outcome != allowed("AUTO", "Allowed") {
			t.Fatalf("Deployment %s: %+v %s", name, got.outcome, got.message)
		}
		refused := &home{namespace: ns, pod: podOf(t, ns, name, image)}
		var err error
		if refused.agent, err = accountActor(t.Context(), ns, "agent", refused.pod); err != nil {
			t.Fatal(err)
		}
		expectSentence(t, refused.isRefused(t, "NoSession"), "child sessions (maxChildSessions)")
	}
	// A child that ends makes room.
	if err := admin.Delete(t.Context(), agents(ns, "second", "agent")); err != nil {
		t.Fatal(err)
	}
	third := &home{namespace: ns, pod: podOf(t, ns, "third", image)}
	var err error
	if third.agent, err = accountActor(t.Context(), ns, "agent", third.pod); err != nil {
		t.Fatal(err)
	}
	third.writes(t)
}

// Proves G-3: the machine that opened a session does not answer for it; it answers for others where it may.
func TestTheMachineThatOpenedASessionDoesNotAnswerItsQuestions(t *testing.T) {
	const ns = "launched"
	h := at(t, ns)
	must(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "release-bot-opens-sessions"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "stepbeyond-platform"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ci", Name: "release-bot"}},
	}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "job"}}, agentPod(ns, "job-0", "job", nil))
	opened := session(ns, "job", time.Now().Add(time.Hour))
	eventually(t, func() error { return client.IgnoreAlreadyExists(releaseBot.Create(t.Context(), opened.DeepCopy())) })
	awaitSessionState(t, ns, "job", v1alpha1.SessionActive)
	a, err := accountActor(t.Context(), ns, "job", "job-0")
	if err != nil {
		t.Fatal(err)
	}
	launched := &home{namespace: ns, agent: a, pod: "job-0", session: client.ObjectKey{Namespace: ns, Name: "job"}}
	one, other := configMap(ns, "one"), configMap(ns, "other")
	must(t, one, other)

	g := launched.ask(t, remove(one))
	got := understand(releaseBot.Patch(t.Context(), g.DeepCopy(), answer(g, v1alpha1.VerdictApprove, nil)), nil)
	if got.Code != 403 {
		t.Errorf("the machine that opened the session approves: %+v %s", got.outcome, got.message)
	}
	if want := "you opened session job and do not answer what it asks"; !strings.Contains(got.message, want) {
		t.Errorf("the message does not say %q: %s", want, got.message)
	}
	launched.decide(t, carla, g, v1alpha1.VerdictApprove, nil)
	if got := launched.agent.try(t, remove(one)); got.outcome != allowed("ASK", "Granted") {
		t.Errorf("with a person's approval: %+v %s", got.outcome, got.message)
	}
	others := h.ask(t, remove(other))
	h.decide(t, releaseBot, others, v1alpha1.VerdictApprove, nil)
}
