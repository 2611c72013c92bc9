package v1alpha1

// SessionUserApproval says whether the session's human user may approve (requirement G-3). The requester, its children
// and its launcher never may.
// +kubebuilder:validation:Enum=Allow;Refuse
type SessionUserApproval string

// Session user approvals.
const (
	SessionUserAllow  SessionUserApproval = "Allow"
	SessionUserRefuse SessionUserApproval = "Refuse"
)

// Approvals says what a question needs and how long it lives. Values of several policies join to the strictest.
type Approvals struct {
	// decideWithinSeconds bounds the wait for an answer; then the question expires, which never approves. Between 1
	// and 2592000 (30 days). Omitted in a profile: 57600 (16 hours); elsewhere: the profile's.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	DecideWithinSeconds int32 `json:"decideWithinSeconds,omitempty"`

	// useWithinSeconds bounds the time from approval to use. Between 1 and 2592000 (30 days). Omitted in a profile:
	// 14400 (4 hours); elsewhere: the profile's.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	UseWithinSeconds int32 `json:"useWithinSeconds,omitempty"`

	// warnBeforeExpirySeconds is how long before either end people are told, but never before half of the time is over.
	// Of several policies the longest counts. Between 1 and 2592000. Omitted in a profile: 1800; elsewhere: the
	// profile's.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	WarnBeforeExpirySeconds int32 `json:"warnBeforeExpirySeconds,omitempty"`

	// askAgainAfterSeconds is how long a denied operation is refused without asking again in the same epoch. Between 1
	// and 2592000. Omitted in a profile: 3600; elsewhere: the profile's.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	AskAgainAfterSeconds int32 `json:"askAgainAfterSeconds,omitempty"`

	// sessionUser says whether the session's human user may approve. Omitted in a profile: Allow; elsewhere: the
	// profile's.
	// +optional
	SessionUser SessionUserApproval `json:"sessionUser,omitempty"`

	// widestScope is the widest answer that an approver may give. Omitted in a profile: Exact; elsewhere: the profile's.
	// +optional
	WidestScope ScopeType `json:"widestScope,omitempty"`

	// maxTimeBoxSeconds bounds how long a TimeBoxed approval may last. Between 1 and 604800 (7 days). Omitted in a
	// profile: 1800; elsewhere: the profile's.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	MaxTimeBoxSeconds int32 `json:"maxTimeBoxSeconds,omitempty"`

	// maxTimeBoxUses bounds how many operations a Session or TimeBoxed approval may cover. Between 1 and 100, because the
	// fate of each stands in the grant. Omitted in a profile: 20; elsewhere: the profile's.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxTimeBoxUses int32 `json:"maxTimeBoxUses,omitempty"`

	// requirements on the approvers; every entry that matches a question must be met. Omitted, or none matches: one
	// person with the verb approve.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Requirements []ApprovalRequirement `json:"requirements,omitempty"`
}

// ApprovalRequirement is one condition on the approvers of a question (requirement G-9).
type ApprovalRequirement struct {
	// name of the requirement, shown on the grant.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// match selects the questions. Omitted: every question.
	// +optional
	Match *RequirementMatch `json:"match,omitempty"`

	// required is how many people must approve. Between 1 and 8. Omitted: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	Required int32 `json:"required,omitempty"`

	// approverGroups limits who counts to members of any of these groups. Omitted: anyone with the verb approve.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	ApproverGroups []string `json:"approverGroups,omitempty"`
}

// RequirementMatch selects questions: any entry of facts or rules that is among the reasons matches; resources narrow
// further.
// +kubebuilder:validation:XValidation:rule="has(self.facts) || has(self.rules) || has(self.resources)",message="needs facts, rules or resources: omit match to select every question"
type RequirementMatch struct {
	// facts that are among the reasons. Omitted: any.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Facts []Fact `json:"facts,omitempty"`

	// rules that are among the reasons, as policy/rule, as in "default/ask-external-exposure". Omitted: any.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=384
	Rules []string `json:"rules,omitempty"`

	// resources are plural resource names of the target. Omitted: any.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	Resources []string `json:"resources,omitempty"`
}
