package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AgentPolicy holds the settings of a profile when it lives in the system namespace. In any other namespace it is
// optional, must be named default, may only tighten, and may set what the cluster policy delegates.
//
// Omission means different things in the two: in a profile an omitted number is its default (WithProfileDefaults), in a
// namespace's own policy it is the profile's. So the schema fills in no number here.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=apol,categories=stepbeyond
// +kubebuilder:metadata:annotations="stepbeyond.dev/schema-revision=1"
// +kubebuilder:printcolumn:name="Profile",type=string,JSONPath=`.status.profile`
// +kubebuilder:printcolumn:name="Tier",type=string,JSONPath=`.status.modelTier`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.status.initiativeMode`
// +kubebuilder:printcolumn:name="Rules",type=string,JSONPath=`.spec.rulesEnforcement`
// +kubebuilder:printcolumn:name="Sessions",type=integer,JSONPath=`.status.sessions`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.pendingGrants`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AgentPolicy struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the platform team or the namespace's team wants.
	// +required
	Spec AgentPolicySpec `json:"spec,omitzero"`

	// status is what the manager made of it.
	// +optional
	Status AgentPolicyStatus `json:"status,omitzero"`
}

// AgentPolicyList is a list of AgentPolicies.
//
// +kubebuilder:object:root=true
type AgentPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AgentPolicy `json:"items"`
}

// AgentPolicySpec is what the platform team or the namespace's team wants.
type AgentPolicySpec struct {
	// rulesEnforcement is for those rules of this object that state none of their own. It never weakens the floor or
	// another object's rules. Omitted: Enforce.
	// +optional
	// +kubebuilder:default=Enforce
	RulesEnforcement Enforcement `json:"rulesEnforcement,omitempty"`

	// modelTier of sessions. Omitted in a profile: medium; elsewhere: the profile's.
	// +optional
	ModelTier ModelTier `json:"modelTier,omitempty"`

	// initiative bounds optional actions. Omitted in a profile: mode standard with the default thresholds; elsewhere:
	// the profile's.
	// +optional
	Initiative *Initiative `json:"initiative,omitempty"`

	// confidence says where Medium and High begin. Omitted in a profile: 50 and 80 percent; elsewhere: the profile's.
	// +optional
	Confidence *Confidence `json:"confidence,omitempty"`

	// approvals says what a question needs and how long it lives. Omitted in a profile: the defaults of its fields;
	// elsewhere: the profile's.
	// +optional
	Approvals *Approvals `json:"approvals,omitempty"`

	// caps bound what sessions may use. Omitted in a profile: the defaults of its fields; elsewhere: the profile's.
	// +optional
	Caps *Caps `json:"caps,omitempty"`

	// retention says how long finished objects stay. Omitted in a profile: the defaults of its fields; elsewhere: the
	// profile's.
	// +optional
	Retention *Retention `json:"retention,omitempty"`

	// rules tighten in the namespaces of this policy. Omitted: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Rules []Rule `json:"rules,omitempty"`

	// catalogue adds facts about tools that nothing else can know. Outside the system namespace every tool of an entry
	// must begin with a prefix that the ClusterAgentPolicy delegates in catalogueToolPrefixes; an entry with another does
	// not count. Omitted: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(e, has(e.match.tools) && !has(e.match.kubernetes))",message="an AgentPolicy catalogues tools only: every match has tools and no kubernetes; kinds are catalogued by a ClusterAgentPolicy"
	Catalogue []CatalogueEntry `json:"catalogue,omitempty"`

	// sessionTemplates say which ServiceAccounts get a session, and which. Omitted in a profile: none; elsewhere: the
	// profile's.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	SessionTemplates []SessionTemplate `json:"sessionTemplates,omitempty"`
}

// Initiative bounds the optional actions that an agent may add (requirements N-2 and N-3).
type Initiative struct {
	// mode of sessions. Omitted in a profile: standard; elsewhere: the profile's.
	// +optional
	Mode InitiativeMode `json:"mode,omitempty"`

	// thresholds of the modes. Omitted in a profile: the defaults; a mode without an entry has its default.
	// +optional
	// +listType=map
	// +listMapKey=mode
	// +kubebuilder:validation:MaxItems=3
	Thresholds []InitiativeThreshold `json:"thresholds,omitempty"`
}

