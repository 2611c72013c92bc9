package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// Proves K-10, C-4: what an authorizer is asked becomes the same kind of operation as what admission is asked.
func TestAnAuthorizationIsReadAsAnOperation(t *testing.T) {
	type read struct {
		Verb       policy.Verb
		Capability policy.Capability
		ReadBy     policy.Provenance
		Path       string
		Outside    policy.Presence
	}
	asRead := func(path string, outside policy.Presence) read {
		return read{policy.VerbRead, policy.CapabilityReadContext, policy.Parsed, path, outside}
	}
	write := func(verb policy.Verb, path string) read {
		return read{Verb: verb, Capability: policy.CapabilityExecuteLocal, Path: path}
	}
	in := func(verb, group, resource, subresource, namespace string) kube.Authorization {
		return kube.Authorization{Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: namespace, Name: "x"}
	}
	const registration = "admissionregistration.k8s.io"
	for name, tt := range map[string]struct {
		asked kube.Authorization
		want  read // zero for what admission sees
	}{
		"a read at home":                  {in("get", "", "pods", "log", "checkout"), asRead("pods/log checkout/x", 0)},
		"a read elsewhere":                {in("get", "", "pods", "log", "free"), asRead("pods/log free/x", policy.Present)},
		"a watch of all namespaces":       {in("watch", "", "configmaps", "", ""), asRead("configmaps x", policy.Present)},
		"a list of all namespaces":        {in("list", "", "configmaps", "", ""), asRead("configmaps x", policy.Present)},
		"a list at home":                  {in("list", "", "configmaps", "", "checkout"), asRead("configmaps checkout/x", 0)},
		"a get of what is cluster-wide":   {in("get", "", "persistentvolumes", "", ""), asRead("persistentvolumes x", 0)},
		"a watch of what is cluster-wide": {kube.Authorization{Verb: "watch", Resource: "nodes", Name: "x", Cluster: true}, asRead("nodes x", 0)},
		"a Namespace":                     {in("get", "", "namespaces", "", "checkout"), asRead("namespaces x", policy.Present)},
		"a review":                        {in("create", "authentication.k8s.io", "tokenreviews", "", ""), asRead("tokenreviews x", 0)},
		"impersonation elsewhere":         {in("impersonate", "", "serviceaccounts", "", "free"), write(policy.VerbImpersonate, "serviceaccounts free/x")},
		"a part of impersonation":         {in("impersonate-on:user-info:get", "", "pods", "exec", "free"), write(policy.VerbImpersonate, "pods/exec free/x")},
		"a patch of a policy":             {in("patch", registration, "validatingadmissionpolicies", "", ""), write(policy.VerbUpdate, "validatingadmissionpolicies x")},
		"policies deleted":                {in("deletecollection", registration, "mutatingadmissionpolicies", "", ""), write(policy.VerbDelete, "mutatingadmissionpolicies x")},
		"the status of a binding":         {in("update", registration, "validatingadmissionpolicybindings", "status", ""), write(policy.VerbUpdate, "validatingadmissionpolicybindings/status x")},
		"a command on a Node":             {in("create", "", "nodes", "proxy", ""), write(policy.VerbCreate, "nodes/proxy x")},
		"an old verb on a Node":           {in("proxy", "", "nodes", "stats", ""), write(policy.VerbConnect, "nodes/stats x")},
		"a path":                          {kube.Authorization{Verb: "get", Path: "/metrics"}, asRead("nonresourceurls /metrics", 0)},
		"a path that is written":          {kube.Authorization{Verb: "put", Path: "/debug/flags/v"}, write(policy.VerbUpdate, "nonresourceurls /debug/flags/v")},
		"a Pod that is made":              {in("create", "", "pods", "", "checkout"), read{}},
		"an exec":                         {in("get", "", "pods", "exec", "checkout"), read{}},
		"a proxied Service":               {in("get", "", "services", "proxy", "checkout"), read{}},
		"a Node's status":                 {in("get", "", "nodes", "status", ""), read{}},
		"a webhook configuration":         {in("delete", registration, "validatingwebhookconfigurations", "", ""), read{}},
		"its own rights":                  {in("create", "authorization.k8s.io", "selfsubjectaccessreviews", "", ""), read{}},
		"a verb of its own":               {in("use", "", "secrets", "", "checkout"), read{}},
	} {
		t.Run(name, func(t *testing.T) {
			op, ours := tt.asked.Operation([]string{"checkout"})
			got := read{}
			if ours {
				got = read{op.Verb, op.Capability, op.ReadBy, op.Target.ResourcePath() + " " + op.Target.Path(), op.Facts[policy.OutsideAuthority].Presence}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
