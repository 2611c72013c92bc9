package kube

import (
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// Authorization is what an authorizer is asked about one request, in the words of a SubjectAccessReview. It is asked
// also about what no admission sees.
type Authorization struct {
	// Verb of the API ("list", "deletecollection", "impersonate-on:user-info:get") or, with Path, of HTTP in lower case.
	Verb string
	// Path of a request for no resource; empty for all others.
	Path string

	Group, Version, Resource, Subresource, Namespace, Name string
	// Cluster says that the kind is known to have no namespaces. Omitted, a list or a watch without a namespace is taken for
	// one of all namespaces.
	Cluster bool
}

// NonResourceURLs stands for the resource of requests that have none, in the core group; their name is the path.
const NonResourceURLs = "nonresourceurls"

// ImpersonationPrefix begins the verbs of impersonation: the whole and the parts of constrained impersonation.
const ImpersonationPrefix = "impersonate"

// Unseen is what admission never sees and an authorizer therefore asks about, beside impersonation. Selectors without
// verbs mean every verb.
var Unseen = []policy.KubernetesSelector{
	{Groups: []string{""}, Resources: []string{"secrets", "pods/log"}, Verbs: []policy.Verb{policy.VerbRead}},
	// The kubelet asks about its own API in these words, whoever calls it past the API server.
	{Groups: []string{""}, Resources: []string{"nodes/*"}},
	{Groups: []string{"admissionregistration.k8s.io"}, Resources: []string{
		"mutatingadmissionpolicies", "mutatingadmissionpolicies/*", "mutatingadmissionpolicybindings", "mutatingadmissionpolicybindings/*",
		"validatingadmissionpolicies", "validatingadmissionpolicies/*", "validatingadmissionpolicybindings", "validatingadmissionpolicybindings/*",
	}, Verbs: []policy.Verb{policy.VerbCreate, policy.VerbUpdate, policy.VerbDelete}},
	{Groups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []policy.Verb{policy.VerbRead}},
	{Groups: []string{"authorization.k8s.io"}, Resources: []string{"localsubjectaccessreviews", "subjectaccessreviews"}, Verbs: []policy.Verb{policy.VerbRead}},
}

// Connected are the subresources that admission sees as a connect, whatever the verb; those of nodes are not among them,
// because the kubelet answers them too.
var Connected = []string{"attach", "exec", "portforward", "proxy"}

// reviews answer a question when they are created, and change nothing.
var reviews = map[groupResource]bool{
	{"authentication.k8s.io", "tokenreviews"}:             true,
	{"authorization.k8s.io", "localsubjectaccessreviews"}: true,
	{"authorization.k8s.io", "subjectaccessreviews"}:      true,
}

// Operation is what the engine decides about. ok is false for what admission sees: that is decided there. namespaces are
// the session's; a read outside of them is outside its authority, as a write is, and so is one of all namespaces.
func (a *Authorization) Operation(namespaces []string) (op policy.Operation, ok bool) {
	verb := a.verb()
	if !a.asked(verb) {
		return policy.Operation{}, false
	}
	op = policy.Operation{
		Capability: policy.CapabilityExecuteLocal, Stage: policy.StageExecute, Verb: verb, Target: a.target(),
		Kubernetes: &policy.KubernetesRequest{},
	}
	if verb == policy.VerbRead {
		op.Capability, op.Stage, op.ReadBy = policy.CapabilityReadContext, policy.StageUnderstand, policy.Parsed
	}
	if verb == policy.VerbImpersonate {
		return op, true // whoever is impersonated belongs to no namespace of anybody
	}
	j := judge{req: Request{Namespace: a.Namespace, Group: a.Group, Resource: a.Resource, Name: a.Name}, known: Known{SessionNamespaces: namespaces}, verb: verb}
	j.judgeScope()
	if a.EveryNamespace() && !a.Cluster {
		j.authoritative(policy.OutsideAuthority, policy.Present, "it shows all namespaces, and not all are the session's")
	}
	op.Facts = j.facts
	return op, true
}

// EveryNamespace tells whether the request shows the objects of all namespaces, provided that its kind has namespaces.
func (a *Authorization) EveryNamespace() bool {
	return a.Path == "" && a.Namespace == "" && (a.Verb == "list" || a.Verb == "watch")
}

// asked tells whether the request is the authorizer's: every read, and of the rest what admission does not see.
func (a *Authorization) asked(verb policy.Verb) bool {
	switch {
	case verb == policy.VerbImpersonate, a.Path != "":
		return true
	case a.Resource != "nodes" && slices.Contains(Connected, a.Subresource), a.Resource == "nodes" && a.Subresource == "status":
		return false
	case verb == policy.VerbRead:
		return true
	}
	return slices.ContainsFunc(Unseen, func(s policy.KubernetesSelector) bool {
		return slices.Contains(s.Groups, a.Group) && (len(s.Verbs) == 0 || slices.Contains(s.Verbs, verb)) &&
			(slices.Contains(s.Resources, a.Resource) && a.Subresource == "" || slices.Contains(s.Resources, a.Resource+"/*") && a.Subresource != "")
	})
}

func (a *Authorization) verb() policy.Verb {
	switch {
	case strings.HasPrefix(a.Verb, ImpersonationPrefix):
		return policy.VerbImpersonate
	case a.Path == "" && a.Verb == "create" && reviews[groupResource{a.Group, a.Resource}]:
		return policy.VerbRead
	}
	switch a.Verb {
	case "get", "list", "watch", "head", "options":
		return policy.VerbRead
	case "create", "post":
		return policy.VerbCreate
	case "update", "patch", "put":
		return policy.VerbUpdate
	case "delete", "deletecollection":
		return policy.VerbDelete
	default:
		return policy.VerbConnect
	}
}

func (a *Authorization) target() policy.Target {
	if a.Path != "" {
		return policy.Target{Resource: NonResourceURLs, Name: a.Path, Origin: policy.OriginUnknown}
	}
	t := policy.Target{
		Group: a.Group, Version: a.Version, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name,
		Origin: policy.OriginUnknown,
	}
	if a.Group == "" && a.Resource == "namespaces" {
		t.Namespace = "" // the Namespace itself, as for admission
	}
	return t
}
