package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

const image = "registry.acme.example/main:1"

// agents is a Deployment of one agent.
func agents(namespace, name, account string) *appsv1.Deployment {
	d := deployment(namespace, name)
	d.Spec.Replicas, d.Spec.Template.Spec.ServiceAccountName = new(int32(1)), account
	return d
}

// inPodOf acts in the pod of a Deployment, in the session that the pod has; want tells which session is meant.
func inPodOf(t *testing.T, namespace, name, account string, want func(*v1alpha1.AgentSession) bool) *home {
	t.Helper()
	h := &home{namespace: namespace, pod: podOf(t, namespace, name, image)}
	var err error
	if h.agent, err = accountActor(t.Context(), namespace, account, h.pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		var sessions v1alpha1.AgentSessionList
		if err := admin.List(t.Context(), &sessions, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range sessions.Items {
			s := &sessions.Items[i]
			if s.Status.State == v1alpha1.SessionActive && len(s.Status.LivePods) == 1 && s.Status.LivePods[0].Name == h.pod && want(s) {
				h.session = client.ObjectKeyFromObject(s)
				return nil
			}
		}
		return fmt.Errorf("no session has pod %s", h.pod)
	})
	return h
}

// another is one more agent of the namespace, in a Deployment of people's.
func another(t *testing.T, namespace, name string) *home {
	t.Helper()
	must(t, agents(namespace, name, "agent"))
	return inPodOf(t, namespace, name, "agent", func(s *v1alpha1.AgentSession) bool { return s.Spec.Parent == nil })
}

// child is the agent in a Deployment that this agent makes.
func (h *home) child(t *testing.T, name, account string) *home {
	t.Helper()
	if got := h.agent.try(t, create(agents(h.namespace, name, account))); got.outcome != allowed("AUTO", "Allowed") {
		t.Fatalf("the agent's Deployment %s: %+v %s", name, got.outcome, got.message)
	}
	return inPodOf(t, h.namespace, name, account, h.isParentOf)
}

func (h *home) isParentOf(s *v1alpha1.AgentSession) bool {
	return s.Spec.Parent != nil && s.Spec.Parent.Name == h.session.Name
}

