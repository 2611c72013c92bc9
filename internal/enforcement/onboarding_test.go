package enforcement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistration "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
)

// entriesOf are the match conditions and what matters of each entry that onboarding adds.
func entriesOf(t *testing.T, watched, enforced Scope) map[string][]*admissionregistration.MatchConditionApplyConfiguration {
	t.Helper()
	endpoint := Endpoint{URL: "https://127.0.0.1:9443", CABundle: []byte("pem")}
	configurations, err := Webhooks(enforced, endpoint, managerUsername)
	if err != nil {
		t.Fatal(err)
	}
	withOnboarding(configurations, watched, enforced, endpoint)
	found := map[string][]*admissionregistration.MatchConditionApplyConfiguration{}
	note := func(kind, name, url string, failure *admissionregistrationv1.FailurePolicyType, effects *admissionregistrationv1.SideEffectClass, timeout *int32, conditions []admissionregistration.MatchConditionApplyConfiguration) {
		if !strings.HasPrefix(name, "onboarding") {
			return
		}
		if *failure != admissionregistrationv1.Ignore || *effects != admissionregistrationv1.SideEffectClassNone || *timeout != 1 {
			t.Errorf("%s %s: %s, %s, %d s", kind, name, *failure, *effects, *timeout)
		}
		for i := range conditions {
			found[kind+" "+name+" "+url] = append(found[kind+" "+name+" "+url], &conditions[i])
		}
	}
	for _, object := range configurations {
		switch c := object.(type) {
		case *admissionregistration.MutatingWebhookConfigurationApplyConfiguration:
			for _, w := range c.Webhooks {
				note("mutating", *w.Name, *w.ClientConfig.URL, w.FailurePolicy, w.SideEffects, w.TimeoutSeconds, w.MatchConditions)
			}
		case *admissionregistration.ValidatingWebhookConfigurationApplyConfiguration:
			for _, w := range c.Webhooks {
				note("validating", *w.Name, *w.ClientConfig.URL, w.FailurePolicy, w.SideEffects, w.TimeoutSeconds, w.MatchConditions)
			}
		}
	}
	return found
}

// Proves K-2.
func TestOnboardingEntries(t *testing.T) {
	const (
		validating = "validating onboarding.stepbeyond.dev https://127.0.0.1:9443/onboarding"
		mutating   = "mutating onboarding.stepbeyond.dev https://127.0.0.1:9443/origin"
		of         = `has(request.userInfo.username) && request.userInfo.username.startsWith("system:serviceaccount:") && request.userInfo.username.split(":")[2] in `
	)
	condition := func(name, expression string) *admissionregistration.MatchConditionApplyConfiguration {
		return condition(name, expression)
	}
	controller := ServiceAccount{Namespace: "trial", Name: "controller"}
	for _, tt := range []struct {
		name              string
		watched, enforced Scope
		want              map[string][]*admissionregistration.MatchConditionApplyConfiguration
	}{
		{"without watched namespaces there is no entry", Scope{Exempt: []ServiceAccount{controller}}, shopScope, nil},
		{"what is enforced, the canary's and what is never governed are not watched", Scope{Namespaces: []string{"shop", CanaryNamespace, SystemNamespace, "kube-system"}}, shopScope, nil},
		{"namespaces are watched, but for exempt ServiceAccounts in them that show their credential",
			Scope{Namespaces: []string{"trial", "shop", "beta"}, Users: []string{"oidc:bot"}, Exempt: []ServiceAccount{controller, {Namespace: "shop", Name: "exempt"}}}, shopScope,
			map[string][]*admissionregistration.MatchConditionApplyConfiguration{
				validating: {
					condition("onboarding", of+`["beta","trial"]`),
					condition("not-exempt-0", `!(has(request.userInfo.username) && request.userInfo.username in ["system:serviceaccount:trial:controller"]`+
						` && has(request.userInfo.extra) && "authentication.kubernetes.io/credential-id" in request.userInfo.extra)`),
				},
				mutating: {
					condition("governed-and-unstamped", "("+of+`["beta","trial"]`+") && ("+unstamped()+")"),
					condition("not-exempt-0", `!(has(request.userInfo.username) && request.userInfo.username in ["system:serviceaccount:trial:controller"]`+
						` && has(request.userInfo.extra) && "authentication.kubernetes.io/credential-id" in request.userInfo.extra)`),
				},
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := entriesOf(t, tt.watched, tt.enforced)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFiveThousandWatchedNamespacesAreCutIntoDisjointEntries(t *testing.T) {
	var namespaces []string
	for i := range 5000 {
		namespaces = append(namespaces, fmt.Sprintf("%s-%04d", strings.Repeat("n", 58), i))
	}
	parts := fitting(namespaces)
	if joined := slices.Concat(parts...); !slices.Equal(joined, namespaces) {
		t.Errorf("%d of %d namespaces are in a part, or their order changed", len(joined), len(namespaces))
	}
	for _, part := range parts {
		if n := utf8.RuneCountInString(celLiteral(part)); n > MaxScopeCodePoints {
			t.Errorf("a part of %d code points", n)
		}
	}
	entries := entriesOf(t, Scope{Namespaces: namespaces}, Scope{})
	if len(entries) != 2*len(parts) || len(parts) < 5 {
		t.Errorf("%d entries of %d parts", len(entries), len(parts))
	}
	for name, conditions := range entries {
		if n := utf8.RuneCountInString(*conditions[0].Expression); n > 100_000 {
			t.Errorf("%s: an expression of %d code points", name, n)
		}
	}
}
