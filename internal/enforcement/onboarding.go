package enforcement

import (
	"fmt"
	"slices"
	"unicode/utf8"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistration "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
)

const (
	// EntryOnboarding decides writes in namespaces under a profile that only audits, and lets all of them pass. It is the
	// name of one entry in each configuration: the mutating one writes origin stamps, because without them every object
	// that an agent makes would be reported as somebody else's, and would be so on the first day of enforcement.
	// Namespaces that do not fit one expression make further entries, onboarding-1 and so on.
	EntryOnboarding = "onboarding.stepbeyond.dev"
	// PathOnboarding is the path of the validating entry below Endpoint.PathPrefix.
	PathOnboarding = "/onboarding"

	// onboardingTimeoutSeconds is the least that the API server takes: a webhook that hangs must cost its callers little.
	onboardingTimeoutSeconds = 1
)

// withOnboarding adds the entries for ServiceAccounts of watched to the webhook configurations. Left out are namespaces of
// enforced and the canary's, so that no request reaches both, and whatever a scope refuses, so that nothing here keeps an
// enforced scope from being written. watched.Users is not looked at. Nothing left adds nothing.
func withOnboarding(configurations []Object, watched, enforced Scope, e Endpoint) {
	namespaces := slices.DeleteFunc(sortedUnique(watched.Namespaces), func(namespace string) bool {
		return namespace == CanaryNamespace || slices.Contains(enforced.Namespaces, namespace) ||
			(Scope{Namespaces: []string{namespace}}).validate() != nil
	})
	for i, shard := range fitting(namespaces) {
		name := EntryOnboarding
		if i > 0 {
			name = fmt.Sprintf("onboarding-%d.stepbeyond.dev", i)
		}
		for _, configuration := range configurations {
			switch c := configuration.(type) {
			case *admissionregistration.MutatingWebhookConfigurationApplyConfiguration:
				c.WithWebhooks(onboardingOrigin(name, e, shard, watched.Exempt))
			case *admissionregistration.ValidatingWebhookConfigurationApplyConfiguration:
				c.WithWebhooks(onboarding(name, e, shard, watched.Exempt))
			}
		}
	}
}

// onboarding is ignored when it fails: what nobody counted passes too.
func onboarding(name string, e Endpoint, namespaces []string, exempt []ServiceAccount) *admissionregistration.ValidatingWebhookApplyConfiguration {
	return admissionregistration.ValidatingWebhook().WithName(name).WithClientConfig(e.client(PathOnboarding)).
		WithRules(anything.webhookRule()).
		WithMatchPolicy(admissionregistrationv1.Exact).
		WithNamespaceSelector(everything()).WithObjectSelector(everything()).
		WithMatchConditions(condition("onboarding", ofNamespaces(namespaces))).
		WithMatchConditions(notExempt(namespaces, exempt)...).
		WithFailurePolicy(admissionregistrationv1.Ignore).
		WithSideEffects(admissionregistrationv1.SideEffectClassNone).
		WithTimeoutSeconds(onboardingTimeoutSeconds).
		WithAdmissionReviewVersions("v1")
}

// onboardingOrigin is the origin entry for namespaces that are only watched.
func onboardingOrigin(name string, e Endpoint, namespaces []string, exempt []ServiceAccount) *admissionregistration.MutatingWebhookApplyConfiguration {
	return origin(e, ofNamespaces(namespaces)).WithName(name).
		WithMatchConditions(notExempt(namespaces, exempt)...).
		WithTimeoutSeconds(onboardingTimeoutSeconds)
}

// ofNamespaces is true for the ServiceAccounts of the namespaces. Like the scope's it never errs.
func ofNamespaces(namespaces []string) string {
	return `has(request.userInfo.username) && request.userInfo.username.startsWith("system:serviceaccount:") && ` +
		`request.userInfo.username.split(":")[2] in ` + celLiteral(namespaces)
}

// notExempt are conditions that exempt ServiceAccounts of the namespaces with a credential ID do not meet.
func notExempt(namespaces []string, exempt []ServiceAccount) []*admissionregistration.MatchConditionApplyConfiguration {
	var usernames []string
	for _, account := range exempt {
		if slices.Contains(namespaces, account.Namespace) && (Scope{Exempt: []ServiceAccount{account}}).validate() == nil {
			usernames = append(usernames, account.Username())
		}
	}
	var conditions []*admissionregistration.MatchConditionApplyConfiguration
	for i, part := range fitting(sortedUnique(usernames)) {
		conditions = append(conditions, condition(fmt.Sprintf("not-exempt-%d", i),
			`!(has(request.userInfo.username) && request.userInfo.username in `+celLiteral(part)+
				` && has(request.userInfo.extra) && "`+credentialID+`" in request.userInfo.extra)`))
	}
	return conditions
}

// fitting cuts a list into parts whose literals have at most MaxScopeCodePoints each.
func fitting(list []string) [][]string {
	var parts [][]string
	size := 0
	for _, entry := range list {
		n := utf8.RuneCountInString(celLiteral(entry)) + 1 // and a comma, or a bracket
		if size += n; len(parts) == 0 || size > MaxScopeCodePoints-1 {
			parts, size = append(parts, nil), n
		}
		last := len(parts) - 1
		parts[last] = append(parts[last], entry)
	}
	return parts
}
