package kube

import (
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// Request is what an admission review asks, decoded. Decode numbers as int64 or json.Number where the decoder lets you:
// a float64 has lost the digits of large integers before they come here.
type Request struct {
	// Operation is CREATE, UPDATE, DELETE or CONNECT.
	Operation   string
	Group       string // empty for the core group
	Version     string
	Resource    string // plural
	Subresource string
	Kind        string
	Namespace   string
	Name        string
	DryRun      bool
	// Object is the new object, for CONNECT the options; nil where the review has none.
	Object    map[string]any
	OldObject map[string]any
	// Options are CreateOptions, UpdateOptions or DeleteOptions.
	Options map[string]any
	// Parent is no part of the review: the object that a scale request changes, as read live. Nil when it was not read.
	Parent map[string]any
	// ServiceAccount of the caller; the zero value for a user.
	ServiceAccount ServiceAccount
}

// ServiceAccount names one. The same name in another namespace is another identity.
type ServiceAccount struct{ Namespace, Name string }

// Known is what the API server's own data and the session tell beyond the request.
type Known struct {
	// Origin of the target; empty counts as unknown, and that as foreign.
	Origin policy.Origin
	// LastWriter is the field manager that wrote the target last; empty when not known.
	LastWriter string
	// Followed tells that another agent's session follows the target: it is that session's workload or pod, or belongs to
	// its workload.
	Followed bool
	// SessionNamespaces are the namespaces that the session may write to.
	SessionNamespaces []string
	// Recreated tells that the target is a Pod whose controller has another ready replica: its deletion is a restart.
	Recreated bool
	// ScaleTarget is the origin of the workload that [ScaleTargetOf] names. One that does not exist yet is unknown; empty
	// counts as unreadable.
	ScaleTarget policy.Origin
	// OwnClaims names those claims of [ClaimsOf] that this session made or that do not exist. Every other one counts as
	// foreign.
	OwnClaims []string
	// Serves tells that a Service which this session did not make selects the labels of [SelectionOf].
	Serves bool
	// Adopted tells that a controller which this session did not make would take the Pod of [SelectionOf].
	Adopted bool
	// Adopts tells that the workload of [SelectionOf] would take what this session did not make.
	Adopts bool
}

// groupResource is how the tables of this package name a kind.
type groupResource struct{ group, resource string }

func (r *Request) kind() groupResource { return groupResource{r.Group, r.Resource} }

var (
	pods         = groupResource{"", "pods"}
	services     = groupResource{"", "services"}
	secrets      = groupResource{"", "secrets"}
	namespaces   = groupResource{"", "namespaces"}
	claims       = groupResource{"", "persistentvolumeclaims"}
	jobs         = groupResource{"batch", "jobs"}
	cronJobs     = groupResource{"batch", "cronjobs"}
	deviceTaints = groupResource{"resource.k8s.io", "devicetaintrules"}
	statefulSets = groupResource{"apps", "statefulsets"}
	daemonSets   = groupResource{"apps", "daemonsets"}
)

// Operation translates a request for the engine. Every Kubernetes write has capability execute_local; its stage is
// execute, of a dry run propose. An eviction becomes the deletion of its pod, so that rules about one cannot be passed
// by the other. Target.UID is the old object's; for subresources that show none the caller fills it in.
//
// An error is a *[MalformedError]: the request cannot be read as its kind says, and must be refused.
func Operation(req Request, known Known) (policy.Operation, error) {
	verb, err := verbOf(&req)
	if err != nil {
		return policy.Operation{}, err
	}
	op := policy.Operation{
		Capability: policy.CapabilityExecuteLocal, Stage: policy.StageExecute, Verb: verb, DryRun: req.DryRun,
		Target: targetOf(&req, &known),
	}
	if req.DryRun {
		op.Stage = policy.StagePropose
	}
	j := newJudge(&req, &known, verb)
	j.judge()
	op.Facts = j.facts
	op.Kubernetes = &policy.KubernetesRequest{Object: req.Object, OldObject: req.OldObject, PodTemplates: j.podTemplates()}
	if j.err != nil {
		return policy.Operation{}, j.err
	}
	if isEviction(&req) {
		op.Verb, op.Target.Subresource = policy.VerbDelete, ""
	}
	return op, nil
}

func verbOf(req *Request) (policy.Verb, error) {
	switch {
	case req.Resource == "":
		return "", &MalformedError{Path: "resource", Want: "set"}
	case req.Operation == "CREATE" && req.Object == nil, req.Operation == "UPDATE" && req.Object == nil:
		return "", &MalformedError{Path: "object", Want: "an object"}
	case req.Operation == "UPDATE" && req.OldObject == nil:
		return "", &MalformedError{Path: "oldObject", Want: "an object"}
	case req.Operation == "CREATE":
		return policy.VerbCreate, nil
	case req.Operation == "UPDATE":
		return policy.VerbUpdate, nil
	case req.Operation == "DELETE":
		return policy.VerbDelete, nil
	case req.Operation == "CONNECT":
		return policy.VerbConnect, nil
	default:
		return "", &MalformedError{Path: "operation", Want: "CREATE, UPDATE, DELETE or CONNECT"}
	}
}

func targetOf(req *Request, known *Known) policy.Target {
	t := policy.Target{
		Group: req.Group, Version: req.Version, Resource: req.Resource, Subresource: req.Subresource,
		Namespace: req.Namespace, Name: req.Name, Origin: known.Origin, LastWriter: known.LastWriter,
	}
	if t.Origin == "" {
		t.Origin = policy.OriginUnknown
	}
	if req.kind() == namespaces {
		t.Namespace = "" // admission names the Namespace itself here
	}
	if req.Operation == "UPDATE" || req.Operation == "DELETE" {
		t.UID = metadataText(req.OldObject, "uid")
	}
	if req.Operation == "CREATE" && req.Subresource == "" {
		t.Name = nameOf(req)
	}
	return t
}

// nameOf is the name that a create asks for. The validating phase also sees the name that the API server made for
// generateName; it is another one on every try, and empty here.
func nameOf(req *Request) string {
	name := req.Name
	if name == "" {
		name = metadataText(req.Object, "name")
	}
	prefix := metadataText(req.Object, "generateName")
	made, found := strings.CutPrefix(name, prefix[:min(len(prefix), maxPrefix)])
	if prefix != "" && found && len(made) == madeLength && strings.Trim(made, madeLetters) == "" {
		return ""
	}
	return name
}

// The API server makes names of a prefix and random letters (k8s.io/apiserver/pkg/storage/names, Kubernetes 1.37).
const (
	maxPrefix   = 58
	madeLength  = 5
	madeLetters = "bcdfghjklmnpqrstvwxz2456789"
)

func metadataText(fields map[string]any, key string) string {
	metadata, _ := fields["metadata"].(map[string]any)
	text, _ := metadata[key].(string)
	return text
}

func isEviction(req *Request) bool {
	return req.kind() == pods && req.Subresource == "eviction" && req.Operation == "CREATE"
}

// judge gathers the facts of one request. It is used where it is made, holds what it looks at by value, and is pointed to by
// nothing that it reads: so it needs no place on the heap.
type judge struct {
	*reading
	req         Request
	known       Known
	verb        policy.Verb
	object, old object
	facts       policy.Facts
	// now and was are what templates has read.
	now, was  template
	templated bool
}

func newJudge(req *Request, known *Known, verb policy.Verb) judge {
	j := judge{reading: &reading{}, req: *req, known: *known, verb: verb}
	j.roots = j.first[:0]
	j.object = j.root("object", req.Object)
	j.old = j.root("oldObject", req.OldObject)
	return j
}

func (j *judge) judge() {
	if kind := j.object.text("kind"); kind != "" && j.req.Kind != "" && kind != j.req.Kind {
		j.object.fail("kind", "the kind that the review names")
	}
	j.judgeScope()
	switch {
	case j.verb == policy.VerbDelete, isEviction(&j.req):
		j.judgeDeletion()
	case j.verb == policy.VerbConnect:
		j.judgeConnect()
	case j.verb == policy.VerbUpdate:
		j.judgeMetadata()
		j.judgeReplicas()
		j.judgeLimits()
		j.judgeDelegated()
	case j.verb == policy.VerbCreate:
		j.judgeOwners()
		j.judgeOwnKeys()
		j.judgeDelegated()
	}
	j.judgePods()
	j.judgeKind()
}

func (j *judge) present(fact policy.Fact, why string) {
	j.facts.Add(fact, policy.FactValue{Presence: policy.Present, Provenance: policy.Parsed, Why: why})
}

func (j *judge) authoritative(fact policy.Fact, presence policy.Presence, why string) {
	j.facts.Add(fact, policy.FactValue{Presence: presence, Provenance: policy.Authoritative, Why: why})
}

func (j *judge) foreign() bool { return j.known.Origin != policy.OriginThisSession }

// judgeScope compares the target with the session's namespaces. A Namespace object stands for the namespace itself;
// other cluster-scoped targets are the catalogue's.
func (j *judge) judgeScope() {
	namespace := j.req.Namespace
	if j.req.kind() == namespaces {
		namespace = j.req.Name
		if j.verb == policy.VerbCreate || !j.foreign() {
			return
		}
	}
	switch {
	case namespace == "":
	case !slices.Contains(j.known.SessionNamespaces, namespace):
		j.authoritative(policy.OutsideAuthority, policy.Present, "the namespace is not one of the session's")
	case j.req.kind() != namespaces:
		j.authoritative(policy.Local, policy.Present, "the namespace is the session's")
		j.authoritative(policy.InScope, policy.Present, "the namespace is the session's")
	}
}
