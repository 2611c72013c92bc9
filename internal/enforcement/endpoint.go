package enforcement

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations;mutatingwebhookconfigurations,verbs=get,resourceNames=stepbeyond

// Enforced tells whether the API server calls an installation of this product, whichever: the webhook configuration
// outlives an uninstall. reader must not be a cache.
func Enforced(ctx context.Context, reader client.Reader) (bool, error) {
	object := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := reader.Get(ctx, client.ObjectKey{Name: WebhookConfiguration}, object)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read %T %s: %w", object, WebhookConfiguration, err)
	}
	return err == nil, nil
}

// InForce reads both webhook configurations back and tells whether every entry of both calls this endpoint and trusts its
// bundle. reader must not be a cache.
func (e Endpoint) InForce(ctx context.Context, reader client.Reader) (bool, error) {
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	for _, object := range []client.Object{validating, mutating} {
		err := reader.Get(ctx, client.ObjectKey{Name: WebhookConfiguration}, object)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read %T %s: %w", object, WebhookConfiguration, err)
		}
	}
	if len(validating.Webhooks) == 0 || len(mutating.Webhooks) == 0 {
		return false, nil
	}
	for i := range validating.Webhooks {
		if !e.called(validating.Webhooks[i].ClientConfig) {
			return false, nil
		}
	}
	for i := range mutating.Webhooks {
		if !e.called(mutating.Webhooks[i].ClientConfig) {
			return false, nil
		}
	}
	return true, nil
}

func (e Endpoint) called(by admissionregistrationv1.WebhookClientConfig) bool {
	if !bytes.Equal(by.CABundle, e.CABundle) {
		return false
	}
	switch {
	case e.URL != "":
		return by.URL != nil && strings.HasPrefix(*by.URL, e.URL+e.PathPrefix+"/")
	case by.Service == nil || by.Service.Path == nil:
		return false
	default:
		return by.Service.Namespace == e.ServiceNamespace && by.Service.Name == e.ServiceName &&
			strings.HasPrefix(*by.Service.Path, e.PathPrefix+"/")
	}
}
