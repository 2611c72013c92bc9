package policy

import (
	"fmt"
	"strings"
	"time"
)

// Messages follow one grammar, so that a model and a person read the verdict first and the way forward last:
//
//	<Word>: <verb> <resource> <namespace>/<name> <why> (<reason; rule>). <where it stands>. Next: <one thing>. [decision]
//
// One line of at most maxMessage bytes, printable ASCII, and no text that an agent wrote beyond the target's name.
const (
	maxMessage = 480
	maxPath    = 140
	maxDetail  = 160
	// maxDisclosure leaves room for the decision's ID in the 256 bytes that the API server keeps of a warning.
	maxDisclosure = 230
)

// Message is the answer to the agent. decisionID ends it in brackets.
func (d *Decision) Message(op *Operation, decisionID string) string {
	if d.Grant == nil {
		// An answer about no grant speaks of none; one that should name its grant and cannot is still an answer.
		without := *d
		without.Grant = &GrantRef{}
		d = &without
	}
	subject := clean(fmt.Sprintf("%s %s %s", op.Verb, op.Target.ResourcePath(), clip(op.Target.Path(), maxPath)))
	if op.Tool != "" {
		subject = clean(clip(op.Tool, maxPath))
	}
	why, standing, next := d.why(), d.standing(), d.next(op)
	text := fmt.Sprintf("%s: %s %s.", d.word(), subject, why)
	if standing != "" {
		text += " " + standing + "."
	}
	tail := fmt.Sprintf(" Next: %s. [%s]", strings.TrimRight(clean(next), ". "), decisionID)
	// What the reader can do next survives every bound; the middle gives way.
	return clip(clean(text), maxMessage-len(tail)) + tail
}

func (d *Decision) word() string {
	switch {
	case d.Verdict == VerdictPending:
		return "Pending"
	case d.Verdict == VerdictHeld:
		return "Held"
	case d.Verdict == VerdictDeny && (d.Reason == ReasonForbidden || d.Reason == ReasonOutsideAuthority):
		return "Forbidden"
	default:
		return "Denied"
	}
}

// because is "(Destructive; rule baseline/delete-foreign)" with the detail of the rule where it has one.
func (d *Decision) because() string {
	if len(d.Details) == 0 {
		return ""
	}
	first := &d.Details[0]
	var parts []string
	if first.Code != CodeRule {
		parts = append(parts, first.Code)
	}
	if first.Rule != "" {
		parts = append(parts, "rule "+first.Rule)
	}
	text := strings.Join(parts, "; ")
	if why := strings.Trim(clip(first.Why, maxDetail), ". "); why != "" {
		text += ": " + why
	}
	return "(" + text + ")"
}

func (d *Decision) why() string {
	switch d.Reason {
	case ReasonForbidden:
		return "is closed to agents and no approval opens it " + d.because()
	case ReasonOutsideAuthority:
		return "is outside the authority of this agent's session " + d.because()
	case ReasonPermissionPending:
		if d.Grant.Waiting {
			return fmt.Sprintf("still waits in %s (%d of %d approvals, open until %s)", d.Grant.path(), d.Grant.Approvals, d.Grant.Required, stamp(d.Grant.Until))
		}
		return fmt.Sprintf("needs approval by %s %s", d.approvers(), d.because())
	case ReasonTooManyPending:
		if d.Grant.OfNamespace {
			return fmt.Sprintf("needs approval, and the agents of namespace %s already have %d of %d open questions; nothing new was asked", d.Grant.Namespace, d.Grant.Pending, d.Grant.Cap)
		}
		return fmt.Sprintf("needs approval, and the session already has %d of %d open questions; nothing new was asked", d.Grant.Pending, d.Grant.Cap)
	case ReasonGrantDigestMismatch:
		if d.Grant.Path == "" {
			return "is not what " + d.Grant.path() + " approves"
		}
		return fmt.Sprintf("is not what %s approves: %s is %s, approved %s", d.Grant.path(), clip(d.Grant.Path, 80), clip(d.Grant.Asked, 40), clip(d.Grant.Approved, 40))
	case ReasonGrantUsed, ReasonGrantExpired, ReasonGrantRevoked, ReasonGrantStale, ReasonGrantSuperseded,
		ReasonGrantWrongSession, ReasonGrantWrongStage, ReasonGrantDenied:
		return "needs a new approval: " + d.Grant.ended(d.Reason)
	case ReasonSuspended:
		return "waits: agents here are suspended"
	default:
		return refusals[d.Reason].why
	}
}

