package enforcement

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"stepbeyond.dev/stepbeyond/policy"
)

func TestAuthorityFollowsTheCatalogue(t *testing.T) {
	escalates := func(name string, selectors ...policy.KubernetesSelector) policy.CatalogueEntry {
		return policy.CatalogueEntry{Name: name, Present: []policy.Fact{policy.EscalatesAuthority}, Match: policy.Match{Kubernetes: selectors}}
	}
	withWhen := escalates("when", policy.KubernetesSelector{Groups: []string{"x"}})
	withWhen.When = "true"
	harmless := escalates("harmless", policy.KubernetesSelector{Groups: []string{"x"}})
	harmless.Present = []policy.Fact{policy.Reversible}
	all := anything.operations
	for _, tc := range []struct {
		name  string
		entry policy.CatalogueEntry
		want  []rule
	}{
		{"a selector becomes a rule of its own", escalates("e", policy.KubernetesSelector{Groups: []string{"", "apps"}, Resources: []string{"nodes", "pods/proxy"}, Verbs: []policy.Verb{policy.VerbConnect, policy.VerbCreate}}),
			[]rule{{[]string{"", "apps"}, []string{"*"}, []string{"nodes", "pods/proxy"}, []admissionregistrationv1.OperationType{"CREATE", "CONNECT"}}}},
		{"any resource of a group includes its subresources", escalates("e", policy.KubernetesSelector{Groups: []string{"g"}, Resources: []string{"*", "a"}}),
			[]rule{{[]string{"g"}, []string{"*"}, []string{"*/*"}, all}}},
		{"omitted fields match anything", escalates("e", policy.KubernetesSelector{}), []rule{{[]string{"*"}, []string{"*"}, []string{"*/*"}, all}}},
		{"a subresource that a wildcard covers is left out", escalates("e", policy.KubernetesSelector{Groups: []string{""}, Resources: []string{"nodes/proxy", "nodes/*", "nodes"}}),
			[]rule{{[]string{""}, []string{"*"}, []string{"nodes", "nodes/*"}, all}}},
		{"a selector by name is the engine's, the next one still counts", escalates("e",
			policy.KubernetesSelector{Groups: []string{"g"}, Names: []string{"x"}}, policy.KubernetesSelector{Groups: []string{"g"}, Origins: []policy.Origin{policy.OriginPerson}}, policy.KubernetesSelector{Groups: []string{"h"}}),
			[]rule{{[]string{"h"}, []string{"*"}, []string{"*/*"}, all}}},
		{"our own group is left to the policy that guards it", escalates("e", policy.KubernetesSelector{Groups: []string{"stepbeyond.dev"}}), nil},
		{"reads are not seen", escalates("e", policy.KubernetesSelector{Groups: []string{"g"}, Verbs: []policy.Verb{policy.VerbRead}}), nil},
		{"an entry with an expression is the engine's", withWhen, nil},
		{"an entry about other facts is not of the floor", harmless, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := authority([]policy.CatalogueEntry{tc.entry})
			if diff := cmp.Diff(tc.want, f.rules[:len(f.rules)-1], cmp.AllowUnexported(rule{}), cmpEmpty); diff != "" {
				t.Errorf("rules before the one for Secrets (-want +got):\n%s", diff)
			}
			if want := min(len(tc.want), 1) + 1; len(f.checks) != want {
				t.Errorf("want %d checks, got %d", want, len(f.checks))
			}
		})
	}
}

var cmpEmpty = cmp.FilterValues(func(a, b []rule) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore())

func TestMessagesKeepTheirBound(t *testing.T) {
	long := policy.CatalogueEntry{
		Name: strings.Repeat("n", 63), Present: []policy.Fact{policy.EscalatesAuthority}, Recovery: strings.Repeat("a word\n", 100),
		Match: policy.Match{Kubernetes: []policy.KubernetesSelector{{Groups: []string{"g"}}}},
	}
	for _, f := range []floorPolicy{authority([]policy.CatalogueEntry{long}), pods(), self()} {
		for _, c := range f.checks {
			before, after := c.parts("v12")
			message := before + strings.Repeat("o", maxOperation) + after
			if len(message) > maxMessage || strings.Contains(message, "\n") || !strings.HasSuffix(message, ". [floor v12]") {
				t.Errorf("%s: %d bytes: %q", c.rule, len(message), message)
			}
		}
	}
}

func TestEqualInputGivesEqualBytes(t *testing.T) {
	render := func(s Scope) string {
		entries := []policy.CatalogueEntry{{Name: "e", Present: []policy.Fact{policy.EscalatesAuthority},
			Match: policy.Match{Kubernetes: []policy.KubernetesSelector{{Groups: []string{"g"}, Resources: []string{"b", "a"}}}}}}
		floor, err := Floor(s, entries, "v1")
		if err != nil {
			t.Fatal(err)
		}
		webhooks, err := Webhooks(s, Endpoint{ServiceNamespace: "n", ServiceName: "s", CABundle: []byte("ca")}, managerUsername)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(append(floor, webhooks...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	a := Scope{Namespaces: []string{"a", "b"}, Users: []string{"u", "v"}, Exempt: []ServiceAccount{{"a", "x"}, {"b", "y"}}}
	b := Scope{Namespaces: slices.Clone(a.Namespaces), Users: slices.Clone(a.Users), Exempt: slices.Clone(a.Exempt)}
	slices.Reverse(b.Namespaces)
	slices.Reverse(b.Users)
	slices.Reverse(b.Exempt)
	if diff := cmp.Diff(render(a), render(b)); diff != "" {
		t.Errorf("(-in order +reversed):\n%s", diff)
	}
}

func TestWebhooksRefuseAnEndpointThatNobodyCanCall(t *testing.T) {
	ca := []byte("ca")
	for name, endpoint := range map[string]Endpoint{
		"without a certificate":  {URL: "https://127.0.0.1:9443"},
		"without an address":     {CABundle: ca},
		"without a Service name": {CABundle: ca, ServiceNamespace: "n"},
		"over plain HTTP":        {CABundle: ca, URL: "http://127.0.0.1:9443"},
		"with a path of its own": {CABundle: ca, URL: "https://127.0.0.1:9443/x"},
		"that does not parse":    {CABundle: ca, URL: "https://[::1"},
	} {
		if _, err := Webhooks(Scope{}, endpoint, managerUsername); !errors.Is(err, errEndpoint) {
			t.Errorf("%s: want an endpoint error, got %v", name, err)
		}
	}
	if _, err := Webhooks(Scope{}, Endpoint{URL: "https://127.0.0.1:9443", CABundle: ca}, ""); err == nil {
		t.Error("without the manager's username: want an error")
	}
}
