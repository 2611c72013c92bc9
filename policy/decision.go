package policy

import "time"

// Decision is the answer to one operation.
type Decision struct {
	Class    Class
	Verdict  Verdict
	Reason   Reason
	Boundary Boundary
	// Stage that a grant for the operation is for.
	Stage Stage
	// Details are all reasons for the class, the one that the message names first (requirement C-5).
	Details []Detail
	// WouldBe are rules in Warn or Audit that would have tightened the class.
	WouldBe []WouldBe
	// Disclosures are sentences to be shown when the operation runs.
	Disclosures []string
	// Approvals is the joined setting for a question about this operation; Requirements only the matching ones.
	Approvals Approvals
	// AskNew tells the front door to open a new question.
	AskNew bool
	// Grant names the question or approval that the message speaks of; nil when there is none.
	Grant *GrantRef
	// Recovery overrides the reason's next step; empty for the default sentence.
	Recovery string
	// Standing explains the state of a session or of a missing policy in literal text; may be empty.
	Standing string
	// Policies that contributed, in a fixed order, and the identity over them and the baseline; of an ASK only, because
	// nothing else is bound to them.
	Policies       []PolicyID
	PolicyIdentity string
}

// Detail is one reason for the class.
type Detail struct {
	// Code is a fact's name, "Rule", "Uncatalogued" or "StageNotGranted".
	Code string
	// Rule is the rule or catalogue entry, as policy/name; empty for parsed facts.
	Rule       string
	Fact       string
	Presence   Presence
	Provenance Provenance
	Class      Class
	Why        string
	Recovery   string
}

// Codes of details that are not facts.
const (
	CodeRule            = "Rule"
	CodeUncatalogued    = "Uncatalogued"
	CodeStageNotGranted = "StageNotGranted"
)

// WouldBe is what a rule in Warn or Audit would have done.
type WouldBe struct {
	Rule        string
	Class       Class
	Enforcement Enforcement
	Detail      string
}

// GrantRef is what a message says about a grant. The front door completes it.
type GrantRef struct {
	Namespace string
	Name      string
	Until     time.Time
	Approvals int
	Required  int
	// Waiting tells that the question was open before this request.
	Waiting bool
	// Successor is the question that was opened in its place; empty when none was.
	Successor string
	// Path, Approved and Asked tell how the request differs from what the grant approves; values are safe to show.
	Path, Approved, Asked string
	// ClosedBy, ClosedWhy and Closed explain a denial or the last use.
	ClosedBy, ClosedWhy string
	Closed              time.Time
	// AskAgain is when a denied operation may be asked again.
	AskAgain time.Time
	// Policy is what changed after the approval.
	Policy string
	// Pending and Cap count the session's open questions, or with OfNamespace those of all sessions of the namespace.
	Pending, Cap int
	OfNamespace  bool
}

// Refuse is the answer of a front door that could not ask the engine, or that must refuse after it answered: the
// reason's boundary and next step come from the same vocabulary. Class stays what is known of it; ClassAsk when nothing
// is, because what is not known does not pass.
func Refuse(class Class, reason Reason, standing string) Decision {
	if class == 0 {
		class = ClassAsk
	}
	return Decision{Class: class, Verdict: VerdictDeny, Reason: reason, Boundary: reason.Boundary(), Standing: standing}
}
