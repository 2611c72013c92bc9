package rotation_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/certs"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
)

// Whatever an API server may call at any moment of a rotation, with the certificates that it trusts then, every replica
// answers: that is checked after each poll and each write.
//
// Proves F-1, K-2.
func TestARotationReplacesAuthorityAndPathWithoutAGap(t *testing.T) {
	for name, begin := range map[string]func(*world){
		"by age":     func(w *world) { w.pass(timing.RotateEvery) },
		"on request": func(w *world) { w.ask(certs.RotateNow) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			before := w.installation()
			w.tick()
			if phase := w.installation().Phase(); phase != certs.PhaseSteady {
				t.Fatalf("phase %s before a rotation is due", phase)
			}
			begin(w)
			w.rotate()
			after := w.installation()
			if after.Current.PathPrefix == before.Current.PathPrefix || bytes.Equal(after.Current.CertificatePEM, before.Current.CertificatePEM) {
				t.Error("the path or the authority is the old one")
			}
			if after.DigestKey != before.DigestKey {
				t.Error("the digest key has changed, and with it every grant is lost")
			}
			old := enforcement.Endpoint{PathPrefix: before.Current.PathPrefix, CABundle: after.Bundle()}
			for i, r := range w.replicas {
				if err := w.call(r, old); err == nil {
					t.Errorf("replica %d serves the old path after the overlap", i)
				}
			}
			if bytes.Contains(after.Bundle(), before.Current.CertificatePEM) {
				t.Error("the old authority is trusted after the overlap")
			}
			for range 5 {
				w.tick()
			}
			if again := w.installation(); again.Rotations != 1 || again.Phase() != certs.PhaseSteady {
				t.Errorf("%d rotations, phase %s, want one that has ended", again.Rotations, again.Phase())
			}
		})
	}
}

// The leader dies before and after each write of a phase and of a webhook configuration. Another goes on with nothing but
// what the Secret says, and no replica ever fails an API server.
//
// Proves F-1, K-2.
func TestARotationGoesOnWhereALeaderDied(t *testing.T) {
	w := newWorld(t, 2)
	w.writes = 0
	w.ask(certs.RotateNow)
	w.rotate()
	writes := w.writes
	if writes < 9 {
		t.Fatalf("%d writes in a rotation, want 3 of the Secret and 2 configurations after each", writes)
	}
	for n := range writes {
		for _, after := range []bool{false, true} {
			when := map[bool]string{false: "before", true: "after"}[after]
			t.Run(fmt.Sprintf("%s write %d", when, n+1), func(t *testing.T) {
				w := newWorld(t, 2)
				w.writes, w.crashAt, w.crashAfter = 0, n, after
				w.ask(certs.RotateNow)
				w.rotate()
				if w.crashAt != -1 {
					t.Error("the leader did not die")
				}
				if got := w.installation(); got.Rotations != 1 || got.Phase() != certs.PhaseSteady {
					t.Errorf("%d rotations, phase %s, want one that has ended", got.Rotations, got.Phase())
				}
			})
		}
	}
}

// Proves F-1, K-2.
func TestAPhaseWaitsForWhatItNeeds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		phase certs.Phase
		block func(*world) (unblock func())
	}{
		{"the next path for a replica that is silent", certs.PhaseDistributing, func(w *world) func() {
			w.replicas[1].silent = true
			return func() { w.replicas[1].silent = false }
		}},
		{"the end of the old authority for a replica that serves an old leaf", certs.PhaseOverlapping, func(w *world) func() {
			w.replicas[1].silent = true
			return func() { w.replicas[1].silent = false }
		}},
		{"the next path for an edited mutating configuration", certs.PhaseDistributing, func(w *world) func() {
			w.edit(&admissionregistrationv1.MutatingWebhookConfiguration{})
			return w.reconfigure
		}},
		{"the next path for an edited validating configuration", certs.PhaseDistributing, func(w *world) func() {
			w.edit(&admissionregistrationv1.ValidatingWebhookConfiguration{})
			return w.reconfigure
		}},
		{"the end of the old authority for a proof", certs.PhaseOverlapping, func(w *world) func() {
			w.unproven = true
			return func() { w.unproven = false }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, 2)
			w.tick()
			w.ask(certs.RotateNow)
			w.until(certs.PhaseDistributing)
			w.until(tt.phase)
			unblock := tt.block(w)
			for range 12 {
				w.tick()
				if phase := w.installation().Phase(); phase != tt.phase {
					t.Fatalf("phase %s, want it to wait in %s", phase, tt.phase)
				}
			}
			unblock()
			w.until(certs.PhaseSteady)
		})
	}
}

// edit makes the first entry of a configuration call something else.
func (w *world) edit(object client.Object) {
	w.t.Helper()
	if err := k8s.Get(w.t.Context(), client.ObjectKey{Name: enforcement.WebhookConfiguration}, object); err != nil {
		w.t.Fatal(err)
	}
	switch c := object.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		c.Webhooks[0].ClientConfig.CABundle = nil
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		c.Webhooks[0].ClientConfig.CABundle = nil
	}
	if err := k8s.Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

