package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AgentSession is one agent at work: its identity, its user, its authority and its deadline. It is made from a session
// template or opened by a person. Everything but labels, deadlineTime and, downward, the budgets is immutable.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=asess,categories=stepbeyond
// +kubebuilder:metadata:annotations="stepbeyond.dev/schema-revision=1"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",fieldPath=".metadata",message="name: has at most 63 characters, because it is a label of the session's grants"
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.spec.userName`
// +kubebuilder:printcolumn:name="Tier",type=string,JSONPath=`.spec.modelTier`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Guarantee",type=string,JSONPath=`.status.guarantee`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.pendingGrants`
// +kubebuilder:printcolumn:name="Epoch",type=integer,JSONPath=`.status.epoch`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.initiativeMode`,priority=1
// +kubebuilder:printcolumn:name="SA",type=string,JSONPath=`.spec.identity.serviceAccountName`,priority=1
// +kubebuilder:printcolumn:name="Pod",type=string,JSONPath=`.status.livePods[0].name`,priority=1
// +kubebuilder:printcolumn:name="Deadline",type=string,JSONPath=`.spec.deadlineTime`,priority=1
type AgentSession struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the session was opened with.
	// +required
	Spec AgentSessionSpec `json:"spec,omitzero"`

	// status is what became of the session.
	// +optional
	Status AgentSessionStatus `json:"status,omitzero"`
}

// AgentSessionList is a list of AgentSessions.
//
// +kubebuilder:object:root=true
type AgentSessionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AgentSession `json:"items"`
}

// AgentSessionSpec is what the session was opened with.
// +kubebuilder:validation:XValidation:rule="has(self.adapter) == has(oldSelf.adapter) && (!has(self.adapter) || self.adapter == oldSelf.adapter)",fieldPath=".adapter",message="is immutable: open another session"
// +kubebuilder:validation:XValidation:rule="has(self.parent) == has(oldSelf.parent) && (!has(self.parent) || self.parent == oldSelf.parent)",fieldPath=".parent",message="is immutable: open another session"
type AgentSessionSpec struct {
	// identity that the session belongs to. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: open another session"
	Identity SessionIdentity `json:"identity,omitzero"`

	// userName is the human whose work the session does. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: open another session"
	UserName string `json:"userName"`

	// modelTier of the model behind the agent. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: open another session"
	ModelTier ModelTier `json:"modelTier"`

	// initiativeMode of the session. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: open another session"
	InitiativeMode InitiativeMode `json:"initiativeMode"`

	// adapter that the agent runs under. Immutable. Omitted: none; then the session is runtime-backed for admission
	// only.
	// +optional
	Adapter *Adapter `json:"adapter,omitempty"`

	// parent is the session of the same namespace whose agent made this one's work. A child has the parent's user, tier
	// and mode, a strict part of its authority, and no later deadline; the suspension and the end of any ancestor are
	// also its own. Immutable. Omitted: the session has no parent.
	// +optional
	Parent *ParentSession `json:"parent,omitempty"`

	// authority of the session. Budgets may shrink, everything else is immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.stages == oldSelf.stages",fieldPath=".stages",message="is immutable: open another session"
	// +kubebuilder:validation:XValidation:rule="self.capabilities == oldSelf.capabilities",fieldPath=".capabilities",message="is immutable: open another session"
	// +kubebuilder:validation:XValidation:rule="has(self.kubernetes) == has(oldSelf.kubernetes) && (!has(self.kubernetes) || self.kubernetes == oldSelf.kubernetes)",fieldPath=".kubernetes",message="is immutable: open another session"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.budgets) || !has(oldSelf.budgets.maxMutations) || (has(self.budgets) && has(self.budgets.maxMutations) && self.budgets.maxMutations <= oldSelf.budgets.maxMutations)",fieldPath=".budgets.maxMutations",message="may only shrink"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.budgets) || !has(oldSelf.budgets.maxChildSessions) || (has(self.budgets) && has(self.budgets.maxChildSessions) && self.budgets.maxChildSessions <= oldSelf.budgets.maxChildSessions)",fieldPath=".budgets.maxChildSessions",message="may only shrink"
	Authority Authority `json:"authority,omitzero"`

	// deadlineTime ends the session. A session always ends: one made from a template has maxAgeSeconds of the template.
	// +required
	DeadlineTime metav1.Time `json:"deadlineTime,omitzero"`
}

// IdentityType says what kind of authenticated caller a session belongs to.
// +kubebuilder:validation:Enum=ServiceAccount;User
type IdentityType string

// Identity types.
const (
	IdentityServiceAccount IdentityType = "ServiceAccount"
	IdentityUser           IdentityType = "User"
)