func (h *home) read(t *testing.T) *v1alpha1.AgentSession {
	t.Helper()
	s := &v1alpha1.AgentSession{}
	if err := admin.Get(t.Context(), h.session, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// gets waits until a request of the agent has this outcome, and returns the message. The manager learns of what people do
// to sessions and pods by its watches.
func (h *home) gets(t *testing.T, want outcome, request func(context.Context, *actor) error) string {
	t.Helper()
	var got attempt
	eventually(t, func() error {
		if got = h.agent.try(t, request); got.outcome != want {
			return fmt.Errorf("%+v, want %+v: %s", got.outcome, want, got.message)
		}
		return nil
	})
	return got.message
}

// writes tells that the agent acts.
func (h *home) writes(t *testing.T) {
	t.Helper()
	h.gets(t, allowed("AUTO", "Allowed"), create(configMap(h.namespace, "probe"), client.DryRunAll))
}

func (h *home) isHeld(t *testing.T) string {
	t.Helper()
	held := outcome{Code: 403, Status: "SteeringHold", Class: "AUTO", Verdict: "Held", Reason: "Suspended", By: enforcer}
	return h.gets(t, held, create(configMap(h.namespace, "never")))
}

func (h *home) isRefused(t *testing.T, reason string) string {
	t.Helper()
	return h.gets(t, denied("ASK", "NoSession", reason), create(configMap(h.namespace, "never")))
}

// set writes what a person set on the session.
func (h *home) set(t *testing.T, patch string) {
	t.Helper()
	if err := admin.Status().Patch(t.Context(), h.read(t), client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

const suspend, resume = `{"status":{"state":"Suspended"}}`, `{"status":{"state":"Active"}}`

// Proves G-3, B-4.
func TestAPodThatAnAgentWroteActsInAChildOfTheAgentsSession(t *testing.T) {
	const ns = "lineage"
	h := at(t, ns)
	parent := h.read(t)
	for _, account := range []string{"agent", "default"} {
		t.Run("under ServiceAccount "+account, func(t *testing.T) {
			c := h.child(t, "helper-"+account, account)
			s := c.read(t)
			got := []any{s.Spec.Parent.UID, s.Spec.UserName, s.Spec.ModelTier, s.Spec.InitiativeMode, s.Spec.Authority.Stages, s.Spec.DeadlineTime.After(parent.Spec.DeadlineTime.Time)}
			want := []any{parent.UID, parent.Spec.UserName, parent.Spec.ModelTier, parent.Spec.InitiativeMode, parent.Spec.Authority.Stages, false}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("child (-want +got):\n%s", diff)
			}
			if b := s.Spec.Authority.Budgets; b == nil || b.MaxChildSessions == nil || *b.MaxChildSessions != v1alpha1.DefaultMaxChildSessionsPerSession-1 {
				t.Errorf("budgets %+v, want one child fewer than the parent", b)
			}
			own, parents := configMap(ns, "of-"+account), configMap(ns, "of-parent-of-"+account)
			if got := c.agent.try(t, create(own)); got.outcome != allowed("AUTO", "Allowed") {
				t.Errorf("the child creates: %+v %s", got.outcome, got.message)
			}
			if err := h.agent.Create(t.Context(), parents); err != nil {
				t.Fatal(err)
			}
			// What one made is foreign to the other.
			if got := c.agent.try(t, remove(parents)); got.outcome != pending("PermissionPending") {
				t.Errorf("the child deletes what the parent made: %+v %s", got.outcome, got.message)
			}
			if got := h.agent.try(t, remove(own)); got.outcome != pending("PermissionPending") {
				t.Errorf("the parent deletes what the child made: %+v %s", got.outcome, got.message)
			}
			if got := c.agent.try(t, remove(own)); got.outcome != allowed("AUTO", "Allowed") {
				t.Errorf("the child deletes what it made: %+v %s", got.outcome, got.message)
			}
		})
	}
}

// Proves G-3: nobody gets into somebody else's session by writing its workload, and nobody takes a workload out of its
// session without being asked about.
func TestAPersonsWorkloadThatAnAgentRewroteActsInAChildOfTheAgentsSession(t *testing.T) {
	const ns = "lineage"
	h := at(t, ns)
	victim := another(t, ns, "people")
	rewritten := "registry.acme.example/mine:1"
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, rewritten)
	must(t, agents(ns, "nobodys", "default"))
	if got := h.agent.try(t, merge(agents(ns, "nobodys", "default"), patch)); got.outcome != allowed("AUTO_WITH_DISCLOSURE", "Disclosed") {
		t.Errorf("a Deployment without a session: %+v %s", got.outcome, got.message)
	}
	tolerates := `{"spec":{"tolerations":[{"key":"acme.example/a","operator":"Exists","effect":"NoSchedule"}]}}`
	if got := h.agent.try(t, merge(agentPod(ns, victim.pod, "agent", nil), tolerates)); got.outcome != pending("PermissionPending") {
		t.Errorf("the pod of another session: %+v %s", got.outcome, got.message)
	}
	request := merge(agents(ns, "people", "agent"), patch)
	g := h.approved(t, request)
	if diff := cmp.Diff("Security", string(g.Spec.Request.Facts[0].Fact)); diff != "" {
		t.Errorf("the fact that asks (-want +got):\n%s", diff)
	}
	if got := h.agent.try(t, request); got.outcome != allowed("ASK", "Granted") {
		t.Fatalf("the changed Deployment: %+v %s", got.outcome, got.message)
	}
	pod := podOf(t, ns, "people", rewritten)
	a, err := accountActor(t.Context(), ns, "agent", pod)
	if err != nil {
		t.Fatal(err)
	}
	made := configMap(ns, "by-rewritten")
	eventually(t, func() error { return a.Create(t.Context(), made.DeepCopy()) })
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(made), made); err != nil {
		t.Fatal(err)
	}
	creator := made.Annotations[v1alpha1.AnnotationCreatedBy]
	if strings.HasPrefix(creator, "v1:"+victim.session.String()+":") || !strings.HasPrefix(creator, "v1:lineage/people-") {
		t.Errorf("stamped %s, want a child's session and not %s", creator, victim.session)
	}
}

// Proves G-3, F-1: what a person has stopped stays stopped, also when another agent rewrites the workload with approval.
func TestASuspendedWorkloadThatAnotherAgentRewritesStaysSuspended(t *testing.T) {
	const ns = "lineage"
	h := at(t, ns)
	victim := another(t, ns, "stopped")
	victim.set(t, `{"status":{"state":"Suspended"}}`)
	rewritten := "registry.acme.example/resumed:1"
	request := merge(agents(ns, "stopped", "agent"), fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, rewritten))
	h.approved(t, request)
	if got := h.agent.try(t, request); got.outcome != allowed("ASK", "Granted") {
		t.Fatalf("the changed Deployment: %+v %s", got.outcome, got.message)
	}
	a, err := accountActor(t.Context(), ns, "agent", podOf(t, ns, "stopped", rewritten))
	if err != nil {
		t.Fatal(err)
	}
	if got := a.try(t, create(configMap(ns, "by-stopped"))); got.outcome != denied("FORBIDDEN", "NoSession", "SessionEnded") && got.Reason != "SessionEnded" {
		t.Errorf("a write from the rewritten pod: %+v %s", got.outcome, got.message)
	}
}

