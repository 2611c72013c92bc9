package v1alpha1

// SessionLifetime says what a session follows. Workload: one session per root owner (Job, Deployment), so that a grant
// survives eviction, restart and parking. Pod: one session per pod.
// +kubebuilder:validation:Enum=Workload;Pod
type SessionLifetime string

// Session lifetimes.
const (
	SessionLifetimeWorkload SessionLifetime = "Workload"
	SessionLifetimePod      SessionLifetime = "Pod"
)

// UserSource says where the name of a session's human user comes from. Fixed: the session template. PodAnnotation: the
// annotation stepbeyond.dev/user of the pod, which does not count when a governed identity wrote the pod template.
// Explicit: the person who opened the session named the user.
type UserSource string

// User sources. A template knows the first two.
const (
	UserSourceFixed         UserSource = "Fixed"
	UserSourcePodAnnotation UserSource = "PodAnnotation"
	UserSourceExplicit      UserSource = "Explicit"
)

// SessionTemplate says which session the pods of one ServiceAccount get.
type SessionTemplate struct {
	// name of the template, unique in this object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and -, because it is the value of a label"
	Name string `json:"name"`

	// serviceAccountName that the template is for. Only the ServiceAccount counts, because pod labels are the agent's
	// to write.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.contains('*')",message="must be one exact name, without *"
	ServiceAccountName string `json:"serviceAccountName"`

	// lifetime of the session. Omitted: Workload.
	// +optional
	// +kubebuilder:default=Workload
	Lifetime SessionLifetime `json:"lifetime,omitempty"`

	// user is the human whose work the session does.
	// +required
	User TemplateUser `json:"user,omitzero"`

	// adapter that the agent runs under. Omitted: none.
	// +optional
	Adapter *Adapter `json:"adapter,omitempty"`

	// authority of the session.
	// +required
	Authority Authority `json:"authority,omitzero"`

	// maxAgeSeconds from the session's start to its deadline. Between 60 and 31536000 (365 days). Omitted: 172800
	// (48 hours).
	// +optional
	// +kubebuilder:default=172800
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=31536000
	MaxAgeSeconds int32 `json:"maxAgeSeconds,omitempty"`
}

// TemplateUser says who the human user of a session is; a union on source.
// +kubebuilder:validation:XValidation:rule="self.source == 'Fixed' ? has(self.name) : !has(self.name)",fieldPath=".name",message="is required with source Fixed and not allowed with source PodAnnotation"
type TemplateUser struct {
	// source of the name: Fixed or PodAnnotation.
	// +required
	// +kubebuilder:validation:Enum=Fixed;PodAnnotation
	Source UserSource `json:"source"`

	// name of the user with source Fixed. Omitted with source PodAnnotation.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`
}

// Adapter names the runtime that connects an agent to Step Beyond. Guarantees are proven per name, version and host
// (requirement M-3).
type Adapter struct {
	// name of the adapter, as in "kubectl".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// version of the adapter. Omitted: unknown, so that no recorded run counts for it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version,omitempty"`

	// host platform of the adapter, as in "linux-amd64". Omitted: unknown.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Host string `json:"host,omitempty"`
}

// Authority bounds what a session may do. A capability that is not listed is outside authority; a stage that is not
// listed asks.
type Authority struct {
	// stages that the session has.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Stages []Stage `json:"stages"`

	// capabilities that the session has.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Capabilities []Capability `json:"capabilities"`

	// kubernetes narrows the writes that the session may attempt; any entry covers. Omitted: everything that RBAC
	// allows the ServiceAccount in the session's own namespace, and nothing outside it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Kubernetes []KubernetesAuthority `json:"kubernetes,omitempty"`

	// budgets bound how much the session may do. Omitted: the policy's caps alone.
	// +optional
	Budgets *Budgets `json:"budgets,omitempty"`
}

// KubernetesAuthority covers writes in the session's own namespace. Every field that is present must match.
type KubernetesAuthority struct {
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
	// name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[^*]*[*]?$')",message="\"*\" stands alone or once at the end, as in ledger-*"
	Names []string `json:"names,omitempty"`

	// verbs that are covered.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Verbs []Verb `json:"verbs"`
}

// Budgets bound how much a session may do; the policy's caps count as well.
type Budgets struct {
	// maxMutations bounds the session's writes. Between 0 and 1000000. Omitted: the policy's cap.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	MaxMutations *int32 `json:"maxMutations,omitempty"`

	// maxChildSessions bounds the session's children. Between 0 and 100. Omitted: the policy's cap.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxChildSessions *int32 `json:"maxChildSessions,omitempty"`
}
