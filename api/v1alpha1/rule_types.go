package v1alpha1

// Rule tightens: where it matches, the class of an operation is at least its own (requirement C-3). Order never
// matters, because classes join by maximum.
type Rule struct {
	// name of the rule, unique in this object; agents and approvers read it in reasons.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and -, as in ask-foreign-registry"
	Name string `json:"name"`

	// enforcement of this rule. Omitted in an AgentPolicy: the object's rulesEnforcement. Omitted in a
	// ClusterAgentPolicy: Enforce.
	// +optional
	Enforcement Enforcement `json:"enforcement,omitempty"`

	// class that a matching operation has at least.
	// +required
	Class RuleClass `json:"class"`

	// match selects operations by structured fields.
	// +required
	Match OperationMatch `json:"match,omitzero"`

	// when is a CEL expression that must be true as well; at most 4096 characters. Omitted means always. A rule whose
	// expression errs or exceeds its cost counts as matched.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	When string `json:"when,omitempty"`

	// detail tells the agent and the approver why, in one line of at most 240 characters of literal text. Omitted:
	// only the name of the rule is shown.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=240
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must be a single line without control characters"
	Detail string `json:"detail,omitempty"`

	// recovery is the next step that a refusal offers, in one line of at most 240 characters of literal text. Omitted:
	// the default sentence of the reason.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=240
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must be a single line without control characters"
	Recovery string `json:"recovery,omitempty"`
}

// OperationMatch selects operations: any entry of any list matches.
// +kubebuilder:validation:XValidation:rule="has(self.kubernetes) || has(self.tools)",message="needs kubernetes or tools: an empty match would select nothing"
type OperationMatch struct {
	// kubernetes selects requests to the API server; any entry matches. Omitted: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Kubernetes []KubernetesMatch `json:"kubernetes,omitempty"`

	// tools selects tool calls by tool name, compared whole, as in "mcp:kubernetes/pods_list"; "*" stands alone or as
	// one suffix, as in "mcp:kubernetes/*". Omitted: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[^*]*[*]?$')",message="\"*\" stands alone or once at the end, as in mcp:kubernetes/*"
	Tools []string `json:"tools,omitempty"`
}

// KubernetesMatch selects requests to the API server. Every field that is present must match.
type KubernetesMatch struct {
	// groups are API groups; "" is the core group, "*" is every group.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || self.matches('^[-a-z0-9.]*$')",message="must be an API group, \"\" for the core group, or \"*\" for every group"
	Groups []string `json:"groups"`

	// resources are plural resource names, with their subresource where one is meant, as in "deployments/scale". "*"
	// is every resource with and without subresource, "pods/*" every subresource of pods.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:XValidation:rule="self == '*' || self.matches('^[-a-z0-9.]+(/([*]|[-a-z0-9.]+))?$')",message="must be a plural resource, resource/subresource, resource/*, or \"*\""
	Resources []string `json:"resources"`

	// names are object names, compared whole; "*" stands alone or as one suffix, as in "ledger-*". Omitted: every
	// name, also that of a request that has none yet (generateName, deletecollection).
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[^*]*[*]?$')",message="\"*\" stands alone or once at the end, as in ledger-*"
	Names []string `json:"names,omitempty"`

	// verbs that admission reports, and read. There is no patch: a patch arrives as an update. A rule about reads has an
	// effect where the authorization webhook is in use.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	Verbs []Verb `json:"verbs"`

	// origins of the target. Omitted: any origin.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	Origins []Origin `json:"origins,omitempty"`
}

// Effect is what an operation does as a whole.
// +kubebuilder:validation:Enum=Read
type Effect string

// EffectRead is the effect of what only reads.
const EffectRead Effect = "Read"

// CatalogueEntry adds facts about operations that nothing else can know. It cannot remove a fact whose floor is ASK or
// FORBIDDEN when that fact was parsed or is authoritative.
type CatalogueEntry struct {
	// name of the entry, unique in this object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and -, as in kubernetes-mcp-reads"
	Name string `json:"name"`

	// match selects operations by structured fields.
	// +required
	Match OperationMatch `json:"match,omitzero"`

	// when is a CEL expression that must be true as well; at most 4096 characters. Omitted means always. An entry
	// whose expression errs or exceeds its cost counts as unmatched.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	When string `json:"when,omitempty"`

	// facts that a matching operation has.
	// +required
	Facts FactSets `json:"facts,omitzero"`

	// effect of a matching operation as a whole. Read: it only reads, so facts that are not known do not count, while
	// harms that are known do. Omitted: the entry does not say.
	// +optional
	Effect Effect `json:"effect,omitempty"`

	// detail is shown beside the facts, in one line of at most 240 characters of literal text. Omitted: only the name
	// of the entry is shown.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=240
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must be a single line without control characters"
	Detail string `json:"detail,omitempty"`

	// recovery is the next step when one of the facts prevents an operation, in one line of at most 240 characters of
	// literal text. Omitted: the default sentence of the reason.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=240
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must be a single line without control characters"
	Recovery string `json:"recovery,omitempty"`
}

// FactSets states facts as two sets; a fact in neither stays as it was.
// +kubebuilder:validation:XValidation:rule="has(self.present) || has(self.absent)",message="needs present or absent: an entry without facts would say nothing"
// +kubebuilder:validation:XValidation:rule="!has(self.present) || !has(self.absent) || self.present.all(f, !(f in self.absent))",message="a fact cannot be both present and absent"
type FactSets struct {
	// present facts. Omitted: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Present []Fact `json:"present,omitempty"`

	// absent facts. Omitted: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Absent []Fact `json:"absent,omitempty"`
}
