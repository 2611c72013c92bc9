package v1alpha1

import "k8s.io/apimachinery/pkg/types"

// Class says how much consent an operation needs (requirement C-1). Ordered from loosest to strictest.
// +kubebuilder:validation:Enum=AUTO;AUTO_WITH_DISCLOSURE;ASK;FORBIDDEN
type Class string

// Classes in rising order.
const (
	ClassAuto               Class = "AUTO"
	ClassAutoWithDisclosure Class = "AUTO_WITH_DISCLOSURE"
	ClassAsk                Class = "ASK"
	ClassForbidden          Class = "FORBIDDEN"
)

// RuleClass is a class that a rule can raise an operation to; rules only tighten (requirement C-3).
// +kubebuilder:validation:Enum=ASK;FORBIDDEN
type RuleClass string

// Classes of rules.
const (
	RuleClassAsk       RuleClass = "ASK"
	RuleClassForbidden RuleClass = "FORBIDDEN"
)

// Enforcement says what a matching rule does: Enforce raises the class, Warn adds a warning to the answer, Audit only
// counts.
// +kubebuilder:validation:Enum=Enforce;Warn;Audit
type Enforcement string

// Enforcements.
const (
	EnforcementEnforce Enforcement = "Enforce"
	EnforcementWarn    Enforcement = "Warn"
	EnforcementAudit   Enforcement = "Audit"
)

// Verb is what happens to an object, as admission sees it; read is seen where the authorization webhook is in use.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self in ['create', 'update', 'delete', 'connect', 'read']",message="must be create, update, delete, connect or read",messageExpression="self == 'patch' ? 'patch is not a verb here, because admission reports a patch as an update: write update' : self in ['get', 'list', 'watch'] ? self + ' is not a verb here: write read, which is get, list and watch' : 'must be create, update, delete, connect or read'"
type Verb string

// Verbs. A patch arrives at admission as an update (or as a create, for an apply to a missing object), so there is no
// patch.
const (
	VerbCreate  Verb = "create"
	VerbUpdate  Verb = "update"
	VerbDelete  Verb = "delete"
	VerbConnect Verb = "connect"
	// VerbRead is get, list and watch. Only the authorization webhook sees it.
	VerbRead Verb = "read"
)

// Origin says who made the target of an operation. Only a verified created-by stamp gives ThisSession; Unknown counts
// as foreign.
// +kubebuilder:validation:Enum=ThisSession;OtherSession;Person;Controller;Unknown
type Origin string

// Origins.
const (
	OriginThisSession  Origin = "ThisSession"
	OriginOtherSession Origin = "OtherSession"
	OriginPerson       Origin = "Person"
	OriginController   Origin = "Controller"
	OriginUnknown      Origin = "Unknown"
)

// ModelTier is the size of the model behind an agent. It sets scaffolding only, never a class (requirement T-1).
// +kubebuilder:validation:Enum=small;medium;large
type ModelTier string

// Model tiers.
const (
	ModelTierSmall  ModelTier = "small"
	ModelTierMedium ModelTier = "medium"
	ModelTierLarge  ModelTier = "large"
)

// InitiativeMode says how many optional actions an agent may add on its own (requirement N-2). It never changes a
// class; strict means none.
// +kubebuilder:validation:Enum=fast;standard;exploratory;strict
type InitiativeMode string

// Initiative modes.
const (
	InitiativeModeFast        InitiativeMode = "fast"
	InitiativeModeStandard    InitiativeMode = "standard"
	InitiativeModeExploratory InitiativeMode = "exploratory"
	InitiativeModeStrict      InitiativeMode = "strict"
)

// Stage is one of four separate permissions; a grant for one authorizes no other (requirement G-1).
// +kubebuilder:validation:Enum=understand;propose;execute;publish
type Stage string

// Stages in rising order.
const (
	StageUnderstand Stage = "understand"
	StagePropose    Stage = "propose"
	StageExecute    Stage = "execute"
	StagePublish    Stage = "publish"
)

// Capability is an operation that a runtime adapter offers (requirement A-1). Every Kubernetes write is execute_local.
// +kubebuilder:validation:Enum=read_context;read_project;execute_local;request_permission;publish_external;read_user_model;write_user_model;record_evidence
type Capability string

// Capabilities.
const (
	CapabilityReadContext       Capability = "read_context"
	CapabilityReadProject       Capability = "read_project"
	CapabilityExecuteLocal      Capability = "execute_local"
	CapabilityRequestPermission Capability = "request_permission"
	CapabilityPublishExternal   Capability = "publish_external"
	CapabilityReadUserModel     Capability = "read_user_model"
	CapabilityWriteUserModel    Capability = "write_user_model"
	CapabilityRecordEvidence    Capability = "record_evidence"
)

// Fact is a property of an operation that its class rests on.
// +kubebuilder:validation:Enum=Reversible;Local;InScope;External;Sends;Cost;Credentials;Security;Destructive;Unbounded;EscalatesAuthority;ExfiltratesSecret;PersistsSensitiveMemory;OutsideAuthority;MaterialAssumption;Ambiguous
type Fact string

