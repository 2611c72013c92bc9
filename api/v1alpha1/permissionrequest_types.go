package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RequestType says how exact a question is. Exact: one operation, named by its digest.
// +kubebuilder:validation:Enum=Exact
type RequestType string

// RequestExact is one operation, named by its digest.
const RequestExact RequestType = "Exact"

// PermissionRequest is the question: one exact operation of one session in one epoch (requirement G-2). Texts are lists
// of lines, so that kubectl describe stays readable; values of Secrets appear as keyed digests only.
type PermissionRequest struct {
	// type of the question.
	// +required
	Type RequestType `json:"type"`

	// digest names the operation: v1: and 64 hexadecimal digits of a keyed hash over its canonical form.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=67
	// +kubebuilder:validation:XValidation:rule="self.matches('^v1:[0-9a-f]{64}$')",message="must be v1: and 64 hexadecimal digits"
	Digest string `json:"digest"`

	// question counts the questions about this digest, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Question int32 `json:"question"`

	// stage that the grant is for; it authorizes no other (requirement G-1).
	// +required
	Stage Stage `json:"stage"`

	// session that asks.
	// +required
	Session GrantSession `json:"session,omitzero"`

	// requester is the authenticated caller.
	// +required
	Requester Requester `json:"requester,omitzero"`

	// operation asked about.
	// +required
	Operation GrantOperation `json:"operation,omitzero"`

	// projection names what was dropped before the digest, so that an approver sees what is not compared. Omitted:
	// nothing was dropped.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Projection []string `json:"projection,omitempty"`

	// change is what the operation does to its target, one line each, at most 64 lines of 512 characters.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must be a single line without control characters"
	Change []string `json:"change,omitempty"`

	// effects are what else happens, from the API server's own data, one line each, at most 32 lines of 512
	// characters. Omitted: none known.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must be a single line without control characters"
	Effects []string `json:"effects,omitempty"`

	// undo says how the operation can be taken back, one line each, at most 16 lines of 512 characters. Omitted:
	// nothing is known.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must be a single line without control characters"
	Undo []string `json:"undo,omitempty"`

	// facts that made the operation a question; only those that count.
	// +optional
	// +listType=map
	// +listMapKey=fact
	// +kubebuilder:validation:MaxItems=16
	Facts []GrantFact `json:"facts,omitempty"`

	// rules that made the operation a question, the deciding one first.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Rules []GrantRule `json:"rules,omitempty"`

	// requirements on the approvers; all must be met.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Requirements []GrantRequirement `json:"requirements"`

	// maxUses is how often the operation may have its effect. Always 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1
	MaxUses int32 `json:"maxUses"`

	// decideByTime is when the question expires unanswered; expiry never approves (requirement G-6).
	// +required
	DecideByTime metav1.Time `json:"decideByTime,omitzero"`

	// useWithinSeconds bounds the time from approval to use. Between 1 and 2592000 (30 days).
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	UseWithinSeconds int32 `json:"useWithinSeconds"`
}

// GrantSession is the session that asks, in one epoch.
type GrantSession struct {
	// namespace of the session.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// name of the session.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the session.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`

	// epoch of the session when it asked, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Epoch int64 `json:"epoch"`
}

// Requester is the authenticated caller that asks.
type Requester struct {
	// username as the API server authenticated it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Username string `json:"username"`

	// podName that the caller's token is bound to. Omitted: the token is bound to no pod.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PodName string `json:"podName,omitempty"`

	// podUID that the caller's token is bound to. Omitted: the token is bound to no pod.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	PodUID types.UID `json:"podUID,omitempty"`

	// adapter of the session. Omitted: none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Adapter string `json:"adapter,omitempty"`

	// onBehalfOf is the human user of the session.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	OnBehalfOf string `json:"onBehalfOf,omitempty"`
}

// GrantOperation is the operation asked about.
type GrantOperation struct {
	// capability that the operation uses.
	// +required
	Capability Capability `json:"capability"`

	// verb of the operation.
	// +required
	Verb Verb `json:"verb"`

	// target of the operation.
	// +required
	Target GrantTarget `json:"target,omitzero"`

	// summary of the operation in one line of at most 480 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=480
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must be a single line without control characters"
	Summary string `json:"summary"`

	// command of a connection, word by word: at most 64 words of 240 printable ASCII characters without a space each.
	// Omitted: there is none, or it cannot be told so; then an answer covers no other command.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=240
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[!-~]+$')",message="must be printable ASCII without a space"
	Command []string `json:"command,omitempty"`

	// manner is the keyed digest of how the operation is carried out, apart from its target and command: the options of a
	// deletion or connection, the content of an eviction. An answer of any width covers no other manner. Omitted: verb
	// and target say all.
	// +optional
	// +kubebuilder:validation:MaxLength=67
	// +kubebuilder:validation:XValidation:rule="self.matches('^v1:[0-9a-f]{64}$')",message="must be v1: and 64 hexadecimal digits"
	Manner string `json:"manner,omitempty"`
}

// GrantTarget is the object that an operation is about.
type GrantTarget struct {
	// group of the API. Omitted: the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// version of the API, as in "v1".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`

	// resource in the plural, without subresource.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Resource string `json:"resource"`

	// subresource of the resource. Omitted: the object itself.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Subresource string `json:"subresource,omitempty"`

	// namespace of the object. Omitted: the object is cluster-scoped.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name of the object. Omitted: the API server makes it (generateName).
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// uid of the object. Omitted: it does not exist yet.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid,omitempty"`
}

// GrantFact is one fact that counts. Its key sorts first, so that kubectl describe reads well.
type GrantFact struct {
	// fact that counts.
	// +required
	Fact Fact `json:"fact"`

	// value of the fact.
	// +required
	Value FactValue `json:"value"`

	// provenance of the fact.
	// +required
	Provenance Provenance `json:"provenance"`

	// why the fact has this value, in one line of at most 240 characters. Omitted: nothing to add.
	// +optional
	// +kubebuilder:validation:MaxLength=240
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must be a single line without control characters"
	Why string `json:"why,omitempty"`
}

// GrantRule is one rule that made the operation a question.
type GrantRule struct {
	// name of the rule as policy/rule, as in "baseline/destructive".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=384
	Name string `json:"name"`

	// class that the rule gives; never FORBIDDEN, because no grant opens that (requirement C-6).
	// +required
	// +kubebuilder:validation:XValidation:rule="self != 'FORBIDDEN'",message="must not be FORBIDDEN: no approval opens a forbidden operation"
	Class Class `json:"class"`

	// reason of the rule, one UpperCamelCase word, as in "DestructiveOperation".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason"`
}

// GrantRequirement is one condition on the approvers, copied from the policy when the question was asked.
type GrantRequirement struct {
	// name of the requirement, behind the policy that states it: standard/one-person.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=380
	Name string `json:"name"`

	// required is how many people must approve. Between 1 and 8.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	Required int32 `json:"required"`

	// approverGroups limits who counts to members of any of these groups. Omitted: anyone with the verb approve.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	ApproverGroups []string `json:"approverGroups,omitempty"`
}
