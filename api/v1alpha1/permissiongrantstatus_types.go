package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GrantState is where a grant stands. Pending and Approved are open; the others are closed for good.
// +kubebuilder:validation:Enum=Pending;Approved;Denied;Expired;Revoked;Superseded;Stale;Exhausted
type GrantState string

// Grant states.
const (
	// GrantPending waits for answers.
	GrantPending GrantState = "Pending"
	// GrantApproved may be used.
	GrantApproved GrantState = "Approved"
	// GrantDenied was refused by an approver.
	GrantDenied GrantState = "Denied"
	// GrantExpired was not answered, or not used, in time.
	GrantExpired GrantState = "Expired"
	// GrantRevoked was taken back by a person.
	GrantRevoked GrantState = "Revoked"
	// GrantSuperseded lost its question: another epoch, an ended session, a newer question, a lower class.
	GrantSuperseded GrantState = "Superseded"
	// GrantStale was approved under policies that have changed.
	GrantStale GrantState = "Stale"
	// GrantExhausted has no use left.
	GrantExhausted GrantState = "Exhausted"
)

// PermissionGrantStatus is where the question stands.
type PermissionGrantStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// state in one word. Omitted counts as Pending.
	// +optional
	State GrantState `json:"state,omitempty"`

	// reason of the state: a reason of the conditions in conditions.go.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Reason ConditionReason `json:"reason,omitempty"`

	// target is the operation for a printer column, as in "delete pvc/data-postgres-0".
	// +optional
	// +kubebuilder:validation:MaxLength=480
	Target string `json:"target,omitempty"`

	// approvals is given and needed approvals for a printer column, as in "1/2", because a column cannot divide.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Approvals string `json:"approvals,omitempty"`

	// approveCommand is the kubectl command that approves exactly this question. Omitted when nothing is left to
	// answer.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ApproveCommand string `json:"approveCommand,omitempty"`

	// expirationTime is when the question expires while it is Pending, and when the last use must have begun while it
	// is Approved. Omitted once the grant is closed.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`

	// expires is expirationTime for a printer column, as in "12-01 10:05Z", because a date column prints <invalid> for
	// a time to come. Omitted once the grant is closed.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Expires string `json:"expires,omitempty"`

	// boundPolicies are the policy objects behind the approval, bound at the last approval. Omitted before.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	BoundPolicies []PolicyReference `json:"boundPolicies,omitempty"`

	// boundPolicyIdentity is the identity of the policies behind the approval, the baseline included. Omitted before
	// the last approval.
	// +optional
	// +kubebuilder:validation:MaxLength=67
	// +kubebuilder:validation:XValidation:rule="self.matches('^v1:[0-9a-f]{64}$')",message="must be v1: and 64 hexadecimal digits"
	BoundPolicyIdentity string `json:"boundPolicyIdentity,omitempty"`

	// usesLeft is how many uses have not begun. Omitted before approval.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	UsesLeft *int32 `json:"usesLeft,omitempty"`

	// uses that have begun; each has its own life. Omitted: none.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=116
	Uses []GrantUse `json:"uses,omitempty"`

	// coveredBy is the grant of the session whose wider approval covers what was asked, so that nobody needs to answer.
	// Omitted: there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CoveredBy string `json:"coveredBy,omitempty"`

	// similar counts earlier questions like this one. Omitted: there is none.
	// +optional
	Similar *SimilarGrants `json:"similar,omitempty"`

	// notices are what endpoints of the manager's configuration were told about this grant, so that nobody is told twice.
	// Omitted: none was told anything.
	// +optional
	// +listType=map
	// +listMapKey=endpoint
	// +listMapKey=event
	// +kubebuilder:validation:MaxItems=32
	Notices []GrantNotice `json:"notices,omitempty"`

	// conditions are Decided, Approved, Settled and Expiring; conditions.go documents their reasons.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SimilarGrants counts the questions of the same verb and kind in the same namespace that were decided before this one was
// asked, as far as their grants are still there.
type SimilarGrants struct {
	// approved questions.
	// +required
	// +kubebuilder:validation:Minimum=0
	Approved int32 `json:"approved"`

	// denied questions.
	// +required
	// +kubebuilder:validation:Minimum=0
	Denied int32 `json:"denied"`

	// sinceTime is when the oldest of them was asked.
	// +required
	SinceTime metav1.Time `json:"sinceTime,omitzero"`
}

