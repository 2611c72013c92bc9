package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterAgentPolicy says who is governed and what holds in the whole cluster. Several objects join by maximum: what
// they govern is a union, rules and catalogue entries all count, and an exemption, a delegation or a profile binding
// counts only in the object that governs the namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=capol,categories=stepbeyond
// +kubebuilder:metadata:annotations="stepbeyond.dev/schema-revision=1"
// +kubebuilder:printcolumn:name="Baseline",type=string,JSONPath=`.spec.baselineVersion`
// +kubebuilder:printcolumn:name="Namespaces",type=integer,JSONPath=`.status.governed.namespaces`
// +kubebuilder:printcolumn:name="Onboarding",type=integer,JSONPath=`.status.governed.onboardingNamespaces`
// +kubebuilder:printcolumn:name="Would-Ask",type=integer,priority=1,JSONPath=`.status.onboarding.total.wouldAsk`
// +kubebuilder:printcolumn:name="Would-Refuse",type=integer,priority=1,JSONPath=`.status.onboarding.total.wouldRefuse`
// +kubebuilder:printcolumn:name="Webhook",type=string,JSONPath=`.status.enforcement.webhook`
// +kubebuilder:printcolumn:name="Floor",type=string,JSONPath=`.status.enforcement.floor`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterAgentPolicy struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the platform team wants.
	// +required
	Spec ClusterAgentPolicySpec `json:"spec,omitzero"`

	// status is what the manager made of it.
	// +optional
	Status ClusterAgentPolicyStatus `json:"status,omitzero"`
}

// ClusterAgentPolicyList is a list of ClusterAgentPolicies.
//
// +kubebuilder:object:root=true
type ClusterAgentPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterAgentPolicy `json:"items"`
}

// ClusterAgentPolicySpec is what the platform team wants.
type ClusterAgentPolicySpec struct {
	// baselineVersion pins the embedded floor and default catalogue, as in "v1". A new binary changes nothing until
	// this field changes. A version that the binary does not embed is refused.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^v[0-9]+$')",message="must be v and a number, as in v1"
	BaselineVersion string `json:"baselineVersion"`

	// governed says which identities are governed.
	// +required
	Governed GovernedSubjects `json:"governed,omitzero"`

	// serviceAccountApprovers lists the ServiceAccounts that may decide grants when RBAC gives them the verb approve.
	// Omitted: no ServiceAccount decides (requirement G-4).
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	ServiceAccountApprovers []ServiceAccountReference `json:"serviceAccountApprovers,omitempty"`

	// answerRelays lists the ServiceAccounts that may carry people's answers to grants, as a chat does: by impersonating
	// the person, whose name is stamped. RBAC says for whom. Omitted: everybody answers with a credential of their own.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	AnswerRelays []ServiceAccountReference `json:"answerRelays,omitempty"`

	// profiles bind values of the namespace label stepbeyond.dev/profile to settings. A label value that no entry
	// names governs the namespace and refuses every governed write in it. Omitted: no namespace can be labelled
	// usefully. Two ClusterAgentPolicies that bind one name make both Stalled.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Profiles []ProfileBinding `json:"profiles,omitempty"`

	// delegation says what an AgentPolicy outside the system namespace may set; it may always tighten. Omitted:
	// nothing is delegated.
	// +optional
	Delegation *Delegation `json:"delegation,omitempty"`

	// rules tighten in every governed namespace. Omitted: the baseline alone counts.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Rules []Rule `json:"rules,omitempty"`

	// catalogue adds facts about tools and kinds that nothing else can know. Omitted: the baseline's catalogue alone
	// counts.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Catalogue []CatalogueEntry `json:"catalogue,omitempty"`
}

// GovernedSubjects says which identities are governed. Namespaces kube-* and those of Step Beyond itself never are.
type GovernedSubjects struct {
	// namespaceSelector selects the namespaces whose ServiceAccounts are governed. It must not be empty, because an
	// empty selector selects every namespace; at most 16 entries.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="must not be empty: an empty selector would govern every namespace of the cluster"
	// +kubebuilder:validation:XValidation:rule="(!has(self.matchLabels) || size(self.matchLabels) <= 16) && (!has(self.matchExpressions) || size(self.matchExpressions) <= 16)",message="at most 16 labels and 16 expressions"
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector,omitzero"`

	// users are governed identities that are not ServiceAccounts. Omitted: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Users []GovernedUser `json:"users,omitempty"`

	// exemptServiceAccounts are ServiceAccounts of governed namespaces that are not governed, one by one. An exemption
	// needs the account's own bound token: an impersonated identity is refused. Omitted: none.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	ExemptServiceAccounts []ExemptServiceAccount `json:"exemptServiceAccounts,omitempty"`

	// released lets namespaces go that were under an Enforce profile: they keep it, whatever their labels say, until
	// they are named here or deleted. Adding an entry needs the verb ungovern. Omitted: none.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +kubebuilder:validation:MaxItems=1024
	Released []ReleasedNamespace `json:"released,omitempty"`
}

// GovernedUser is a governed identity that is not a ServiceAccount.
type GovernedUser struct {
	// name is the exact username as the API server authenticates it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="must not start with system: (Kubernetes' own identities are never governed, ServiceAccounts are governed by their namespace)"
	Name string `json:"name"`

	// sessionNamespace is the governed namespace that holds the user's sessions, because a user has none.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	SessionNamespace string `json:"sessionNamespace"`
}

