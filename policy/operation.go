package policy

import "stepbeyond.dev/stepbeyond/policy/expr"

// Operation is what an agent wants to do, as a front door (admission, decision API, offline test) understood it.
type Operation struct {
	Capability Capability
	// Stage is the higher of the declared and the derived one; a Kubernetes write is execute, its dry-run propose.
	Stage Stage
	Verb  Verb
	// Tool names a tool call; empty for a Kubernetes request.
	Tool   string
	Target Target
	// Optional marks work that the requested result does not need. Admission cannot know and leaves it false.
	Optional bool
	// Spared operations go on under a hold: lease renewals, access reviews, catalogued verifiers and the reconciliation
	// itself. Reads and dry runs need no mark.
	Spared bool
	// DryRun requests change nothing.
	DryRun bool
	// Facts that the front door parsed or that the API server's own data prove. Catalogues add to them.
	Facts Facts
	// ReadBy tells who found that the operation only reads; 0 when nobody did. Only Parsed and Catalogued count: what is
	// declared lowers nothing (requirement C-4). Entries of catalogues with [EffectRead] add to it.
	ReadBy Provenance
	// Kubernetes holds the request's content for rules that read it; nil for a tool call.
	Kubernetes *KubernetesRequest
	// Digest is the keyed digest of the exact operation; empty until a grant is looked for.
	Digest string
}

// Target is the object or thing that the operation acts on.
type Target struct {
	Group       string
	Version     string
	Resource    string
	Subresource string
	Namespace   string // empty for cluster-scoped targets
	Name        string // empty for generateName and for one object of a collection
	UID         string // empty while it does not exist or is not known
	Origin      Origin
	// LastWriter is the field manager that wrote the target last, for disclosures; empty when not known.
	LastWriter string
}

// ResourcePath is the resource with its subresource, as rules and messages spell it: "deployments/scale".
func (t *Target) ResourcePath() string {
	if t.Subresource == "" {
		return t.Resource
	}
	return t.Resource + "/" + t.Subresource
}

// Path is namespace/name, or the name alone for cluster-scoped targets.
func (t *Target) Path() string {
	name := t.Name
	if name == "" {
		name = "(unnamed)"
	}
	if t.Namespace == "" {
		return name
	}
	return t.Namespace + "/" + name
}

// KubernetesRequest is the content of a Kubernetes write.
type KubernetesRequest struct {
	// Object is the new object, nil on delete. For connect it holds the options (kind PodExecOptions and so on).
	Object map[string]any
	// OldObject is the object as it was; nil on create and connect.
	OldObject map[string]any
	// PodTemplates of the new object, in a fixed order.
	PodTemplates []PodTemplate
}

// PodTemplate is what rules may ask about one pod template.
type PodTemplate = expr.PodTemplate
