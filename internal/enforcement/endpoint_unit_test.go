package enforcement

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Proves K-2.
func TestAnEndpointIsInForceWhereItIsCalledAndTrusted(t *testing.T) {
	service := Endpoint{ServiceNamespace: "ns", ServiceName: "webhook", PathPrefix: "/secret", CABundle: []byte("bundle")}
	direct := Endpoint{URL: "https://host:1", PathPrefix: "/secret", CABundle: []byte("bundle")}
	calls := func(namespace, name, path, bundle string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{
			Service:  &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name, Path: &path},
			CABundle: []byte(bundle),
		}
	}
	goes := func(url, bundle string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: []byte(bundle)}
	}
	for _, tt := range []struct {
		name     string
		endpoint Endpoint
		by       admissionregistrationv1.WebhookClientConfig
		want     bool
	}{
		{"the Service", service, calls("ns", "webhook", "/secret/enforce", "bundle"), true},
		{"the Service with less trust", service, calls("ns", "webhook", "/secret/enforce", "bund"), false},
		{"the Service with an old path", service, calls("ns", "webhook", "/old/enforce", "bundle"), false},
		{"the Service with a path that begins alike", service, calls("ns", "webhook", "/secrets/enforce", "bundle"), false},
		{"another Service", service, calls("ns", "other", "/secret/enforce", "bundle"), false},
		{"a Service elsewhere", service, calls("other", "webhook", "/secret/enforce", "bundle"), false},
		{"a URL instead of the Service", service, goes("https://host:1/secret/enforce", "bundle"), false},
		{"the URL", direct, goes("https://host:1/secret/enforce", "bundle"), true},
		{"another host", direct, goes("https://host:2/secret/enforce", "bundle"), false},
		{"the Service instead of the URL", direct, calls("ns", "webhook", "/secret/enforce", "bundle"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.endpoint.called(tt.by); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