// GrantNoticeEvent is what people are told about a grant. GrantPending: a question was asked. GrantExpiring: the question, or
// the approval, ends soon.
// +kubebuilder:validation:Enum=GrantPending;GrantExpiring
type GrantNoticeEvent string

// Events that people are told of.
const (
	NoticeGrantPending  GrantNoticeEvent = "GrantPending"
	NoticeGrantExpiring GrantNoticeEvent = "GrantExpiring"
)

// GrantNotice is one message that an endpoint took.
type GrantNotice struct {
	// endpoint that was told, by its name in the manager's configuration.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Endpoint string `json:"endpoint"`

	// event that it was told of.
	// +required
	Event GrantNoticeEvent `json:"event"`

	// sentTime is when it took the message.
	// +required
	SentTime metav1.Time `json:"sentTime,omitzero"`

	// expirationTime that a GrantExpiring was about: a question that is approved gets another one. Omitted for every other
	// event.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// UseOutcome is what became of a use. Reserved: an attempt was let through and its effect is not known yet. Consumed:
// the effect was seen. Released: it is proven that there was no effect. Unknown: it cannot be told, so the use is not
// given back.
// +kubebuilder:validation:Enum=Reserved;Consumed;Released;Unknown
type UseOutcome string

// Use outcomes.
const (
	UseReserved UseOutcome = "Reserved"
	UseConsumed UseOutcome = "Consumed"
	UseReleased UseOutcome = "Released"
	UseUnknown  UseOutcome = "Unknown"
)

// GrantUse is one use of a grant (requirement G-5).
type GrantUse struct {
	// index of the use, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Index int32 `json:"index"`

	// outcome of the use.
	// +required
	Outcome UseOutcome `json:"outcome"`

	// digest of the exact operation that used the grant. Omitted: the operation asked about.
	// +optional
	// +kubebuilder:validation:MaxLength=67
	// +kubebuilder:validation:XValidation:rule="self.matches('^v1:[0-9a-f]{64}$')",message="must be v1: and 64 hexadecimal digits"
	Digest string `json:"digest,omitempty"`

	// name of the object that the use acted on. Omitted: the name in the question.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// change is what a use of another digest than the question's does, at most 8 lines, kept while the use is Reserved.
	// Omitted: it has more lines, or needs none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must be a single line without control characters"
	Change []string `json:"change,omitempty"`

	// decisionID of the engine decision that let the first attempt through.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	DecisionID string `json:"decisionID,omitempty"`

	// attempts that were let through, in order; at most 8.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Attempts []UseAttempt `json:"attempts"`

	// reservedTime is when the use began.
	// +required
	ReservedTime metav1.Time `json:"reservedTime,omitzero"`

	// settledTime is when the outcome became final. Omitted while Reserved.
	// +optional
	SettledTime *metav1.Time `json:"settledTime,omitempty"`

	// effect that was seen, or why it cannot be told, in one line of at most 240 characters. Omitted while Reserved.
	// +optional
	// +kubebuilder:validation:MaxLength=240
	Effect string `json:"effect,omitempty"`
}

// UseAttempt is one admission review that was let through under a use.
type UseAttempt struct {
	// reviewUID is the uid of the admission review.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ReviewUID types.UID `json:"reviewUID"`

	// targetUID is the uid of the target. Omitted: it did not exist.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	TargetUID types.UID `json:"targetUID,omitempty"`

	// oldResourceVersion of the target before the attempt, of a creation that of its resource. Omitted: it has none, or
	// the system does not read it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	OldResourceVersion string `json:"oldResourceVersion,omitempty"`

	// objectDigest is the keyed digest of the object that the attempt would leave, without what servers and controllers
	// write by themselves; an object of the same digest shows that the attempt took effect. Omitted: the attempt leaves
	// no object, or one that the system does not read.
	// +optional
	// +kubebuilder:validation:MaxLength=67
	ObjectDigest string `json:"objectDigest,omitempty"`

	// oldObjectDigest is that of the object before the attempt. Omitted as objectDigest is.
	// +optional
	// +kubebuilder:validation:MaxLength=67
	OldObjectDigest string `json:"oldObjectDigest,omitempty"`

	// time of the attempt.
	// +required
	Time metav1.Time `json:"time,omitzero"`
}
