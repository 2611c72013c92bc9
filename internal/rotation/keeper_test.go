package rotation_test

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"

	"stepbeyond.dev/stepbeyond/internal/certs"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
)

// A replica that runs goes on with what it has; one that starts says which field is wrong.
//
// Proves F-1.
func TestAnEditedOrRestoredSecretChangesNothingForARunningReplica(t *testing.T) {
	other := func(s *corev1.Secret, fields ...string) {
		foreign := newWorld(t, 1).secret()
		for _, field := range fields {
			s.Data[field] = foreign.Data[field]
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*corev1.Secret)
		field  string
		starts bool
	}{
		{"no certificate", func(s *corev1.Secret) { delete(s.Data, "ca.crt") }, "field ca.crt", false},
		{"a certificate that is no PEM", func(s *corev1.Secret) { s.Data["ca.crt"] = []byte("x") }, "field ca.crt", false},
		{"a key that is no PEM", func(s *corev1.Secret) { s.Data["ca.key"] = []byte("x") }, "field ca.key", false},
		{"a key of another authority", func(s *corev1.Secret) { other(s, "ca.key") }, "field ca.key", false},
		{"a path without a slash", func(s *corev1.Secret) { s.Data["webhook.path"] = []byte("abc") }, "field webhook.path", false},
		{"a digest key that is too short", func(s *corev1.Secret) { s.Data["digest.key"] = []byte("x") }, "field digest.key", false},
		{"a count that is none", func(s *corev1.Secret) { s.Data["rotations"] = []byte("-1") }, "field rotations", false},
		{"half a next generation", func(s *corev1.Secret) { s.Data["next.webhook.path"] = s.Data["webhook.path"] }, "field next.ca.crt", false},
		{"a previous generation without a path", func(s *corev1.Secret) { s.Data["previous.ca.crt"] = s.Data["ca.crt"] }, "field previous.webhook.path", false},
		{"two rotations at once", func(s *corev1.Secret) {
			s.Data["previous.ca.crt"], s.Data["previous.webhook.path"] = s.Data["ca.crt"], s.Data["webhook.path"]
			s.Data["next.ca.crt"], s.Data["next.ca.key"], s.Data["next.webhook.path"] = s.Data["ca.crt"], s.Data["ca.key"], s.Data["webhook.path"]
		}, "field next.ca.crt", false},
		{"the authority of another installation", func(s *corev1.Secret) { other(s, "ca.crt", "ca.key") }, "field ca.crt", true},
		{"the path of another installation", func(s *corev1.Secret) { other(s, "webhook.path") }, "field ca.crt", true},
		{"the digest key of another installation", func(s *corev1.Secret) { other(s, "digest.key") }, "field digest.key", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.tick()
			good := w.secret()
			w.update(tt.change)
			keeper := w.replicas[0].keeper
			before := keeper.Current()
			err := w.replicas[0].herald.Round(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.field) {
				t.Errorf("error %v, want %s", err, tt.field)
			}
			if keeper.Current() != before || keeper.Problem() == nil {
				t.Errorf("served %v, problem %v", keeper.Current() == before, keeper.Problem())
			}
			if err := w.replicas[0].herald.Ready(nil); err != nil {
				t.Errorf("the replica is not ready: %v", err)
			}
			w.configure()
			w.check()
			_, startErr := certs.LoadInstallation(t.Context(), k8s, k8s, w.namespace, w.now(), day)
			if tt.starts != (startErr == nil) || startErr != nil && !strings.Contains(startErr.Error(), tt.field) {
				t.Errorf("start: %v, want %s refused", startErr, tt.field)
			}
			w.update(func(s *corev1.Secret) { s.Data = good.Data })
			w.tick()
			if keeper.Problem() != nil {
				t.Errorf("problem after the Secret was put back: %v", keeper.Problem())
			}
		})
	}
}

// Proves F-1.
func TestADeletedSecretIsMadeAgainFromWhatIsServed(t *testing.T) {
	for name, phase := range map[string]certs.Phase{"between rotations": certs.PhaseSteady, "in a rotation": certs.PhaseOverlapping} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			if phase != certs.PhaseSteady {
				w.ask(certs.RotateNow)
				w.until(certs.PhaseDistributing)
				w.until(phase)
			}
			before := w.secret()
			if err := k8s.Delete(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			for _, r := range w.replicas {
				if err := r.herald.Round(t.Context()); err == nil {
					t.Error("no error of a replica whose Secret is gone")
				}
			}
			if err := w.rotator.Step(t.Context()); err == nil {
				t.Error("no error of the leader")
			}
			if event := w.event(); !strings.HasPrefix(event, "Warning InstallationUnusable") {
				t.Errorf("event %q", event)
			}
			if diff := cmp.Diff(before.Data, w.secret().Data); diff != "" {
				t.Errorf("Secret (-want +got):\n%s", diff)
			}
			w.tick()
			w.until(certs.PhaseSteady)
		})
	}
}

