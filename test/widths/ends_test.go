package widths_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// boxed is a home whose agent has a time box for the deletion of web-*; web-0 and web-1 are there.
func boxed(t *testing.T, namespace, profile string, seconds int) (*cluster.Home, *v1alpha1.PermissionGrant) {
	t.Helper()
	h := homeUnder(t, namespace, profile)
	must(t, configMap(namespace, "web-0"), configMap(namespace, "web-1"))
	asked := ask(t, h, remove(configMap(namespace, "web-0")))
	g := carla.approves(t, asked, fields{"type": "TimeBoxed", "durationSeconds": seconds, "match": fields{"name": "web-*"}})
	return h, g
}

// Proves G-2, G-6: a time box ends when its time is over, and what was let through before stays done.
func TestATimeBoxEnds(t *testing.T) {
	h, g := boxed(t, "short", cluster.Profile, 4)
	uses(t, h, remove(configMap(h.Namespace, "web-0")))
	ended := becomes(t, g, v1alpha1.GrantExpired)
	if ended.Status.Reason != v1alpha1.ReasonNotUsedInTime || time.Since(ended.Spec.Decisions[0].DecidedTime.Time) < 4*time.Second {
		t.Errorf("ended for %s", ended.Status.Reason)
	}
	asksAnew(t, h, g, remove(configMap(h.Namespace, "web-1")))
}

// Proves G-2.
func TestARevokedTimeBoxCoversNothing(t *testing.T) {
	h, g := boxed(t, "revoked", cluster.Profile, 300)
	uses(t, h, remove(configMap(h.Namespace, "web-0")))
	if out, err := ben.patches(t, g, `[{"op":"add","path":"/spec/revocation","value":{"reason":"Enough."}}]`); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	asksAnew(t, h, g, remove(configMap(h.Namespace, "web-1")))
	becomes(t, g, v1alpha1.GrantRevoked)
}

// Proves R-5, G-2.
func TestANewEpochEndsATimeBox(t *testing.T) {
	h, g := boxed(t, "epochs", cluster.Profile, 300)
	session := &v1alpha1.AgentSession{}
	if err := shared.Admin.Get(t.Context(), client.ObjectKey{Namespace: h.Namespace, Name: g.Spec.Request.Session.Name}, session); err != nil {
		t.Fatal(err)
	}
	if err := shared.Admin.Status().Patch(t.Context(), session, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"epoch":2}}`))); err != nil {
		t.Fatal(err)
	}
	becomes(t, g, v1alpha1.GrantSuperseded)
	anew := asksAnew(t, h, g, remove(configMap(h.Namespace, "web-1")))
	if anew.Spec.Request.Session.Epoch != 2 {
		t.Errorf("asked in epoch %d, want 2", anew.Spec.Request.Session.Epoch)
	}
}

// Proves G-2, G-8: a policy that changes ends a time box for good, also when it changes back.
func TestAChangedPolicyEndsATimeBox(t *testing.T) {
	h, g := boxed(t, "policies", changing, 300)
	for _, seconds := range []int32{maxSeconds - 1, maxSeconds} {
		if err := change(t.Context(), &v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: changing}}, func(p *v1alpha1.AgentPolicy) {
			p.Spec.Approvals.MaxTimeBoxSeconds = seconds
		}); err != nil {
			t.Fatal(err)
		}
	}
	becomes(t, g, v1alpha1.GrantStale)
	asksAnew(t, h, g, remove(configMap(h.Namespace, "web-1")))
}

// Proves G-7, G-3, G-4: a denial rests until a person reopens it; the answer is asked for anew then. Only a denial is
// reopened, and in nobody else's name.
func TestADenialIsReopened(t *testing.T) {
	h := home(t, "reopened")
	must(t, configMap(h.Namespace, "web-0"))
	asked := ask(t, h, remove(configMap(h.Namespace, "web-0")))
	const reopen = `[{"op":"add","path":"/spec/reopening","value":{"reason":"Found the backup."}}]`
	refused := func(who *person, patch, says string) {
		t.Helper()
		if out, err := who.patches(t, asked, patch); err == nil || !strings.Contains(out, says) {
			t.Errorf("%v: %s; want %q", err, out, says)
		}
	}
	refused(carla, reopen, "spec.reopening: Forbidden: the grant is Pending (AwaitingApproval); only a denied one is reopened")
	if out, err := carla.patches(t, asked, answerPatch(asked, v1alpha1.VerdictDeny, nil)); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	becomes(t, asked, v1alpha1.GrantDenied)
	denied := remove(configMap(h.Namespace, "web-0"))(t.Context(), h.Agent)
	if causeOf(denied, "Reason") != "GrantDenied" {
		t.Fatalf("after the denial: %v", denied)
	}
	refused(carla, `[{"op":"add","path":"/spec/reopening","value":{"by":"ben@acme.example"}}]`, "spec.reopening.by: Forbidden")
	if err := h.Agent.Patch(t.Context(), asked.DeepCopy(), client.RawPatch("application/json-patch+json", []byte(reopen))); err == nil || !strings.Contains(err.Error(), "stepbeyond-floor-self") {
		t.Errorf("the agent reopens: %v", err)
	}
	if out, err := ben.patches(t, asked, reopen); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	now := grant(t, asked.Namespace, asked.Name)
	if now.Spec.Reopening.By != ben.name || now.Spec.Reopening.Time == nil {
		t.Errorf("stamped %+v", now.Spec.Reopening)
	}
	refused(carla, `[{"op":"replace","path":"/spec/reopening/by","value":"carla@acme.example"}]`, "is set once")
	anew := asksAnew(t, h, asked, remove(configMap(h.Namespace, "web-0")))
	carla.approves(t, anew, nil)
	uses(t, h, remove(configMap(h.Namespace, "web-0")))
}

// agentDeployment is a workload under the agent's own account.
func agentDeployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{ServiceAccountName: "agent", Containers: []corev1.Container{{Name: "main", Image: fmt.Sprintf("registry.acme.example/%s:1", name)}}},
			},
		},
	}
}
