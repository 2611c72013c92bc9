package rotation_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"stepbeyond.dev/stepbeyond/internal/certs"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// Proves F-1, K-2.
func TestNoWriteFailsWhileTheAuthorityAndThePathAreRotated(t *testing.T) {
	before := installation(t)
	agent, other := startLoad(t, home.Agent, home.Namespace, true), startLoad(t, ben, free, false)
	askToRotate(t)
	awaitPhase(t, before.Rotations, certs.PhaseDistributing)
	awaitPhase(t, before.Rotations+1, certs.PhaseOverlapping)
	awaitPhase(t, before.Rotations+1, certs.PhaseSteady)
	after := installation(t)
	inForce(t, after)
	balancer.Cut() // no connection from before hides a certificate that nobody trusts
	time.Sleep(2 * time.Second)
	agent.end(t, "agent")
	other.end(t, "bystander")
	if bytes.Equal(before.Current.CertificatePEM, after.Current.CertificatePEM) || before.Current.PathPrefix == after.Current.PathPrefix {
		t.Error("the authority or the path is the old one")
	}
	for _, replica := range replicas {
		for _, tt := range []struct {
			name, path string
			want       int
		}{
			{"the old path", before.Current.PathPrefix, http.StatusNotFound},
			{"the new path", after.Current.PathPrefix, http.StatusBadRequest}, // served: what was sent is no review
		} {
			if code, err := call(replica.WebhookAddress(), tt.path, after.Bundle()); err != nil || code != tt.want {
				t.Errorf("%s: %d, %v, want %d", tt.name, code, err, tt.want)
			}
		}
		noPathIsLogged(t, replica, before, after)
	}
}

// Proves F-1, K-2.
func TestNoWriteFailsWhileALeaderDiesInARotation(t *testing.T) {
	before := installation(t)
	agent, other := startLoad(t, home.Agent, home.Namespace, true), startLoad(t, ben, free, false)
	marks := map[*env.Manager]int{}
	for _, replica := range replicas {
		_, marks[replica] = logged(t, replica, 0)
	}
	askToRotate(t)
	awaitPhase(t, before.Rotations, certs.PhaseDistributing)
	var leader *env.Manager
	eventually(t, "find the leader", func() error {
		for _, replica := range replicas {
			if text, _ := logged(t, replica, marks[replica]); strings.Contains(text, "Rotation goes on") {
				leader = replica
				return nil
			}
		}
		return errors.New("no replica rotates")
	})
	// What a dying replica was about to answer is refused, as for any death; that is not what this test is about.
	agent.pause.Lock()
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	agent.pause.Unlock()
	t.Logf("%s killed the leader in phase %s", time.Now().Format(time.TimeOnly), installation(t).Phase())
	awaitPhase(t, before.Rotations+1, certs.PhaseOverlapping)
	awaitPhase(t, before.Rotations+1, certs.PhaseSteady)
	inForce(t, installation(t))
	agent.end(t, "agent")
	other.end(t, "bystander")
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	if err := leader.WaitReady(t.Context(), waitAtMost); err != nil {
		t.Fatal(err)
	}
}

// inForce waits until the webhook configurations say what the installation says.
func inForce(t *testing.T, in *certs.Installation) {
	t.Helper()
	endpoint := enforcement.Endpoint{URL: "https://" + balancer.Address(), PathPrefix: in.Current.PathPrefix, CABundle: in.Bundle()}
	eventually(t, "webhook configurations", func() error {
		ok, err := endpoint.InForce(t.Context(), shared.Admin)
		if err == nil && !ok {
			err = errors.New("they say something else")
		}
		return err
	})
}

// call sends an empty review; a path that is served answers it with a refusal in the body, and status 200.
func call(address, prefix string, bundle []byte, certificates ...tls.Certificate) (int, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	c := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certificates}, DisableKeepAlives: true,
	}}
	response, err := c.Post("https://"+address+prefix+enforcement.PathEnforce, "application/json", strings.NewReader("{}"))
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// noPathIsLogged looks for secret paths in the log of a replica, where a label or a message would show it.
func noPathIsLogged(t *testing.T, replica *env.Manager, installations ...*certs.Installation) {
	t.Helper()
	text, err := os.ReadFile(replica.Logs())
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range installations {
		if bytes.Contains(text, []byte(in.Current.PathPrefix)) {
			t.Error("a secret path stands in the log")
		}
	}
	// Every series of controller-runtime's metrics about reviews carries the path that a handler is registered for.
	all, err := replica.Counter(t.Context(), "controller_runtime_webhook_requests_total", nil)
	if err != nil {
		t.Fatal(err)
	}
	root, err := replica.Counter(t.Context(), "controller_runtime_webhook_requests_total", map[string]string{"webhook": "/"})
	if err != nil {
		t.Fatal(err)
	}
	if all == 0 || root != all {
		t.Errorf("%v of %v reviews are counted without their path", root, all)
	}
}