// SessionIdentity is the authenticated caller that a session belongs to; a union on type.
// +kubebuilder:validation:XValidation:rule="self.type == 'ServiceAccount' ? has(self.serviceAccountName) : !has(self.serviceAccountName)",fieldPath=".serviceAccountName",message="is required with type ServiceAccount and not allowed with type User"
// +kubebuilder:validation:XValidation:rule="self.type == 'User' ? has(self.userName) : !has(self.userName)",fieldPath=".userName",message="is required with type User and not allowed with type ServiceAccount"
// +kubebuilder:validation:XValidation:rule="self.type == 'ServiceAccount' || !has(self.podName)",fieldPath=".podName",message="is not allowed with type User: a user has no pod"
// +kubebuilder:validation:XValidation:rule="self.type == 'ServiceAccount' || !has(self.rootOwner)",fieldPath=".rootOwner",message="is not allowed with type User: a user has no workload"
// +kubebuilder:validation:XValidation:rule="has(self.podName) == has(self.podUID)",fieldPath=".podUID",message="podName and podUID are set together: a name alone would also fit the next pod"
// +kubebuilder:validation:XValidation:rule="!has(self.podName) || !has(self.rootOwner)",fieldPath=".rootOwner",message="is not allowed beside podName: a session follows a workload or a pod"
type SessionIdentity struct {
	// type of the identity.
	// +required
	Type IdentityType `json:"type"`

	// serviceAccountName with type ServiceAccount; it lives in the session's namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.contains('*')",message="must be one exact name, without *"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// podName with type ServiceAccount and lifetime Pod. Omitted together with rootOwner: the pods of the
	// ServiceAccount, one live pod at a time.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PodName string `json:"podName,omitempty"`

	// podUID of the pod in podName.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	PodUID types.UID `json:"podUID,omitempty"`

	// rootOwner with type ServiceAccount and lifetime Workload: the session of all pods under this owner.
	// +optional
	RootOwner *RootOwner `json:"rootOwner,omitempty"`

	// userName with type User: the exact username as the API server authenticates it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="must not start with system: (use type ServiceAccount for a ServiceAccount)"
	UserName string `json:"userName,omitempty"`
}

// RootOwner is the last object of a pod's controller chain, in the session's namespace.
type RootOwner struct {
	// kind of the owner, as in "Job".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// name of the owner.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the owner: one re-created under the same name never meets the old session.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`
}

// ParentSession is the parent of a child session.
type ParentSession struct {
	// name of the parent, in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// uid of the parent: a session made anew under its name is nobody's parent.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`
}

// SessionState is where a session stands; derived from conditions, for people and columns. Suspended: reads go on,
// writes are held. Ended: every governed write is refused.
// +kubebuilder:validation:Enum=Active;Suspended;Ended
type SessionState string

// Session states.
const (
	SessionActive    SessionState = "Active"
	SessionSuspended SessionState = "Suspended"
	SessionEnded     SessionState = "Ended"
)

// Guarantee is what the session can rely on; computed, never taken from a client (requirement M-1).
// +kubebuilder:validation:Enum=prompt-only;runtime-backed;verified
type Guarantee string

// Guarantees in rising order.
const (
	GuaranteePromptOnly    Guarantee = "prompt-only"
	GuaranteeRuntimeBacked Guarantee = "runtime-backed"
	GuaranteeVerified      Guarantee = "verified"
)

// LostGuarantee names something that the session cannot rely on (requirement M-2). Enforcement: webhook and floor are
// not proven in force, or the profile only audits. Policy: no valid policy is loaded. Confinement: RBAC lets the
// session's identity step around admission or read Secrets (requirement K-10). Context, Memory, ProtectedRecord: not
// provided, because the session has no adapter that provides them.
// +kubebuilder:validation:Enum=Enforcement;Policy;Confinement;Context;Memory;ProtectedRecord
type LostGuarantee string

// Lost guarantees.
const (
	LostEnforcement     LostGuarantee = "Enforcement"
	LostPolicy          LostGuarantee = "Policy"
	LostConfinement     LostGuarantee = "Confinement"
	LostContext         LostGuarantee = "Context"
	LostMemory          LostGuarantee = "Memory"
	LostProtectedRecord LostGuarantee = "ProtectedRecord"
)

// AgentSessionStatus is what became of the session.
type AgentSessionStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// state in one word. Omitted: the session has not been seen by its controller yet.
	// +optional
	State SessionState `json:"state,omitempty"`

	// guarantee that holds now. Omitted: none was computed yet.
	// +optional
	Guarantee Guarantee `json:"guarantee,omitempty"`

	// degraded names every guarantee that is lost or not provided. Omitted: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Degraded []LostGuarantee `json:"degraded,omitempty"`

	// createdBy is the authenticated username that created the session.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	CreatedBy string `json:"createdBy,omitempty"`

	// userSource says where spec.userName came from.
	// +optional
	// +kubebuilder:validation:Enum=Fixed;PodAnnotation;Explicit
	UserSource UserSource `json:"userSource,omitempty"`

	// livePods are the pods that the session covers now, at most 100; replicas of one Deployment share a session.
	// Omitted: none.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +kubebuilder:validation:MaxItems=100
	LivePods []LivePod `json:"livePods,omitempty"`

	// policies are the policy objects that count for the session now.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Policies []PolicyReference `json:"policies,omitempty"`

	// epoch of the session, from 1; a higher epoch supersedes every grant of a lower one (requirement R-5). Omitted
	// counts as 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Epoch int64 `json:"epoch,omitempty"`

	// startTime is when the session began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// endTime is when the session ended. Omitted: it has not.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`

	// pendingGrants counts the session's open questions in all namespaces.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PendingGrants *int32 `json:"pendingGrants,omitempty"`

	// conditions are Ready, GuaranteeMet and Stalled; conditions.go documents their reasons.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LivePod is a pod that a session covers now.
type LivePod struct {
	// name of the pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the pod.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`
}
