package enforcement

import (
	"fmt"
	"strings"
	"testing"

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
	)
	controller := ServiceAccount{Namespace: "trial", Name: "controller"}
	watched := shard{namespaces: []string{"beta", "trial"}, exempt: []string{controller.Username()}}
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
				validating: {condition("onboarding", watched.expression(""))},
				mutating:   {condition("governed-and-unstamped", watched.expression(unstamped()))},
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

func TestWatchedNamespacesThatDoNotFitAreLeftOut(t *testing.T) {
	for _, n := range []int{5000, 10_000, 100_000} {
		var namespaces []string
		for i := range n {
			namespaces = append(namespaces, fmt.Sprintf("%s-%05d", strings.Repeat("n", 57), i))
		}
		parts, kept := watchedShards(Scope{Namespaces: namespaces}, Scope{}), 0
		for _, part := range parts {
			kept += len(part.namespaces)
			if size := len(part.expression("")); size > maxShardBytes {
				t.Errorf("%d namespaces: an expression of %d bytes", n, size)
			}
		}
		if want := min(n, 5000); kept < want || len(parts) > MaxShards {
			t.Errorf("%d namespaces: %d are watched in %d shards", n, kept, len(parts))
		}
		if entries := entriesOf(t, Scope{Namespaces: namespaces}, Scope{}); len(entries) != 2 {
			t.Errorf("%d namespaces: %d entries", n, len(entries))
		}
	}
}