// InitiativeThreshold is what an optional action needs in one mode. Mode strict has none, because it allows none.
// +kubebuilder:validation:XValidation:rule="self.mode != 'fast' || self.maxOptionalActions <= 1",fieldPath=".maxOptionalActions",message="mode fast allows at most the strongest optional action: 1"
type InitiativeThreshold struct {
	// mode that the threshold is for: fast, standard or exploratory.
	// +required
	// +kubebuilder:validation:XValidation:rule="self != 'strict'",message="mode strict allows no optional action and so has no threshold"
	Mode InitiativeMode `json:"mode"`

	// minScorePercent is the least score, in percent; a score may exceed 100. Between 1 and 10000.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MinScorePercent int32 `json:"minScorePercent"`

	// maxOptionalActions is the most actions per ranking. Between 1 and 100; 1 in mode fast.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxOptionalActions int32 `json:"maxOptionalActions"`
}

// Confidence says where Medium and High begin; below mediumPercent is Low.
// +kubebuilder:validation:XValidation:rule="self.mediumPercent < self.highPercent",fieldPath=".highPercent",message="must be greater than mediumPercent"
type Confidence struct {
	// mediumPercent is where Medium begins. Between 1 and 99.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=99
	MediumPercent int32 `json:"mediumPercent"`

	// highPercent is where High begins. Between 2 and 100, more than mediumPercent.
	// +required
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=100
	HighPercent int32 `json:"highPercent"`
}

// Caps bound what sessions may use. A cap of 0 allows nothing. Caps never touch reads.
type Caps struct {
	// maxPendingGrantsPerSession bounds a session's open questions; above it the answer is a denial and nothing is
	// asked (requirement G-7). Between 0 and 100. Omitted in a profile: 5; elsewhere: the profile's.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxPendingGrantsPerSession *int32 `json:"maxPendingGrantsPerSession,omitempty"`

	// maxPendingGrants bounds a namespace's open questions. Between 0 and 1000. Omitted in a profile: 50; elsewhere:
	// the profile's.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	MaxPendingGrants *int32 `json:"maxPendingGrants,omitempty"`

	// maxSessions bounds a namespace's live sessions. Between 0 and 10000. Omitted in a profile: 40; elsewhere: the
	// profile's.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MaxSessions *int32 `json:"maxSessions,omitempty"`

	// maxChildSessionsPerSession bounds a session's children. Between 0 and 100. Omitted in a profile: 4; elsewhere:
	// the profile's.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxChildSessionsPerSession *int32 `json:"maxChildSessionsPerSession,omitempty"`

	// maxMutationsPerSession bounds a session's writes. Between 0 and 1000000. Omitted in a profile: 500; elsewhere:
	// the profile's.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	MaxMutationsPerSession *int32 `json:"maxMutationsPerSession,omitempty"`
}

// Retention says how long finished objects stay.
type Retention struct {
	// finishedGrantSeconds is how long a closed grant stays; the profile of the grant's namespace says it. A denied one
	// stays at least as long as its question rests. Between 60 and 31536000 (365 days). Omitted in a profile: 604800 (7
	// days); elsewhere: the profile's.
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=31536000
	FinishedGrantSeconds int32 `json:"finishedGrantSeconds,omitempty"`

	// endedSessionSeconds is how long an ended session stays. Between 60 and 31536000 (365 days). Omitted in a
	// profile: 86400 (1 day); elsewhere: the profile's.
	// +optional
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=31536000
	EndedSessionSeconds int32 `json:"endedSessionSeconds,omitempty"`
}

// AgentPolicyStatus is what the manager made of the spec.
type AgentPolicyStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// profile that the namespace is under. Omitted for an object that is a profile itself.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Profile string `json:"profile,omitempty"`

	// modelTier in force after joining with the profile and defaults.
	// +optional
	ModelTier ModelTier `json:"modelTier,omitempty"`

	// initiativeMode in force after joining with the profile and defaults.
	// +optional
	InitiativeMode InitiativeMode `json:"initiativeMode,omitempty"`

	// sessions that are live in the namespace. Omitted for a profile.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Sessions *int32 `json:"sessions,omitempty"`

	// pendingGrants that wait in the namespace. Omitted for a profile.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PendingGrants *int32 `json:"pendingGrants,omitempty"`

	// ruleStatuses say what became of each rule.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	RuleStatuses []RuleStatus `json:"ruleStatuses,omitempty"`

	// conditions are Ready and Stalled; conditions.go documents their reasons.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