// Proves G-3: an agent that changes the workload that it runs in itself stays in its session.
func TestAnAgentThatRewritesItsOwnWorkloadKeepsItsSession(t *testing.T) {
	const ns = "lineage"
	self := another(t, ns, "self")
	before := self.read(t)
	changed := "registry.acme.example/self:2"
	if got := self.agent.try(t, merge(agents(ns, "self", "agent"), fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, changed))); got.outcome != allowed("AUTO_WITH_DISCLOSURE", "Disclosed") {
		t.Fatalf("%+v %s", got.outcome, got.message)
	}
	pod := podOf(t, ns, "self", changed)
	self.set(t, `{"status":{"state":"Suspended","epoch":4}}`)
	var err error
	if self.agent, err = accountActor(t.Context(), ns, "agent", pod); err != nil {
		t.Fatal(err)
	}
	self.isHeld(t)
	self.set(t, resume)
	self.writes(t)
	if now := self.read(t); now.UID != before.UID || now.Status.Epoch != 4 {
		t.Errorf("session %s with epoch %d, want %s with 4", now.UID, now.Status.Epoch, before.UID)
	}
}

// An agent that dies or deletes its own pod comes back as it was; one that copies itself, or is taken out of its
// workload, gains nothing.
//
// Proves G-3, F-1.
func TestSuccessionGainsNothing(t *testing.T) {
	const ns = "lineage"
	next := func(t *testing.T, h *home, name string) *home {
		t.Helper()
		old := h.pod
		var pod string
		eventually(t, func() error {
			if pod = podOf(t, ns, name, image); pod == old {
				return fmt.Errorf("pod %s is still there", old)
			}
			return nil
		})
		a, err := accountActor(t.Context(), ns, "agent", pod)
		if err != nil {
			t.Fatal(err)
		}
		return &home{namespace: ns, agent: a, pod: pod, session: h.session}
	}
	podObject := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	}
	t.Run("an agent that dies", func(t *testing.T) {
		h := another(t, ns, "mortal")
		before := h.read(t)
		h.set(t, `{"status":{"state":"Suspended","epoch":3}}`)
		h.isHeld(t)
		if err := admin.Delete(t.Context(), podObject(h.pod)); err != nil {
			t.Fatal(err)
		}
		h = next(t, h, "mortal")
		h.isHeld(t)
		h.set(t, resume)
		h.writes(t)
		if now := h.read(t); now.UID != before.UID || now.Status.Epoch != 3 {
			t.Errorf("session %s with epoch %d, want %s with 3", now.UID, now.Status.Epoch, before.UID)
		}
	})
	t.Run("an agent that deletes its own pod", func(t *testing.T) {
		h := another(t, ns, "suicidal")
		before := h.read(t)
		h.approved(t, remove(podObject(h.pod)))
		// The answer is the grant protocol's; what counts here is that the pod goes.
		h.agent.try(t, remove(podObject(h.pod)))
		h = next(t, h, "suicidal")
		h.writes(t)
		if now := h.read(t); now.UID != before.UID {
			t.Errorf("session %s, want %s", now.UID, before.UID)
		}
	})
	t.Run("an agent that writes a copy of itself", func(t *testing.T) {
		h := another(t, ns, "original")
		copied := h.child(t, "copy", "agent")
		copied.writes(t)
		if err := admin.Delete(t.Context(), agents(ns, "original", "agent")); err != nil {
			t.Fatal(err)
		}
		awaitSessionState(t, ns, h.session.Name, v1alpha1.SessionEnded)
		expectSentence(t, copied.isRefused(t, "SessionEnded"), "the session has ended. Session ")
		awaitSessionState(t, ns, copied.session.Name, v1alpha1.SessionEnded)
		eventually(t, func() error { return readyFor(copied.read(t), v1alpha1.ReasonParentEnded) })
	})
	t.Run("an agent that is taken out of its workload", func(t *testing.T) {
		h := another(t, ns, "orphaned")
		h.writes(t)
		orphan := metav1.DeletePropagationOrphan
		h.approved(t, remove(agents(ns, "orphaned", "agent"), &client.DeleteOptions{PropagationPolicy: &orphan}))
		h.gets(t, allowed("ASK", "Granted"), remove(agents(ns, "orphaned", "agent"), &client.DeleteOptions{PropagationPolicy: &orphan}))
		eventually(t, func() error {
			var sets appsv1.ReplicaSetList
			if err := admin.List(t.Context(), &sets, client.InNamespace(ns), client.MatchingLabels{"app": "orphaned"}); err != nil {
				return err
			}
			if len(sets.Items) != 1 || len(sets.Items[0].OwnerReferences) > 0 {
				return fmt.Errorf("the ReplicaSet still has an owner")
			}
			return nil
		})
		expectSentence(t, h.isRefused(t, "NoSession"), "taken out of its workload")
	})
	t.Run("a workload made anew by an agent under the old name", func(t *testing.T) {
		h, victim := another(t, ns, "replacer"), another(t, ns, "replaced")
		if err := admin.Delete(t.Context(), agents(ns, "replaced", "agent")); err != nil {
			t.Fatal(err)
		}
		awaitSessionState(t, ns, victim.session.Name, v1alpha1.SessionEnded)
		c := h.child(t, "replaced", "agent")
		c.writes(t)
		if c.session == victim.session {
			t.Errorf("it has the session %s of its predecessor", c.session)
		}
	})
	t.Run("a workload made anew by a person under the old name", func(t *testing.T) {
		h := another(t, ns, "renewed")
		if err := admin.Delete(t.Context(), agents(ns, "renewed", "agent")); err != nil {
			t.Fatal(err)
		}
		awaitSessionState(t, ns, h.session.Name, v1alpha1.SessionEnded)
		anew := another(t, ns, "renewed")
		anew.writes(t)
		if anew.session == h.session {
			t.Errorf("it has the session %s that has ended", anew.session)
		}
	})
}
