package rotation_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/certs"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// The authority is made to expire in the middle of its life, so that no rotation is due.
//
// Proves F-1, M-2, K-2.
func TestAnExpiredCertificateRefusesGovernedWritesAndNoOthers(t *testing.T) {
	const life = 60 * time.Second
	stopReplicas(t)
	authority, err := certs.NewAuthority(time.Now(), life)
	if err != nil {
		t.Fatal(err)
	}
	editSecret(t, func(s *corev1.Secret) {
		s.Data["ca.crt"], s.Data["ca.key"] = authority.CertificatePEM, authority.KeyPEM
	})
	startReplicas(t)
	other := startLoad(t, ben, free, false)
	eventually(t, "a governed write before the expiry", func() error {
		return home.Agent.Create(t.Context(), configMap(home.Namespace, "before"), client.DryRunAll)
	})
	gauge, err := replicas[0].Counter(t.Context(), "stepbeyond_certificate_expiry_timestamp_seconds", map[string]string{"certificate": "leaf"})
	if err != nil || int64(gauge) != authority.NotAfter().Unix() {
		t.Errorf("metric of the leaf's expiry: %v, %v, want %d", gauge, err, authority.NotAfter().Unix())
	}
	eventually(t, "the event", func() error { return hasEvent(t, "CertificateExpiring") })
	time.Sleep(time.Until(authority.NotAfter().Add(time.Second)))

	for range 10 {
		err := home.Agent.Create(t.Context(), configMap(home.Namespace, "after"), client.DryRunAll)
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "enforce.stepbeyond.dev") {
			t.Fatalf("a governed write under an expired certificate: %v", err)
		}
	}
	eventually(t, "condition EnforcementReady", func() error {
		var policy v1alpha1.ClusterAgentPolicy
		if err := shared.Admin.Get(t.Context(), client.ObjectKey{Name: "default"}, &policy); err != nil {
			return err
		}
		c := meta.FindStatusCondition(policy.Status.Conditions, string(v1alpha1.ConditionEnforcementReady))
		if c == nil || c.Reason != string(v1alpha1.ReasonCertificateNotServed) {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})

	before := installation(t)
	askToRotate(t)
	awaitPhase(t, before.Rotations+1, certs.PhaseSteady)
	eventually(t, "a governed write after the rotation", func() error {
		return home.Agent.Create(t.Context(), configMap(home.Namespace, "after"), client.DryRunAll)
	})
	other.end(t, "bystander")
}

func hasEvent(t *testing.T, reason string) error {
	t.Helper()
	var list eventsv1.EventList
	if err := shared.Admin.List(t.Context(), &list, client.InNamespace(env.SystemNamespace)); err != nil {
		return err
	}
	for i := range list.Items {
		if list.Items[i].Reason == reason && list.Items[i].Regarding.Name == certs.InstallationSecret {
			return nil
		}
	}
	return errors.New("there is no event " + reason)
}

func stopReplicas(t *testing.T) {
	t.Helper()
	for _, replica := range replicas {
		if err := replica.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// startReplicas returns when one of them leads and the API server calls them.
func startReplicas(t *testing.T) {
	t.Helper()
	for _, replica := range replicas {
		if err := replica.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, replica := range replicas {
		if err := replica.WaitReady(t.Context(), waitAtMost); err != nil {
			t.Fatal(err)
		}
	}
	inForce(t, installation(t))
	eventually(t, "a governed write through the replicas", func() error {
		return home.Agent.Create(t.Context(), configMap(home.Namespace, "probe"), client.DryRunAll)
	})
}
