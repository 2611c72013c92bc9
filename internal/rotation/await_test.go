package rotation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/certs"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
)

// A replica that starts while the Secret is gone leaves it to the leader, which knows what it held.
//
// Proves F-1.
func TestAReplicaThatStartsWithoutTheSecretLeavesItToTheLeader(t *testing.T) {
	restored := func(w *world) { _ = w.rotator.Step(w.t.Context()) }
	for _, tt := range []struct {
		name string
		// meanwhile happens after the first look.
		meanwhile func(*world)
		released  bool
		patience  time.Duration
		// lost is what the wait ends in, and same that the installation is the one from before.
		lost, same bool
	}{
		{"the leader restores it", restored, false, time.Hour, false, true},
		{"nobody restores it, as after an uninstall", func(*world) {}, false, 50 * time.Millisecond, true, false},
		{"the cluster was let go", func(*world) {}, true, time.Hour, false, false},
		{"the cluster is let go meanwhile", release, false, time.Hour, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, 1)
			before := w.installation()
			if err := k8s.Delete(t.Context(), w.secret()); err != nil {
				t.Fatal(err)
			}
			if tt.released {
				release(w)
			}
			looks := 0
			lost, err := certs.AwaitInstallation(t.Context(), k8s, w.namespace, func(ctx context.Context) (bool, error) {
				enforced, err := enforcement.Enforced(ctx, k8s)
				if looks++; looks == 1 {
					tt.meanwhile(w)
				}
				return enforced, err
			}, tt.patience)
			if lost != tt.lost || err != nil {
				t.Fatalf("lost %v, %v, want %v", lost, err, tt.lost)
			}
			after, err := certs.LoadInstallation(t.Context(), k8s, k8s, w.namespace, w.now(), day)
			if err != nil {
				t.Fatal(err)
			}
			if same := after.DigestKey == before.DigestKey; same != tt.same {
				t.Errorf("the digest key is the one from before: %v, want %v", same, tt.same)
			}
		})
	}
}

func TestTheWaitForTheSecretEndsWithTheProcess(t *testing.T) {
	w := newWorld(t, 1)
	if err := k8s.Delete(t.Context(), w.secret()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := certs.AwaitInstallation(ctx, k8s, w.namespace, func(context.Context) (bool, error) {
		cancel()
		return true, nil
	}, time.Hour)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// release removes the webhook configurations, as kubectl stepbeyond release --cluster does.
func release(w *world) {
	w.t.Helper()
	named := metav1.ObjectMeta{Name: enforcement.WebhookConfiguration}
	for _, object := range []client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: named}, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: named},
	} {
		if err := k8s.Delete(w.t.Context(), object); err != nil {
			w.t.Fatal(err)
		}
	}
}
