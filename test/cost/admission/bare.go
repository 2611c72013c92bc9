package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"stepbeyond.dev/stepbeyond/internal/certs"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

const (
	bareName = "bare.acme.example"
	barePath = "/bare"
	loopback = "127.0.0.1"
)

// endpoint is what the process of the bare webhook says of itself on its standard output.
type endpoint struct {
	URL      string
	CABundle []byte
}

// serveBare is the process of the bare webhook: what controller-runtime gives with its defaults, and a handler that
// looks at nothing.
func serveBare(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the process that started this one
		cancel()
	}()
	authority, err := certs.NewAuthority(time.Now(), time.Hour)
	if err != nil {
		return err
	}
	leaf, err := authority.Leaf(time.Now(), time.Hour, loopback)
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	server := webhook.NewServer(webhook.Options{Host: loopback, Port: port, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return leaf, nil }
	}}})
	server.Register(barePath, &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Allowed("")
	})})
	self := endpoint{URL: fmt.Sprintf("https://%s:%d%s", loopback, port, barePath), CABundle: authority.CertificatePEM}
	if err := json.NewEncoder(os.Stdout).Encode(self); err != nil {
		return fmt.Errorf("say where the bare webhook is: %w", err)
	}
	if err := server.Start(ctx); err != nil {
		return fmt.Errorf("serve the bare webhook: %w", err)
	}
	return nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, fmt.Errorf("free port: %w", err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// withBare starts the process and has the API server ask it about every write in the namespace of the caller.
func withBare(ctx context.Context, f *field, plane *env.Env) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("bare webhook: %w", err)
	}
	process := exec.CommandContext(ctx, self, "-serve-bare")
	process.Stderr = os.Stderr
	stdin, err := process.StdinPipe()
	if err != nil {
		return fmt.Errorf("bare webhook: %w", err)
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		return fmt.Errorf("bare webhook: %w", err)
	}
	if err := process.Start(); err != nil {
		return fmt.Errorf("bare webhook: %w", err)
	}
	f.stops = append(f.stops, func() error { return errors.Join(stdin.Close(), process.Wait()) })
	var at endpoint
	if err := json.NewDecoder(stdout).Decode(&at); err != nil {
		return fmt.Errorf("bare webhook says where it is: %w", err)
	}
	admin, err := plane.Client()
	if err != nil {
		return err
	}
	if err := admin.Create(ctx, bareConfiguration(at)); err != nil {
		return fmt.Errorf("create webhook configuration: %w", err)
	}
	cfg, err := newCaller(ctx, plane)
	if err != nil {
		return err
	}
	if err := f.add(bare, plane, cfg, callers, func() (time.Duration, error) { return env.CPUOf(process.Process.Pid) }); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	return eventually(ctx, func() error {
		if _, err := client.CoreV1().ConfigMaps(callers).Create(ctx, configMap(0), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			return err
		}
		calls, err := plane.APIServerCounter(ctx, "apiserver_admission_webhook_request_total", map[string]string{"name": bareName})
		if err == nil && calls == 0 {
			err = errors.New("the API server does not call the bare webhook")
		}
		return err
	})
}

// bareConfiguration has the rules of our enforcing entry.
func bareConfiguration(at endpoint) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: bare},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         bareName,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &at.URL, CABundle: at.CABundle},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
			}},
			MatchPolicy:             new(admissionregistrationv1.Exact),
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": callers}},
			FailurePolicy:           new(admissionregistrationv1.Fail),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          new(int32(3)),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}
