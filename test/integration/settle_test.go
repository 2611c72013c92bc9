package integration_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/grant"
)

// quota is the last admission plugin: the request fails after the webhook has let it through, so its use is reserved
// without an effect. open takes it away.
func quota(t *testing.T, namespace string, resources ...corev1.ResourceName) (open func()) {
	t.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "nothing-more-"}}
	q.Spec.Hard = corev1.ResourceList{}
	for _, name := range resources {
		q.Spec.Hard[name] = resource.MustParse("0")
	}
	must(t, q)
	removed := false
	open = func() {
		if removed {
			return
		}
		removed = true
		if err := admin.Delete(context.Background(), q); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(open)
	eventually(t, func() error { // a controller counts before the plugin refuses by number
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(q), q); err != nil {
			return err
		}
		if len(q.Status.Hard) != len(q.Spec.Hard) {
			return fmt.Errorf("quota %s is not counted yet", q.Name)
		}
		return nil
	})
	return open
}

// overQuota has a request approved and sent, and the quota refuse it.
func (h *home) overQuota(t *testing.T, request func(context.Context, *actor) error) *v1alpha1.PermissionGrant {
	t.Helper()
	g := h.approved(t, request)
	if got := h.agent.try(t, request); got.Code != 403 || got.Reason != "Granted" {
		t.Fatalf("the request over the quota: %+v %s", got.outcome, got.message)
	}
	g = h.grant(t, g.Name)
	expectUse(t, g, v1alpha1.UseReserved, "")
	return g
}

