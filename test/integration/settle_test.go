package integration_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/grant"
)

// A quota is the last admission plugin: the request fails after the webhook has let it through, so its use stays
// Reserved without an effect.
//
// Proves G-5.
func TestAUseWithoutAnEffectIsUnknownAndNeverFreeAgain(t *testing.T) {
	const ns = "effects"
	h := at(t, ns)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "no-more-routes"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/ingresses.networking.k8s.io": resource.MustParse("0")}},
	}
	must(t, quota)
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), quota); err != nil {
			t.Error(err)
		}
	})
	reserved := func(name string) *v1alpha1.PermissionGrant {
		t.Helper()
		g := h.approved(t, create(ingress(ns, name)))
		var got attempt
		eventually(t, func() error { // the quota is counted by a controller before it refuses by number
			got = h.agent.try(t, create(ingress(ns, name)))
			return nil
		})
		if got.Code != 403 || got.Reason != "Granted" {
			t.Fatalf("the request over the quota: %+v %s", got.outcome, got.message)
		}
		g = h.grant(t, g.Name)
		if len(g.Status.Uses) != 1 || g.Status.Uses[0].Outcome != v1alpha1.UseReserved {
			t.Fatalf("uses %+v, want one that is reserved", g.Status.Uses)
		}
		return g
	}
	t.Run("when a second attempt comes", func(t *testing.T) {
		g := reserved("second-attempt")
		got := h.agent.try(t, create(ingress(ns, "second-attempt")))
		if diff := cmp.Diff(pending("GrantUsed"), got.outcome); diff != "" {
			t.Errorf("the second attempt (-want +got):\n%s%s", diff, got.message)
		}
		g = h.becomes(t, g.Name, v1alpha1.GrantExhausted, v1alpha1.ReasonEffectUnknown)
		expectUse(t, g, v1alpha1.UseUnknown, "a second attempt came before an effect was seen")
	})
	t.Run("when the effect can no longer appear", func(t *testing.T) {
		g := reserved("too-late")
		at := g.Status.Uses[0].Attempts[0].Time.Time
		clock := at.Add(grant.EffectDeadline - time.Second)
		p := &grant.Protocol{Client: admin, Live: admin, Mapper: admin.RESTMapper(), Now: func() time.Time { return clock }}
		again, err := p.Settle(t.Context(), g)
		if err != nil || again == 0 {
			t.Fatalf("a second before the deadline: look again in %v, %v", again, err)
		}
		if use := h.grant(t, g.Name).Status.Uses[0]; use.Outcome != v1alpha1.UseReserved {
			t.Errorf("a second before the deadline the use is %s", use.Outcome)
		}
		clock = at.Add(grant.EffectDeadline)
		if again, err = p.Settle(t.Context(), h.grant(t, g.Name)); err != nil || again != 0 {
			t.Fatalf("at the deadline: look again in %v, %v", again, err)
		}
		g = h.becomes(t, g.Name, v1alpha1.GrantExhausted, v1alpha1.ReasonEffectUnknown)
		expectUse(t, g, v1alpha1.UseUnknown, "no effect was seen within 49s")
		if got := h.agent.try(t, create(ingress(ns, "too-late"))); got.outcome != pending("GrantUsed") {
			t.Errorf("a later attempt: %+v %s", got.outcome, got.message)
		}
	})
}