// refusal is the wording of a reason that has no parts of its own.
type refusal struct{ why, next string }

var refusals = map[Reason]refusal{
	ReasonNoSession: {
		"is refused: no session covers this caller in a governed namespace",
		"a person adds a session template or an exemption for this ServiceAccount",
	},
	ReasonSessionPending:     {"needs a session first: the session of this pod is being created", "run this command again in 2 seconds"},
	ReasonSessionAmbiguous:   {"is refused: more than one session could be meant", "a person ends all sessions of this ServiceAccount but one"},
	ReasonSessionEnded:       {"is refused: the session has ended", "report what is done; a person opens a new session to go on"},
	ReasonCredentialUnbound:  {"is refused: the request carries no credential-id, as impersonated identities and legacy tokens do not", "use the token that is mounted in the agent's own pod"},
	ReasonMalformed:          {"cannot be read", "correct the field and send it again"},
	ReasonPolicyNotLoaded:    {"is refused: Step Beyond is starting and has no policy yet; nothing was asked", "run this command again in 10 seconds"},
	ReasonPolicyMissing:      {"is refused: no valid profile governs the session's namespace", "a person repairs the ClusterAgentPolicy or the namespace's stepbeyond.dev/profile label"},
	ReasonUnstamped:          {"is refused: the object does not carry the origin stamp that the server writes", "run this command again in 2 seconds, without stepbeyond.dev annotations in the manifest"},
	ReasonStrictScope:        {"is optional, and the user limited the work to what was asked", "leave it out, or ask the user to widen the scope"},
	ReasonSteeringHold:       {"waits until a change of plan is answered", "reconcile the steering input; then go on by the new plan"},
	ReasonSteeringConstraint: {"was taken away by steering", "leave it out and go on; a person can withdraw the steering input"},
	ReasonUnnamed:            {"needs approval, and an operation that names no object cannot be approved", "send it again for each object by its name"},
	ReasonUngrantable:        {"needs a person, and grants cover writes only", "go on without it, or ask a person to look and to tell you what you need"},
	ReasonUndecided:          {"is refused: deciding failed", "run this command again in 10 seconds; if it stays, a person reads the manager's log under this decision"},
	ReasonGrantInUse:         {"is approved for one effect, and an earlier try may still have it", "look whether it took effect; if it did not, run this command again in a minute"},
	ReasonStaleRead:          {"is refused: the object changed after it was read", "read it again and send the change anew"},
}

func (d *Decision) approvers() string {
	need := int32(1)
	for i := range d.Approvals.Requirements {
		need = max(need, d.Approvals.Requirements[i].Required)
	}
	if need == 1 {
		return "a person"
	}
	return fmt.Sprintf("%d people", need)
}

// standing is where the question stands now.
func (d *Decision) standing() string {
	g := d.Grant
	switch {
	case g.Successor != "":
		return "Asked anew as " + grantPath(g.Successor)
	case d.Reason == ReasonPermissionPending && g.Waiting:
		return ""
	case d.Reason == ReasonPermissionPending && g.Name != "":
		return fmt.Sprintf("Asked as %s, open until %s", g.path(), stamp(g.Until))
	case d.Reason == ReasonMalformed:
		return clip(d.Standing, maxDetail) // it begins with the path of a field
	case d.Standing != "":
		return upperFirst(strings.TrimRight(clip(d.Standing, maxDetail), ". "))
	default:
		return ""
	}
}

