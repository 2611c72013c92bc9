package policy

// Class is what an operation needs before it may run. Classes are ordered: joining two takes the larger, so a rule
// can only tighten (requirements C-1, C-3).
type Class uint8

const (
	// ClassAuto is cheap, reversible, local and in scope: just do it.
	ClassAuto Class = iota + 1
	// ClassAutoWithDisclosure is reversible and local and rests on a material assumption: do it and say so.
	ClassAutoWithDisclosure
	// ClassAsk needs a human's grant first.
	ClassAsk
	// ClassForbidden is closed to agents; no grant opens it (requirement C-6).
	ClassForbidden
)

// String gives the specification's spelling; an invalid class is the empty string.
func (c Class) String() string {
	switch c {
	case ClassAuto:
		return "AUTO"
	case ClassAutoWithDisclosure:
		return "AUTO_WITH_DISCLOSURE"
	case ClassAsk:
		return "ASK"
	case ClassForbidden:
		return "FORBIDDEN"
	default:
		return ""
	}
}

// ParseClass reads the specification's spelling. ok is false for anything else.
func ParseClass(s string) (c Class, ok bool) {
	for c := ClassAuto; c <= ClassForbidden; c++ {
		if c.String() == s {
			return c, true
		}
	}
	return 0, false
}

// Verdict is what happens to the operation now.
type Verdict string

const (
	// VerdictAllow lets the operation run.
	VerdictAllow Verdict = "Allow"
	// VerdictDeny refuses it; waiting does not help.
	VerdictDeny Verdict = "Deny"
	// VerdictPending refuses it until a human has answered a question.
	VerdictPending Verdict = "Pending"
	// VerdictHeld refuses it until a change of plan is reconciled or a suspension ends.
	VerdictHeld Verdict = "Held"
)

// Stage is one of the four separate permissions (requirement G-1). A grant for one authorizes no other.
type Stage string

const (
	StageUnderstand Stage = "understand"
	StagePropose    Stage = "propose"
	StageExecute    Stage = "execute"
	StagePublish    Stage = "publish"
)

// Capability is one of the eight operations that a runtime adapter exposes (requirement A-1).
type Capability string

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

// Verb is what the operation does to its target. Admission reports a patch as an update, so there is no patch.
type Verb string

const (
	VerbCreate  Verb = "create"
	VerbUpdate  Verb = "update"
	VerbDelete  Verb = "delete"
	VerbConnect Verb = "connect"
	// VerbRead comes from the decision API and from the authorization webhook: admission never sees a read.
	VerbRead Verb = "read"
	// VerbImpersonate comes from the authorization webhook only: admission sees who is impersonated, not who does it. No
	// policy but the baseline names it.
	VerbImpersonate Verb = "impersonate"
)

// Mutating tells whether the verb can change anything.
func (v Verb) Mutating() bool { return v != VerbRead }

// Origin tells who made the target. It decides friction: an agent may freely change what it made itself. The
// authoritative source is the verified created-by stamp; OriginUnknown counts as foreign.
type Origin string

const (
	OriginThisSession  Origin = "ThisSession"
	OriginOtherSession Origin = "OtherSession"
	OriginPerson       Origin = "Person"
	OriginController   Origin = "Controller"
	OriginUnknown      Origin = "Unknown"
)

// Enforcement is how a tightening rule counts.
type Enforcement string

const (
	// EnforcementEnforce makes the rule's class count.
	EnforcementEnforce Enforcement = "Enforce"
	// EnforcementWarn tells the agent what the rule would have done, and lets the operation be.
	EnforcementWarn Enforcement = "Warn"
	// EnforcementAudit records what the rule would have done.
	EnforcementAudit Enforcement = "Audit"
)
