package enforcement

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistration "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
)

const (
	// EntryOnboarding decides writes in namespaces under a profile that only audits, and lets all of them pass. It is the
	// name of one entry in each configuration: the mutating one writes origin stamps, because without them every object
	// that an agent makes would be reported as somebody else's, and would be so on the first day of enforcement.
	EntryOnboarding = "onboarding.stepbeyond.dev"
	// PathOnboarding is the path of the validating entry below Endpoint.PathPrefix.
	PathOnboarding = "/onboarding"

	// onboardingTimeoutSeconds is the least that the API server takes: a webhook that hangs must cost its callers little.
	onboardingTimeoutSeconds = 1
)

// withOnboarding adds the entries for ServiceAccounts of watched to the webhook configurations. Left out are namespaces of
// enforced and the canary's, so that no request reaches both, and whatever a scope refuses or has no room for, so that
// nothing here keeps an enforced scope from being written. watched.Users is not looked at. Nothing left adds nothing.
func withOnboarding(configurations []Object, watched, enforced Scope, e Endpoint) {
	parts := watchedShards(watched, enforced)
	if len(parts) == 0 {
		return
	}
	for _, configuration := range configurations {
		switch c := configuration.(type) {
		case *admissionregistration.MutatingWebhookConfigurationApplyConfiguration:
			c.WithWebhooks(origin(e, parts).WithName(EntryOnboarding).WithTimeoutSeconds(onboardingTimeoutSeconds))
		case *admissionregistration.ValidatingWebhookConfigurationApplyConfiguration:
			c.WithWebhooks(onboarding(e, parts))
		}
	}
}

// watchedShards are cut like those of a scope, without the canary's namespace.
func watchedShards(watched, enforced Scope) shards {
	s := Scope{Namespaces: slices.DeleteFunc(sortedUnique(watched.Namespaces), func(namespace string) bool {
		return namespace == CanaryNamespace || slices.Contains(enforced.Namespaces, namespace) ||
			(Scope{Namespaces: []string{namespace}}).validate() != nil
	})}
	for {
		s.Exempt = slices.DeleteFunc(slices.Clone(watched.Exempt), func(account ServiceAccount) bool {
			return !slices.Contains(s.Namespaces, account.Namespace) || (Scope{Exempt: []ServiceAccount{account}}).validate() != nil
		})
		if len(s.Namespaces) == 0 {
			return nil
		}
		if parts := cut(s.groups(), maxShardBytes); len(parts) <= MaxShards {
			return parts
		}
		s.Namespaces = s.Namespaces[:len(s.Namespaces)/2]
	}
}

// onboarding is ignored when it fails: what nobody counted passes too.
func onboarding(e Endpoint, watched shards) *admissionregistration.ValidatingWebhookApplyConfiguration {
	return admissionregistration.ValidatingWebhook().WithName(EntryOnboarding).WithClientConfig(e.client(PathOnboarding)).
		WithRules(anything.webhookRule()).
		WithMatchPolicy(admissionregistrationv1.Exact).
		WithNamespaceSelector(everything()).WithObjectSelector(everything()).
		WithMatchConditions(watched.conditions("onboarding", "")...).
		WithFailurePolicy(admissionregistrationv1.Ignore).
		WithSideEffects(admissionregistrationv1.SideEffectClassNone).
		WithTimeoutSeconds(onboardingTimeoutSeconds).
		WithAdmissionReviewVersions("v1")
}
