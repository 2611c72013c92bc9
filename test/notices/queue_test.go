package notices_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
)

func reference(at *corev1.ObjectReference) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(at.APIVersion, at.Kind))
	object.SetName(at.Name)
	return object
}

// another is a second workload of the agent's account, with a session of its own.
func another(t *testing.T, h *cluster.Home) client.Client {
	t.Helper()
	labels := map[string]string{"app": "other"}
	must(t, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "other"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{ServiceAccountName: "agent", Containers: []corev1.Container{{Name: "agent", Image: "registry.acme.example/agent:1"}}},
			},
		},
	})
	pod := ""
	eventually(t, func() error {
		var sessions v1alpha1.AgentSessionList
		if err := world.Admin.List(t.Context(), &sessions, client.InNamespace(h.Namespace)); err != nil {
			return err
		}
		for _, s := range sessions.Items {
			if owner := s.Spec.Identity.RootOwner; owner != nil && owner.Name == "other" && s.Status.State == v1alpha1.SessionActive && len(s.Status.LivePods) == 1 {
				pod = s.Status.LivePods[0].Name
				return nil
			}
		}
		return fmt.Errorf("%d sessions in %s, none of the other workload", len(sessions.Items), h.Namespace)
	})
	token, err := world.Env.ServiceAccountToken(t.Context(), h.Namespace, "agent", pod)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(world.Env.Token(token), client.Options{Scheme: world.Admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Proves G-7: all sessions of a namespace share a cap, the refusal names it, and reads do not know it.
func TestANamespaceHasACapOfItsOwn(t *testing.T) {
	h := home(t, "narrow", "narrow") // 2 a session, 3 the namespace
	other := another(t, h)
	asked(t, h, "a")
	asked(t, h, "b")
	for _, name := range []string{"c", "d"} {
		must(t, configMap(h.Namespace, name))
	}
	if err := other.Delete(t.Context(), configMap(h.Namespace, "c")); err == nil || !strings.Contains(err.Error(), "needs approval by") {
		t.Fatalf("the third question: %v", err)
	}
	err := other.Delete(t.Context(), configMap(h.Namespace, "d"))
	const want = "the agents of namespace narrow already have 3 of 3 open questions; nothing new was asked"
	if err == nil || !strings.Contains(err.Error(), want) || string(apierrors.ReasonForError(err)) != "TooManyPending" {
		t.Errorf("above the namespace's cap: %v, want %q", err, want)
	}
	if err := h.Agent.Delete(t.Context(), configMap(h.Namespace, "d")); err == nil || !strings.Contains(err.Error(), "the session already has 2 of 2 open questions") {
		t.Errorf("above both caps: %v, want the nearer one", err)
	}
	if n := len(grants(t, h.Namespace)); n != 3 {
		t.Errorf("%d questions, want 3", n)
	}
	if err := other.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(h.Namespace)); err != nil {
		t.Errorf("a read above the cap: %v", err)
	}
	eventually(t, func() error {
		if n := metric(t, "stepbeyond_grants_pending", map[string]string{"namespace": "narrow"}); n != 3 {
			return fmt.Errorf("%v questions are counted to wait, want 3", n)
		}
		return nil
	})
	oldest := metric(t, "stepbeyond_grants_oldest_pending_timestamp_seconds", map[string]string{"namespace": "narrow"})
	if age := time.Since(time.Unix(int64(oldest), 0)); age < 0 || age > 5*time.Minute {
		t.Errorf("the oldest question is %s old", age)
	}
	denied := metric(t, "stepbeyond_grant_decisions_total", map[string]string{"verdict": "Deny", "group": ""})
	deny(t, &grants(t, h.Namespace)[0])
	eventually(t, func() error {
		if n := metric(t, "stepbeyond_grant_decisions_total", map[string]string{"verdict": "Deny", "group": ""}); n != denied+1 {
			return fmt.Errorf("%v denials are counted, want %v", n, denied+1)
		}
		return nil
	})
	if err := other.Delete(t.Context(), configMap(h.Namespace, "d")); err == nil || !strings.Contains(err.Error(), "needs approval by") {
		t.Errorf("after one was answered: %v, want a question", err)
	}
}

// Proves G-7 for sessions that ask at once.
func TestSessionsThatAskAtOnceDoNotPassTheCapTogether(t *testing.T) {
	h := home(t, "crowded", "narrow")
	agents := []client.Client{h.Agent, another(t, h)}
	for i := range 8 {
		must(t, configMap(h.Namespace, fmt.Sprintf("target-%d", i)))
	}
	for round := range 3 {
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				if err := agents[i%2].Delete(t.Context(), configMap(h.Namespace, fmt.Sprintf("target-%d", i))); err == nil {
					t.Errorf("round %d: target-%d went without an approval", round, i)
				}
			})
		}
		all.Wait()
		if n := len(grants(t, h.Namespace)); n > 3 {
			t.Errorf("round %d: %d questions, want at most 3", round, n)
		}
	}
	if n := len(grants(t, h.Namespace)); n == 0 {
		t.Error("nobody could ask")
	}
}

// Proves G-7 for what only a grant can refuse: a denial stays as long as its question rests, everything else as long as the
// profile says.
func TestClosedGrantsGoWhenTheirTimeIsOver(t *testing.T) {
	t.Parallel()
	h := home(t, "brief", "brief") // 60 s, and a denied question rests for 80 s
	denied, revoked, open := asked(t, h, "denied"), asked(t, h, "revoked"), asked(t, h, "open")
	deny(t, denied)
	asBen(t, fmt.Sprintf(`kubectl -n %s patch permissiongrant %s --type=merge -p '{"spec":{"revocation":{"reason":"mistake"}}}'`, revoked.Namespace, revoked.Name))
	closed := time.Now()
	gone := func(g *v1alpha1.PermissionGrant) bool {
		err := world.Admin.Get(t.Context(), client.ObjectKeyFromObject(g), &v1alpha1.PermissionGrant{})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err != nil
	}
	went := func(g *v1alpha1.PermissionGrant) time.Duration {
		for time.Since(closed) < 2*time.Minute {
			if gone(g) {
				return time.Since(closed)
			}
			time.Sleep(200 * time.Millisecond)
		}
		t.Fatalf("%s is still there after %s", g.Name, time.Since(closed))
		return 0
	}
	if after := went(revoked); after < 58*time.Second || after > 75*time.Second {
		t.Errorf("the revoked grant went after %s, want 60 s", after)
	}
	if gone(denied) {
		t.Error("the denied grant went before its rest was over")
	}
	if err := remove(t, h.Agent, h.Namespace, "denied"); err == nil || !strings.Contains(err.Error(), "is not asked again before") {
		t.Errorf("what was denied, while it rests: %v", err)
	}
	if after := went(denied); after < 78*time.Second || after > 95*time.Second {
		t.Errorf("the denied grant went after %s, want 80 s", after)
	}
	if gone(open) {
		t.Error("an open question went")
	}
}