func (d *Decision) next(op *Operation) string {
	switch {
	case d.Reason == ReasonGrantDenied:
		return "leave this and go on; the same request is not asked again before " + stamp(d.Grant.AskAgain)
	case d.Reason == ReasonTooManyPending:
		return "wait until one of them is answered"
	case d.Verdict == VerdictPending && d.Grant.Name != "":
		name := d.Grant.Name
		if d.Grant.Successor != "" {
			name = d.Grant.Successor
		}
		command := fmt.Sprintf("kubectl -n %s get permissiongrant %s", d.Grant.Namespace, name)
		if d.Reason == ReasonGrantDigestMismatch {
			return fmt.Sprintf("send the approved change, or go on with other work until %q shows Approved", command)
		}
		return fmt.Sprintf("go on with other work; when %q shows Approved, run this command again unchanged", command)
	case strings.Trim(d.Recovery, ". ") != "":
		return clip(d.Recovery, maxDetail)
	case d.Reason == ReasonForbidden:
		return "leave it out, or hand the manifest to a person who may do this"
	case d.Reason == ReasonOutsideAuthority:
		return "stay inside the session's namespace and authority, or hand this step to a person"
	case d.Reason == ReasonSuspended:
		return "stop writing and report where you are; a person resumes"
	case refusals[d.Reason].next != "":
		return refusals[d.Reason].next
	case op.DryRun:
		return "send it without the dry run; a person is asked then"
	default:
		return "run this command again unchanged, and it is asked anew"
	}
}

func (g *GrantRef) path() string { return grantPath(g.Name) }

func grantPath(name string) string {
	if name == "" {
		return "the grant"
	}
	return "permissiongrant/" + name
}

func (g *GrantRef) ended(reason Reason) string {
	switch reason {
	case ReasonGrantUsed:
		return g.path() + " was used" + at(g.Closed)
	case ReasonGrantExpired:
		return g.path() + " ran out of time at " + stamp(g.Until)
	case ReasonGrantRevoked:
		return "the approval of " + g.path() + " was revoked" + at(g.Closed)
	case ReasonGrantStale:
		changed := g.Policy
		if changed == "" {
			changed = "a policy"
		}
		return fmt.Sprintf("the approval of %s ended because %s changed", g.path(), changed)
	case ReasonGrantSuperseded:
		return g.path() + " was superseded: the session has moved on since"
	case ReasonGrantWrongSession:
		return g.path() + " belongs to another session"
	case ReasonGrantWrongStage:
		return g.path() + " is for another stage"
	case ReasonGrantDenied:
		text := fmt.Sprintf("%s refused %s%s", g.ClosedBy, g.path(), at(g.Closed))
		if g.ClosedWhy != "" {
			text += fmt.Sprintf(": %q", clip(g.ClosedWhy, 100))
		}
		return text
	default:
		return g.path() + " has ended"
	}
}

// disclosure is the system's own sentence for an operation that rests on an assumption.
func disclosure(op *Operation, details []Detail) string {
	what := op.Target.ResourcePath() + "/" + clip(op.Target.Name, maxPath)
	if op.Tool != "" {
		what = clip(op.Tool, maxPath)
	}
	writer := ""
	if op.Target.LastWriter != "" {
		writer = fmt.Sprintf(" (last writer: %s)", clip(op.Target.LastWriter, 60))
	}
	if op.Tool == "" && op.Target.Origin != OriginThisSession && op.Verb != VerbCreate {
		return clean(clip("disclosed: "+what+" was not made by this session"+writer, maxDisclosure))
	}
	why := "it rests on an assumption"
	if len(details) > 0 && details[0].Why != "" {
		why = details[0].Why
	}
	return clean(clip("disclosed: "+what+": "+why, maxDisclosure))
}

func at(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " at " + stamp(t)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func upperFirst(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// clip cuts to at most limit bytes and shows that it did.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const mark = "..."
	return s[:max(0, limit-len(mark))] + mark
}

// clean keeps a message on one line of printable ASCII: a target's name may be anything before it is validated.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
