package policy

import "time"

// SessionState is whether the session may act.
type SessionState string

const (
	// SessionActive sessions act within their authority.
	SessionActive SessionState = "Active"
	// SessionMissing: no session covers the caller. The zero value means the same.
	SessionMissing SessionState = "Missing"
	// SessionAmbiguous: more than one session could be meant.
	SessionAmbiguous SessionState = "Ambiguous"
	// SessionEnded: the deadline has passed or a person ended it.
	SessionEnded SessionState = "Ended"
	// SessionSuspended sessions read and do not write.
	SessionSuspended SessionState = "Suspended"
)

// SessionView is everything about the caller's session that a decision depends on.
type SessionView struct {
	State SessionState
	// StateReason is the vocabulary word that explains a state other than Active.
	StateReason Reason
	// StateDetail completes the sentence of StateReason: literal, trusted text.
	StateDetail string

	Namespace string
	Name      string
	// UID is empty while the session object does not exist yet; nothing that needs a grant can run then.
	UID   string
	Epoch int64
	// Username is the authenticated caller.
	Username  string
	Authority Authority
	// Deadline ends the session; the zero time means no deadline.
	Deadline time.Time
	// StrictScope: the user limited the work to what was asked, so optional actions are not run (requirement S-2).
	StrictScope bool
	// Hold is the steering input that old-plan work waits for; nil when nothing is held.
	Hold *Hold
	// Constraint is the structured constraint of a steering input that this operation breaks; nil when it breaks none.
	Constraint *Constraint
	// Grant is the newest question about this exact operation; nil when none was asked or looked for.
	Grant *Grant
	// Wide are approvals of other operations that may cover this one too; nil when none was looked for.
	Wide *Wide
}

// Hold is a change of plan that the model has not reconciled yet (requirement R-1).
type Hold struct {
	// Namespace and Name of the steering input.
	Namespace, Name string
	// Author is the stamped name of the person; Since is when the input was accepted.
	Author string
	Since  time.Time
}

// Constraint is what a person took away by steering. It outlives every reconciliation (requirement R-6).
type Constraint struct {
	// Namespace and Name of the steering input, and the path of the constraint in it, such as constraints.forbid[0].
	Namespace, Name, Path string
}

// Authority is what the session may do at most; the union of its Kubernetes selectors bounds Kubernetes writes.
type Authority struct {
	Stages       []Stage
	Capabilities []Capability
	// Kubernetes narrows what the ServiceAccount's RBAC allows; empty means no narrowing.
	Kubernetes []KubernetesSelector
	// Namespaces that the session may write to.
	Namespaces []string
}

// GrantState is the life of a question.
type GrantState string

const (
	GrantPending    GrantState = "Pending"
	GrantApproved   GrantState = "Approved"
	GrantDenied     GrantState = "Denied"
	GrantExpired    GrantState = "Expired"
	GrantRevoked    GrantState = "Revoked"
	GrantSuperseded GrantState = "Superseded"
	GrantStale      GrantState = "Stale"
	GrantExhausted  GrantState = "Exhausted"
)

// Grant is what the engine sees of a PermissionGrant. All that binds it is compared here, so that one place decides
// what a grant is good for (requirement G-2).
type Grant struct {
	Name      string
	State     GrantState
	Digest    string
	Stage     Stage
	Requester string
	// SessionUID and Epoch bind the grant to one session under one plan.
	SessionUID string
	Epoch      int64
	// PolicyIdentity was bound at the last approval; empty before.
	PolicyIdentity string
	// Expiration ends the question while it is pending and the use once it is approved.
	Expiration time.Time
	// Closed is when the state that closes the grant was reached (a denial, the last use); zero otherwise.
	Closed   time.Time
	UsesLeft int
	// Approvals and Required count toward the requirement that is furthest from being met.
	Approvals int
	Required  int
	// ClosedBy and ClosedWhy explain a denial: the approver's name and screened words.
	ClosedBy  string
	ClosedWhy string
	// Reopened: a person ended the rest of a denial, so the operation is asked about anew at once (requirement G-7).
	Reopened bool
	// CoveredBy names the grant whose wider approval took this question's place; empty when none did.
	CoveredBy string
	// Width of the approval; nil when it covers the exact operation alone.
	Width *Width
}