// A replica that the API server could not be reached from during a whole rotation is behind, not attacked.
//
// Proves F-1.
func TestAReplicaThatSleptThroughARotationTakesWhatItFinds(t *testing.T) {
	w := newWorld(t, 2)
	w.tick()
	asleep := w.replicas[1]
	w.replicas = w.replicas[:1]
	w.ask(certs.RotateNow)
	w.rotate()
	if err := asleep.herald.Ready(nil); err == nil {
		t.Error("a replica that the leader does not count is ready")
	}
	if err := asleep.herald.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.replicas = append(w.replicas, asleep)
	w.check()
	if err := asleep.herald.Ready(nil); err != nil {
		t.Error(err)
	}
}

// A replica has read the Secret before a rotation and is still starting when the leader counts replicas.
//
// Proves F-1.
func TestAReplicaIsReadyOnlyAfterItSawWhatTheLeaderWrote(t *testing.T) {
	w := newWorld(t, 1)
	w.tick()
	late := w.start()
	w.ask(certs.RotateNow)
	w.until(certs.PhaseDistributing)
	w.until(certs.PhaseOverlapping) // the leader knows nothing of it
	if err := late.herald.Ready(nil); err == nil {
		t.Fatal("ready before it has said what it serves")
	}
	if err := late.herald.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := late.herald.Ready(nil); err != nil {
		t.Fatal(err)
	}
	w.replicas = append(w.replicas, late)
	w.check()
	w.until(certs.PhaseSteady)
}

// Proves F-1.
func TestALeafIsRenewedBeforeItExpires(t *testing.T) {
	w := newWorld(t, 1)
	keeper := w.replicas[0].keeper
	w.unproven = true
	renewed := 0
	for range 360 {
		before := keeper.Current().Leaf
		w.pass(day)
		if err := keeper.Renew(); err != nil {
			t.Fatal(err)
		}
		leaf := keeper.Current().Leaf
		if leaf != before {
			renewed++
		}
		end := w.installation().Current.Authority.NotAfter()
		if left := leaf.Leaf.NotAfter.Sub(w.now()); left < timing.LeafLifetime/3-day && leaf.Leaf.NotAfter.Before(end) {
			t.Fatalf("%s left on the leaf", left)
		}
		w.check()
	}
	if renewed != 5 {
		t.Errorf("renewed %d times in 360 days, want 5: every 60 days until the authority ends first", renewed)
	}
}

// A connection that an API server keeps open does not outlive the certificate.
//
// Proves F-1.
func TestAnExpiredCertificateAnswersNothingOnAnOpenConnection(t *testing.T) {
	w := newWorld(t, 1)
	r := w.replicas[0]
	// It trusts everything, so that only the server refuses.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	url := r.url + w.installation().Current.PathPrefix + enforcement.PathEnforce
	for _, tt := range []struct {
		at   time.Duration
		want int
		cut  bool
	}{{0, http.StatusOK, false}, {timing.LeafLifetime + time.Second, http.StatusServiceUnavailable, true}} {
		w.pass(tt.at)
		response, err := client.Post(url, "application/json", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != tt.want || response.Close != tt.cut {
			t.Errorf("after %s: %s, connection closed %v, want %d and %v", tt.at, response.Status, response.Close, tt.want, tt.cut)
		}
	}
}

func TestNothingIsServedOutsideOfASecretPath(t *testing.T) {
	w := newWorld(t, 1)
	bundle := w.installation().Bundle()
	for _, prefix := range []string{"", "/", "/" + strings.Repeat("0", 64), w.installation().Current.PathPrefix[:64]} {
		if err := w.call(w.replicas[0], enforcement.Endpoint{PathPrefix: prefix, CABundle: bundle}); err == nil || err.Error() != "404 Not Found" {
			t.Errorf("path %q: %v", prefix, err)
		}
	}
}

func TestMetricsTellWhenCertificatesExpire(t *testing.T) {
	w := newWorld(t, 1)
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.replicas[0].keeper.Metrics()...)
	want := `# HELP stepbeyond_certificate_expiry_timestamp_seconds When the certificate expires that this replica serves (leaf), and the one that signed it (authority), in seconds since the epoch.
# TYPE stepbeyond_certificate_expiry_timestamp_seconds gauge
stepbeyond_certificate_expiry_timestamp_seconds{certificate="authority"} 1.8276192e+09
stepbeyond_certificate_expiry_timestamp_seconds{certificate="leaf"} 1.8038592e+09
# HELP stepbeyond_installation_problem 1 while this replica cannot read or use the Secret stepbeyond-installation, and serves what it read before; 0 otherwise.
# TYPE stepbeyond_installation_problem gauge
stepbeyond_installation_problem 0
`
	if err := testutil.GatherAndCompare(registry, bytes.NewBufferString(want)); err != nil {
		t.Error(err)
	}
	w.update(func(s *corev1.Secret) { s.Data["ca.crt"] = nil })
	_ = w.replicas[0].keeper.Refresh(t.Context())
	if err := testutil.GatherAndCompare(registry, bytes.NewBufferString(strings.Replace(want, "problem 0", "problem 1", 1))); err != nil {
		t.Error(err)
	}
}