// settled looks at a use as the manager would after that time.
func settled(t *testing.T, g *v1alpha1.PermissionGrant, after time.Duration) (again time.Duration) {
	t.Helper()
	attempts := g.Status.Uses[len(g.Status.Uses)-1].Attempts
	clock := attempts[len(attempts)-1].Time.Add(after)
	p := &grant.Protocol{Client: admin, Live: admin, Mapper: admin.RESTMapper(), Now: func() time.Time { return clock }}
	again, err := p.Settle(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// Proves G-5: a use is given back only when it is proven that it had no effect and can have none.
func TestACreationThatDidNotHappenIsReleased(t *testing.T) {
	const ns = "effects"
	h := at(t, ns)
	request := create(ingress(ns, "late"))
	open := quota(t, ns, "count/ingresses.networking.k8s.io")
	g := h.overQuota(t, request)
	got := h.agent.try(t, request)
	if diff := cmp.Diff(denied("ASK", "GrantInUse", "GrantInUse"), got.outcome); diff != "" {
		t.Errorf("a second attempt at once (-want +got):\n%s%s", diff, got.message)
	}
	expectSentence(t, got.message, "permissiongrant/"+g.Name+" may still take effect")
	if again := settled(t, g, grant.EffectDeadline-time.Second); again == 0 {
		t.Error("a second before the deadline the use was settled")
	}
	expectUse(t, h.grant(t, g.Name), v1alpha1.UseReserved, "")
	if again := settled(t, h.grant(t, g.Name), grant.EffectDeadline); again != 0 {
		t.Errorf("at the deadline: look again in %v", again)
	}
	g = h.becomes(t, g.Name, v1alpha1.GrantApproved, v1alpha1.ReasonRequirementsMet)
	expectUse(t, g, v1alpha1.UseReleased, "it was not made within 49s")
	open()
	if got := h.agent.try(t, request); got.outcome != allowed("ASK", "Granted") {
		t.Fatalf("the approved request again: %+v %s", got.outcome, got.message)
	}
	g = h.becomes(t, g.Name, v1alpha1.GrantExhausted, v1alpha1.ReasonEffectSeen)
	var outcomes []v1alpha1.UseOutcome
	for _, use := range g.Status.Uses {
		outcomes = append(outcomes, use.Outcome)
	}
	if diff := cmp.Diff([]v1alpha1.UseOutcome{v1alpha1.UseReleased, v1alpha1.UseConsumed}, outcomes); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
}

// Proves G-5.
func TestACreationThatWasUndoneIsNeverReleased(t *testing.T) {
	const ns = "effects"
	h := at(t, ns)
	request := create(ingress(ns, "short"))
	g := h.approved(t, request)
	// Whoever undoes it is faster than the manager that looks every second: the effect is only in the history.
	if got := h.agent.try(t, request); got.outcome != allowed("ASK", "Granted") {
		t.Fatalf("the approved request: %+v %s", got.outcome, got.message)
	}
	if err := admin.Delete(t.Context(), ingress(ns, "short")); err != nil {
		t.Fatal(err)
	}
	h.becomes(t, g.Name, v1alpha1.GrantExhausted, v1alpha1.ReasonEffectSeen)
	if got := h.agent.try(t, request); got.outcome != pending("GrantUsed") {
		t.Errorf("once more: %+v %s", got.outcome, got.message)
	}
}

// The API server makes only one write follow a version, so the same change may be tried again on the same one.
//
// Proves G-5.
func TestAnUpdateIsTriedAgainUntilItHasItsEffect(t *testing.T) {
	const ns = "effects"
	h := at(t, ns)
	must(t, service(ns, "front"))
	open := quota(t, ns, "services.loadbalancers")
	request := merge(service(ns, "front"), `{"spec":{"type":"LoadBalancer"}}`)
	g := h.overQuota(t, request)
	got := h.agent.try(t, request)
	if got.Code != 403 || got.Reason != "Granted" {
		t.Fatalf("the same on the same version: %+v %s", got.outcome, got.message)
	}
	if g = h.grant(t, g.Name); len(g.Status.Uses) != 1 || len(g.Status.Uses[0].Attempts) != 2 {
		t.Fatalf("uses %+v, want one with two attempts", g.Status.Uses)
	}
	// Another writer changes what the grant does not bind: nothing of it can take effect any more on the old version.
	status := service(ns, "front")
	if err := admin.Status().Patch(t.Context(), status, client.RawPatch("application/merge-patch+json",
		[]byte(`{"status":{"conditions":[{"type":"acme.example/Seen","status":"True","reason":"Seen","message":"","lastTransitionTime":"2026-11-30T12:00:00Z"}]}}`))); err != nil {
		t.Fatal(err)
	}
	g = h.becomes(t, g.Name, v1alpha1.GrantApproved, v1alpha1.ReasonRequirementsMet)
	eventually(t, func() error {
		if g = h.grant(t, g.Name); g.Status.Uses[0].Outcome != v1alpha1.UseReleased {
			return fmt.Errorf("the overtaken use is %s", g.Status.Uses[0].Outcome)
		}
		return nil
	})
	expectUse(t, g, v1alpha1.UseReleased, "came before the change")
	open()
	if got := h.agent.try(t, request); got.outcome != allowed("ASK", "Granted") {
		t.Fatalf("the approved change: %+v %s", got.outcome, got.message)
	}
	h.becomes(t, g.Name, v1alpha1.GrantExhausted, v1alpha1.ReasonEffectSeen)
	if got := h.agent.try(t, merge(service(ns, "front"), `{"spec":{"type":"LoadBalancer"}}`)); got.Reason == "Granted" {
		t.Errorf("once more: %+v %s", got.outcome, got.message)
	}
}

// Proves G-5: what the manager may not read has one attempt, and what became of it stays Unknown.
func TestWhatCannotBeReadIsNeverReleased(t *testing.T) {
	const ns = "effects"
	h := at(t, ns)
	request := create(secret(ns, "keys"))
	open := quota(t, ns, "secrets")
	g := h.overQuota(t, request)
	open()
	if got := h.agent.try(t, request); got.outcome != denied("ASK", "GrantInUse", "GrantInUse") {
		t.Errorf("a second attempt: %+v %s", got.outcome, got.message)
	}
	manager := &grant.Protocol{Client: admin, Live: blind{admin}, Mapper: admin.RESTMapper(), Now: func() time.Time {
		return g.Status.Uses[0].Attempts[0].Time.Add(grant.EffectDeadline)
	}}
	if again, err := manager.Settle(t.Context(), g); err != nil || again != 0 {
		t.Fatalf("at the deadline: look again in %v, %v", again, err)
	}
	g = h.becomes(t, g.Name, v1alpha1.GrantExhausted, v1alpha1.ReasonEffectUnknown)
	expectUse(t, g, v1alpha1.UseUnknown, "may not read secrets")
	if got := h.agent.try(t, request); got.outcome != pending("GrantUsed") {
		t.Errorf("a later attempt: %+v %s", got.outcome, got.message)
	}
}

// blind may not read Secrets, like the manager.
type blind struct{ client.Reader }

func (b blind) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if kind := object.GetObjectKind().GroupVersionKind().Kind; kind == "Secret" {
		return apierrors.NewForbidden(corev1.Resource("secrets"), key.Name, errors.New("not granted"))
	}
	return b.Reader.Get(ctx, key, object, options...)
}
