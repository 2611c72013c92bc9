package rotation_test

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The API server has a certificate for webhooks in the kubeconfig of its AdmissionConfiguration, and the manager asks for it.
//
// Proves F-1.
func TestAManagerThatAsksForACertificateAnswersTheAPIServerAlone(t *testing.T) {
	stopReplicas(t)
	guarded, err := manager(t.Context(), "guarded", "--client-ca-file="+callers.file, "--client-names="+apiServer)
	if err != nil {
		t.Fatal(err)
	}
	if err := guarded.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := guarded.Stop(); err != nil {
			t.Error(err)
		}
		startReplicas(t)
	}()
	if err := guarded.WaitReady(t.Context(), waitAtMost); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a governed write through the API server's certificate", func() error {
		return home.Agent.Create(t.Context(), configMap(home.Namespace, "mutual"), client.DryRunAll)
	})
	in := installation(t)
	right, err := callers.pair(apiServer)
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := callers.pair("somebody")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name         string
		certificates []tls.Certificate
		refused      bool
	}{
		{"a caller without a certificate", nil, true},
		{"a caller with a certificate for another name", []tls.Certificate{wrong}, true},
		{"a caller with the API server's name", []tls.Certificate{right}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, err := call(guarded.WebhookAddress(), in.Current.PathPrefix, in.Bundle(), tt.certificates...)
			var remote *net.OpError
			alert := errors.As(err, &remote) && remote.Op == "remote error" // from the server, in TLS
			switch {
			case tt.refused && !alert:
				t.Errorf("answer %d, %v, want a refusal of the handshake", code, err)
			case !tt.refused && (err != nil || code != http.StatusBadRequest): // what was sent is no review
				t.Errorf("answer %d, %v", code, err)
			}
		})
	}
}
