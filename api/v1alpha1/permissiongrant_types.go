package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PermissionGrant is one question of an agent, the answers of people, and what became of its uses. Only the manager
// creates grants. People answer by appending to spec.decisions, as status.approveCommand shows, and take an answer back
// with spec.revocation; both need the verb approve on permissiongrants in the grant's namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pgrant,categories=stepbeyond
// +kubebuilder:metadata:annotations="stepbeyond.dev/schema-revision=1"
// +kubebuilder:selectablefield:JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.target`
// +kubebuilder:printcolumn:name="Session",type=string,JSONPath=`.spec.request.session.name`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expires`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Approvals",type=string,JSONPath=`.status.approvals`,priority=1
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.spec.request.requester.onBehalfOf`,priority=1
// +kubebuilder:printcolumn:name="Uses",type=integer,JSONPath=`.status.usesLeft`,priority=1
// +kubebuilder:printcolumn:name="Rule",type=string,JSONPath=`.spec.request.rules[0].name`,priority=1
type PermissionGrant struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the question and its answers.
	// +required
	Spec PermissionGrantSpec `json:"spec,omitzero"`

	// status is where the question stands.
	// +optional
	Status PermissionGrantStatus `json:"status,omitzero"`
}

// PermissionGrantList is a list of PermissionGrants.
//
// +kubebuilder:object:root=true
type PermissionGrantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PermissionGrant `json:"items"`
}

// PermissionGrantSpec is the question and its answers.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.requesterComment) || (has(self.requesterComment) && self.requesterComment == oldSelf.requesterComment)",fieldPath=".requesterComment",message="is set once"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.revocation) || (has(self.revocation) && self.revocation == oldSelf.revocation)",fieldPath=".revocation",message="is set once: a revoked grant stays revoked"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.reopening) || (has(self.reopening) && self.reopening == oldSelf.reopening)",fieldPath=".reopening",message="is set once"
type PermissionGrantSpec struct {
	// request is the question: exact, written by the manager, immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: another operation is another question"
	Request PermissionRequest `json:"request,omitzero"`

	// requesterComment is the agent's own words, in one line of at most 480 characters: untrusted, shown as such, not
	// part of the digest, set once. Omitted: none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=480
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must be a single line without control characters"
	RequesterComment string `json:"requesterComment,omitempty"`

	// decisions are the answers, append-only, at most 16. Empty on create; the empty list is filled in so that a JSON
	// patch can always append with path /spec/decisions/-.
	// +optional
	// +listType=atomic
	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self) == 0",optionalOldSelf=true,message="must be empty when a grant is created: an answer follows a question"
	// +kubebuilder:validation:XValidation:rule="[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15].all(i, i >= size(oldSelf) || (i < size(self) && self[i] == oldSelf[i]))",message="are append-only: earlier answers can neither change nor go"
	Decisions []GrantDecision `json:"decisions"`

	// revocation takes the answer back, whatever it was; it stops new uses and does not undo one. Set once. Omitted:
	// the grant is not revoked.
	// +optional
	Revocation *Revocation `json:"revocation,omitempty"`

	// reopening lets the agent ask again before approvals.askAgainAfterSeconds are over. Only of a denied grant; set once.
	// Omitted: the denial rests for that time.
	// +optional
	Reopening *Reopening `json:"reopening,omitempty"`
}

// Verdict of an approver.
// +kubebuilder:validation:Enum=Approve;Deny
type Verdict string

// Verdicts of approvers. One denial closes the question.
const (
	VerdictApprove Verdict = "Approve"
	VerdictDeny    Verdict = "Deny"
)

// GrantDecision is one person's answer. A client sends verdict and shownDigest, and if it likes reason and scope; the
// system stamps everything else from the authenticated request (requirement G-4).
type GrantDecision struct {
	// approver is the authenticated username, stamped; another name than the caller's is refused.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Approver string `json:"approver,omitempty"`

	// approverUID is the authenticated user's uid, stamped. Omitted: the authenticator gives none.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ApproverUID string `json:"approverUID,omitempty"`

	// approverGroups are those of the approver's groups that met a requirement, stamped.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	ApproverGroups []string `json:"approverGroups,omitempty"`

	// relay is the username of the ServiceAccount that carried the answer, stamped. Omitted: the approver answered with a
	// credential of their own.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Relay string `json:"relay,omitempty"`

	// verdict of the approver.
	// +required
	Verdict Verdict `json:"verdict"`

	// shownDigest is the full digest of the question as the approver saw it; another one is refused.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=67
	// +kubebuilder:validation:XValidation:rule="self.matches('^v1:[0-9a-f]{64}$')",message="must be the full digest that was shown: v1: and 64 hexadecimal digits"
	ShownDigest string `json:"shownDigest"`

	// reason in the approver's words, in one line of at most 240 characters; the agent reads it after a denial.
	// Omitted: none given.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=240
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must be a single line without control characters"
	Reason string `json:"reason,omitempty"`

	// scope is how wide the approval is. Omitted: Exact.
	// +optional
	// +kubebuilder:default={type: Exact}
	Scope GrantScope `json:"scope,omitzero"`

	// decidedTime is when the API server took the answer, stamped.
	// +optional
	DecidedTime *metav1.Time `json:"decidedTime,omitempty"`

	// grantUID is the uid of the grant that was answered, stamped: under another uid the answer is void.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	GrantUID types.UID `json:"grantUID,omitempty"`

	// policyIdentity is the identity of the policies at the time of the answer, stamped.
	// +optional
	// +kubebuilder:validation:MaxLength=67
	// +kubebuilder:validation:XValidation:rule="self.matches('^v1:[0-9a-f]{64}$')",message="must be v1: and 64 hexadecimal digits"
	PolicyIdentity string `json:"policyIdentity,omitempty"`
}

// ScopeType is the width of an approval, from narrow to wide. Exact: the one operation asked about, once. Session: the same
// verb on the same object, while the session and its epoch last. TimeBoxed: the same for a time, if the approver likes also
// on objects and with commands that match a pattern.
// +kubebuilder:validation:Enum=Exact;Session;TimeBoxed
type ScopeType string

// Scopes, from narrow to wide.
const (
	ScopeExact     ScopeType = "Exact"
	ScopeSession   ScopeType = "Session"
	ScopeTimeBoxed ScopeType = "TimeBoxed"
)

// GrantScope is how wide an approval is. Whatever the width, an approval covers only operations of the question's session,
// requester, epoch, stage, verb, kind, namespace and manner that need a grant for no other reason, and no other approvers,
// than the question (requirement G-2); and never more than the policy lets an approver choose. Where several people have to
// approve, what all of them gave counts. Session ends with the session or its epoch, and at the latest useWithinSeconds
// after the last approval.
// +kubebuilder:validation:XValidation:rule="(self.type == 'TimeBoxed') == has(self.durationSeconds)",fieldPath=".durationSeconds",message="is what a TimeBoxed approval needs, and no other has"
// +kubebuilder:validation:XValidation:rule="self.type == 'TimeBoxed' || !has(self.match)",fieldPath=".match",message="only a TimeBoxed approval has patterns"
// +kubebuilder:validation:XValidation:rule="self.type != 'Exact' || !has(self.uses)",fieldPath=".uses",message="an Exact approval has one use"
type GrantScope struct {
	// type of the scope.
	// +required
	Type ScopeType `json:"type"`

	// durationSeconds is how long a TimeBoxed approval lasts, from the last approval. Between 1 and 604800 (7 days), and
	// at most the policy's maxTimeBoxSeconds. Omitted in every other scope.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	DurationSeconds int32 `json:"durationSeconds,omitempty"`

	// uses is how many operations a Session or TimeBoxed approval covers. Between 1 and 100, and at most the policy's
	// maxTimeBoxUses. Omitted: the policy's maxTimeBoxUses; of an Exact approval: 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Uses int32 `json:"uses,omitempty"`

	// match widens a TimeBoxed approval to other objects and commands. Omitted: only the object and the command of the
	// question.
	// +optional
	Match *ScopeMatch `json:"match,omitempty"`
}

// ScopeMatch are patterns. A * stands for any run of characters, also an empty one; everything else for itself; the whole
// name or command must match. In a command a * stays within its word, and a word with a * matches nothing that holds two
// dots in a row: so it reaches no further argument and, in a path, no folder above.
// +kubebuilder:validation:XValidation:rule="has(self.name) || has(self.commands)",message="needs name or commands: omit match to cover only what the question names"
type ScopeMatch struct {
	// name is a pattern of object names: lower-case letters, digits, - and . with at least one of them before the first *.
	// Omitted: the name in the question.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][-a-z0-9.*]*$')",message="must be lower-case letters, digits, - and . with * as wildcard, and begin with a letter or digit"
	Name string `json:"name,omitempty"`

	// commands are patterns of command lines, the words joined by one space each; any of them matches. Only for exec. A
	// command with a word that is empty or holds a space or a character beyond printable ASCII matches none.
	// Omitted: the command in the question.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=240
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[!-)+-~][ -~]*$')",message="must be printable ASCII and begin with neither * nor a space"
	Commands []string `json:"commands,omitempty"`
}

// Revocation takes an answer back.
type Revocation struct {
	// reason in the words of who revokes, in one line of at most 240 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=240
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must be a single line without control characters"
	Reason string `json:"reason"`

	// by is the authenticated username, stamped; another name than the caller's is refused.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by,omitempty"`

	// relay is the username of the ServiceAccount that carried it, stamped. Omitted: it came with a credential of its
	// author.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Relay string `json:"relay,omitempty"`

	// time is when the API server took the revocation, stamped.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// Reopening ends the rest of a denied question: the next request of the agent asks anew, and people answer anew.
type Reopening struct {
	// reason in the words of who reopens, in one line of at most 240 characters. Omitted: none given.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=240
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must be a single line without control characters"
	Reason string `json:"reason,omitempty"`

	// by is the authenticated username, stamped; another name than the caller's is refused.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	By string `json:"by,omitempty"`

	// relay is the username of the ServiceAccount that carried it, stamped. Omitted: it came with a credential of its
	// author.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Relay string `json:"relay,omitempty"`

	// time is when the API server took the reopening, stamped.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}