// reconfigure writes the configurations as the watchdog would.
func (w *world) reconfigure() {
	w.t.Helper()
	w.used = w.used[:0]
	w.configure()
}

// A replica that was killed leaves its Lease. The rotation waits as long as the replica could live, and no longer.
//
// Proves F-1.
func TestARotationWaitsForAReplicaThatSaysNothingAsLongAsItMayLive(t *testing.T) {
	w := newWorld(t, 2)
	w.tick()
	w.replicas = w.replicas[:1]
	w.ask(certs.RotateNow)
	w.until(certs.PhaseDistributing)
	waited := w.until(certs.PhaseOverlapping)
	if polls := int(timing.GoneAfter() / timing.Poll); waited < polls-2 || waited > polls+4 {
		t.Errorf("waited %d polls, want %d", waited, polls)
	}
}

// Proves F-1.
func TestARotationThatIsStuckIsToldOfInTime(t *testing.T) {
	w := newWorld(t, 1)
	w.tick()
	w.unproven = true
	w.pass(timing.RotateEvery)
	w.until(certs.PhaseOverlapping)
	w.pass(timing.RotateEvery)
	w.tick()
	if event := w.event(); event != "" {
		t.Errorf("event %q while there is time", event)
	}
	// The authority is as old as RotateEvery when it is late, and expires after AuthorityLifetime.
	w.pass((timing.AuthorityLifetime-timing.RotateEvery)/2 + timing.Poll)
	w.tick()
	if event := w.event(); !strings.HasPrefix(event, "Warning CertificateExpiring") || !strings.Contains(event, "waits for a proof of the enforcement") {
		t.Errorf("event %q, want CertificateExpiring with what the rotation waits for", event)
	}
	w.tick()
	if event := w.event(); event != "" {
		t.Errorf("event %q a second time within the hour", event)
	}
}

// Proves F-1.
func TestAnExpiredAuthorityIsReplacedWithoutHelp(t *testing.T) {
	w := newWorld(t, 2)
	w.pass(timing.AuthorityLifetime + day)
	w.unproven = true
	w.used = nil // nobody can call a replica now
	if err := w.call(w.replicas[1], enforcement.Endpoint{PathPrefix: w.installation().Current.PathPrefix, CABundle: w.installation().Bundle()}); err == nil {
		t.Fatal("an expired certificate is trusted")
	}
	for range 10 {
		w.pass(timing.Poll)
		for _, r := range w.replicas {
			if err := r.herald.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.rotator.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.used = nil
		w.configure()
	}
	if got := w.installation(); got.Rotations != 1 {
		t.Fatalf("%d rotations, want one", got.Rotations)
	}
	w.check()
}

func TestARequestForARotationWithAnotherValueIsReported(t *testing.T) {
	w := newWorld(t, 1)
	w.ask("please" + strings.Repeat("!", 100))
	w.tick()
	if event := w.event(); !strings.HasPrefix(event, `Warning RotationRequestInvalid Annotation stepbeyond.dev/rotate: "please!`) ||
		!strings.HasSuffix(event, `"... is not "now".`) {
		t.Errorf("event %q", event)
	}
	if phase := w.installation().Phase(); phase != certs.PhaseSteady {
		t.Errorf("phase %s", phase)
	}
	w.ask(certs.RotateNow)
	w.until(certs.PhaseDistributing)
	if _, asked := w.secret().Annotations[certs.AnnotationRotate]; asked {
		t.Error("the annotation is still there, and asks for another rotation")
	}
}

// Proves F-1.
func TestOfTwoLeadersOneWrites(t *testing.T) {
	w := newWorld(t, 1)
	w.ask(certs.RotateNow)
	secret := w.secret()
	first, err := certs.Distribute(secret, w.now(), timing.AuthorityLifetime)
	if err != nil {
		t.Fatal(err)
	}
	second, err := certs.Distribute(secret, w.now(), timing.AuthorityLifetime)
	if err != nil {
		t.Fatal(err)
	}
	if err := k8s.Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := k8s.Update(t.Context(), second); err == nil {
		t.Error("the second leader's authority replaced the first one's, which may be distributed already")
	}
}

// A leader tells what it found when the Secret says nothing usable, and changes nothing.
//
// Proves F-1.
func TestALeaderReportsAnUnusableSecret(t *testing.T) {
	w := newWorld(t, 1)
	w.update(func(s *corev1.Secret) { s.Data["next.ca.crt"] = []byte("x") })
	if err := w.rotator.Step(t.Context()); err == nil {
		t.Error("no error")
	}
	if event := w.event(); !strings.HasPrefix(event, "Warning InstallationUnusable") || !strings.Contains(event, "field next.ca.crt") {
		t.Errorf("event %q", event)
	}
	w.check()
}