// ExemptServiceAccount is one ServiceAccount of a governed namespace that is not governed.
type ExemptServiceAccount struct {
	ServiceAccountReference `json:",inline"`

	// reason says why, for the people who review exemptions; at most 240 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=240
	Reason string `json:"reason"`

	// expirationTime ends the exemption. Omitted: it has no end.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// ReleasedNamespace lets one namespace go.
type ReleasedNamespace struct {
	// namespace that is no longer held under its last Enforce profile.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// reason says why, for the record; at most 240 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=240
	Reason string `json:"reason"`
}

// FloorEnforcement says whether the floor holds in the namespaces of a profile. Enforce: ASK and FORBIDDEN are refused.
// Audit: nothing is refused, everything is counted, and sessions are prompt-only.
// +kubebuilder:validation:Enum=Enforce;Audit
type FloorEnforcement string

// Floor enforcements.
const (
	FloorEnforcementEnforce FloorEnforcement = "Enforce"
	FloorEnforcementAudit   FloorEnforcement = "Audit"
)

// ProfileBinding binds a value of the namespace label to settings.
type ProfileBinding struct {
	// name is the value of the namespace label stepbeyond.dev/profile.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and -, because it is the value of a label"
	Name string `json:"name"`

	// agentPolicyName is the AgentPolicy of the system namespace that holds the settings.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	AgentPolicyName string `json:"agentPolicyName"`

	// floorEnforcement of the floor in the profile's namespaces.
	// +required
	FloorEnforcement FloorEnforcement `json:"floorEnforcement"`
}

// DelegableSetting is something that a namespace may set for itself when it is delegated.
// +kubebuilder:validation:Enum=ModelTier;InitiativeMode;InitiativeThresholds;SessionTemplates
type DelegableSetting string

// Delegable settings.
const (
	DelegableModelTier            DelegableSetting = "ModelTier"
	DelegableInitiativeMode       DelegableSetting = "InitiativeMode"
	DelegableInitiativeThresholds DelegableSetting = "InitiativeThresholds"
	DelegableSessionTemplates     DelegableSetting = "SessionTemplates"
)

// Delegation says what an AgentPolicy outside the system namespace may set.
type Delegation struct {
	// namespaceMaySet lists the settings. Omitted: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	NamespaceMaySet []DelegableSetting `json:"namespaceMaySet,omitempty"`

	// catalogueToolPrefixes are prefixes of tool names about which a namespace may add catalogue entries, as in
	// "mcp:checkout/". Omitted: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	CatalogueToolPrefixes []string `json:"catalogueToolPrefixes,omitempty"`
}

// ClusterAgentPolicyStatus is what the manager made of the spec.
type ClusterAgentPolicyStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// governed counts what this object governs.
	// +optional
	Governed *GovernedCounts `json:"governed,omitempty"`

	// enforcement is the proven state of the enforcement.
	// +optional
	Enforcement *EnforcementStatus `json:"enforcement,omitempty"`

	// onboarding says what would have been decided in namespaces under a profile whose floor is audited. Omitted: nothing
	// was counted, or there are none.
	// +optional
	Onboarding *OnboardingReport `json:"onboarding,omitempty"`

	// ruleStatuses say what became of each rule.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	RuleStatuses []RuleStatus `json:"ruleStatuses,omitempty"`

	// conditions are Ready, EnforcementReady, IdentitiesConfined and Stalled; conditions.go documents their reasons.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GovernedCounts counts what one ClusterAgentPolicy governs.
type GovernedCounts struct {
	// namespaces under a profile whose floor is enforced.
	// +required
	// +kubebuilder:validation:Minimum=0
	Namespaces int32 `json:"namespaces"`

	// onboardingNamespaces are namespaces under a profile whose floor is audited.
	// +required
	// +kubebuilder:validation:Minimum=0
	OnboardingNamespaces int32 `json:"onboardingNamespaces"`

	// users that are governed and are not ServiceAccounts.
	// +required
	// +kubebuilder:validation:Minimum=0
	Users int32 `json:"users"`
}

// EnforcementState is the state of one half of the enforcement. InForce: observed and proven. Repairing: it differed
// from what it should be and is being written back. Lost: it could not be proven.
// +kubebuilder:validation:Enum=InForce;Repairing;Lost
type EnforcementState string

// Enforcement states.
const (
	EnforcementInForce   EnforcementState = "InForce"
	EnforcementRepairing EnforcementState = "Repairing"
	EnforcementLost      EnforcementState = "Lost"
)

// EnforcementStatus is the proven state of the enforcement.
type EnforcementStatus struct {
	// webhook is the state of the enforcing webhook.
	// +required
	Webhook EnforcementState `json:"webhook"`

	// floor is the state of the floor's ValidatingAdmissionPolicies.
	// +required
	Floor EnforcementState `json:"floor"`

	// floorPolicies counts the ValidatingAdmissionPolicies of the floor that refused their canary request. Three have one:
	// those against authority escalation, for pods and for self-protection. The three for stamps, for credentials and for
	// FORBIDDEN rules are written with them and not probed.
	// +required
	// +kubebuilder:validation:Minimum=0
	FloorPolicies int32 `json:"floorPolicies"`

	// lastProvenTime is when both halves last refused the canary request. Omitted: never.
	// +optional
	LastProvenTime *metav1.Time `json:"lastProvenTime,omitempty"`
}