// Facts.
const (
	FactReversible              Fact = "Reversible"
	FactLocal                   Fact = "Local"
	FactInScope                 Fact = "InScope"
	FactExternal                Fact = "External"
	FactSends                   Fact = "Sends"
	FactCost                    Fact = "Cost"
	FactCredentials             Fact = "Credentials"
	FactSecurity                Fact = "Security"
	FactDestructive             Fact = "Destructive"
	FactUnbounded               Fact = "Unbounded"
	FactEscalatesAuthority      Fact = "EscalatesAuthority"
	FactExfiltratesSecret       Fact = "ExfiltratesSecret"
	FactPersistsSensitiveMemory Fact = "PersistsSensitiveMemory"
	FactOutsideAuthority        Fact = "OutsideAuthority"
	FactMaterialAssumption      Fact = "MaterialAssumption"
	FactAmbiguous               Fact = "Ambiguous"
)

// FactValue is the three-valued state of a fact. Unknown counts as its worst value up to ASK (requirement C-4).
// +kubebuilder:validation:Enum=Present;Absent;Unknown
type FactValue string

// Values of facts.
const (
	FactPresent FactValue = "Present"
	FactAbsent  FactValue = "Absent"
	FactUnknown FactValue = "Unknown"
)

// Provenance says who vouches for a fact, from weakest to strongest. Declared facts only raise a class.
// +kubebuilder:validation:Enum=Declared;Parsed;Catalogued;Authoritative
type Provenance string

// Provenances.
const (
	ProvenanceDeclared      Provenance = "Declared"
	ProvenanceParsed        Provenance = "Parsed"
	ProvenanceCatalogued    Provenance = "Catalogued"
	ProvenanceAuthoritative Provenance = "Authoritative"
)

// ServiceAccountReference names exactly one ServiceAccount; there are no wildcards.
type ServiceAccountReference struct {
	// namespace of the ServiceAccount.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!self.contains('*')",message="must be one exact namespace, without *"
	Namespace string `json:"namespace"`

	// name of the ServiceAccount.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.contains('*')",message="must be one exact name, without *"
	Name string `json:"name"`
}

// PolicyReference is one generation of one policy object: a part of a policy identity.
type PolicyReference struct {
	// kind of the policy: ClusterAgentPolicy or AgentPolicy.
	// +required
	// +kubebuilder:validation:Enum=ClusterAgentPolicy;AgentPolicy
	Kind string `json:"kind"`

	// namespace of an AgentPolicy. Omitted for a ClusterAgentPolicy.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name of the policy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the policy: a policy re-created under the same name is another one.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`

	// generation of the policy's spec.
	// +required
	// +kubebuilder:validation:Minimum=1
	Generation int64 `json:"generation"`
}

// CompilationTarget says where a rule is enforced. AdmissionPolicy: in a ValidatingAdmissionPolicy of the floor, also
// while the operator is down (requirement K-6). InProcess: in the enforcing webhook.
// +kubebuilder:validation:Enum=AdmissionPolicy;InProcess
type CompilationTarget string

// Compilation targets.
const (
	CompiledToAdmissionPolicy CompilationTarget = "AdmissionPolicy"
	CompiledToInProcess       CompilationTarget = "InProcess"
)

// RuleStatus is what became of one rule of spec.
type RuleStatus struct {
	// name of the rule in spec.rules.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// compiledTo says where the rule is enforced.
	// +required
	CompiledTo CompilationTarget `json:"compiledTo"`

	// reason why the rule is enforced in process. Omitted for AdmissionPolicy and in an AgentPolicy, whose rules all are.
	// +optional
	Reason InProcessReason `json:"reason,omitempty"`

	// message says the same to people, in one line of at most 256 characters. Omitted: there is nothing to add.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// InProcessReason is why a rule of a ClusterAgentPolicy is enforced in process. NotForbidden: its class is ASK, and only
// the manager can ask. NotEnforced: its enforcement is Warn or Audit. NoRequest: it selects no request that admission
// sees. ReadsOrigin: it selects by origin, which only the manager knows. NotPortable: its expression reads or calls what
// admission policies do not have, or have with another meaning. TooLarge: it does not fit beside the others.
// NotInForce: this generation of the object, or the admission policy with it, is not in force.
// +kubebuilder:validation:Enum=NotForbidden;NotEnforced;NoRequest;ReadsOrigin;NotPortable;TooLarge;NotInForce
type InProcessReason string

// Reasons of InProcess.
const (
	InProcessNotForbidden InProcessReason = "NotForbidden"
	InProcessNotEnforced  InProcessReason = "NotEnforced"
	InProcessNoRequest    InProcessReason = "NoRequest"
	InProcessReadsOrigin  InProcessReason = "ReadsOrigin"
	InProcessNotPortable  InProcessReason = "NotPortable"
	InProcessTooLarge     InProcessReason = "TooLarge"
	InProcessNotInForce   InProcessReason = "NotInForce"
)
