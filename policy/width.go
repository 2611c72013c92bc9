package policy

import (
	"slices"
	"strings"
	"time"
)

// Asked is what a question shows of its operation, apart from its digest: the bounds of every answer to it
// (requirement G-2).
type Asked struct {
	// SessionUID, Epoch, Requester and Stage bind a question whatever is answered.
	SessionUID string
	Epoch      int64
	Requester  string
	Stage      Stage

	Verb                         Verb
	Group, Resource, Subresource string
	Namespace                    string // empty for cluster-scoped targets
	Name                         string // empty when the API server makes it
	// Command is that of a connection, word by word; empty where there is none or it cannot be told so.
	Command []string
	// Manner is a digest of how the operation is carried out, apart from target and command; empty where these say all.
	Manner string
	// Facts and Rules are the reasons for the class; Rules holds what [Detail.ReasonName] gives.
	Facts []AskedFact
	Rules []string
	// Requirements on the approvers. Only name, number and groups count.
	Requirements []Requirement
}

// AskedFact is a fact that a question showed as a reason.
type AskedFact struct{ Fact, Value, Why string }

// Width is what makes an approval good for more than the one operation that was asked about. The zero value covers
// nothing.
type Width struct {
	Asked Asked
	// Name is a pattern as [MatchName] reads it; empty for the name in the question.
	Name string
	// Commands are patterns as [MatchCommand] reads them; empty for the command in the question.
	Commands []string
}

// Wide is what a session's wider approvals are compared with when an operation has no usable grant of its own.
type Wide struct {
	// Grants in the order in which they are tried. One without a Width covers nothing.
	Grants []Grant
	// Command and Manner of the operation, as in [Asked].
	Command []string
	Manner  string
}

// Covers tells whether an approval may be used for what was asked, under the policies of that identity: everything that
// binds it is as it was, and nothing asks for a person that the approvers did not see.
func (g *Grant) Covers(asked *Asked, identity string, now time.Time) bool {
	return g.Width != nil && g.State == GrantApproved && g.UsesLeft > 0 && !g.expired(now) &&
		g.PolicyIdentity != "" && g.PolicyIdentity == identity &&
		g.SessionUID != "" && g.SessionUID == asked.SessionUID && g.Epoch == asked.Epoch &&
		g.Requester == asked.Requester && g.Stage == asked.Stage && g.Width.fits(asked)
}

func (w *Width) fits(asked *Asked) bool {
	own := &w.Asked
	return own.Verb == asked.Verb && own.Group == asked.Group && own.Resource == asked.Resource &&
		own.Subresource == asked.Subresource && own.Namespace == asked.Namespace &&
		own.Manner == asked.Manner && w.fitsName(asked.Name) && w.fitsCommand(asked.Command) &&
		own.shows(asked)
}

// fitsName compares names. What names no object, such as one of a collection, is covered by no approval.
func (w *Width) fitsName(name string) bool {
	switch {
	case name == "":
		return false
	case w.Name == "":
		return name == w.Asked.Name
	default:
		return MatchName(w.Name, name)
	}
}

func (w *Width) fitsCommand(command []string) bool {
	if len(w.Commands) == 0 || len(command) == 0 {
		return slices.Equal(w.Asked.Command, command)
	}
	return slices.ContainsFunc(w.Commands, func(pattern string) bool { return MatchCommand(pattern, command) })
}

// shows tells whether every reason and every requirement of the other operation stood in the question.
func (a *Asked) shows(other *Asked) bool {
	for _, fact := range other.Facts {
		if !slices.Contains(a.Facts, fact) {
			return false
		}
	}
	for _, rule := range other.Rules {
		if !slices.Contains(a.Rules, rule) {
			return false
		}
	}
	for i := range other.Requirements {
		if !slices.ContainsFunc(a.Requirements, other.Requirements[i].asks) {
			return false
		}
	}
	return len(other.Requirements) > 0 // an ASK has one; without any it was not asked properly
}

// asks tells whether two requirements need the same approvers.
func (r *Requirement) asks(other Requirement) bool {
	return r.Name == other.Name && r.Required == other.Required && slices.Equal(r.ApproverGroups, other.ApproverGroups)
}

// coveringGrant is the first of the session's wider approvals that covers the operation; nil for none.
func (q *question) coveringGrant() *Grant {
	wide := q.session.Wide
	if wide == nil || len(wide.Grants) == 0 || q.class.class != ClassAsk {
		return nil
	}
	asked := q.asked(wide)
	for i := range wide.Grants {
		if g := &wide.Grants[i]; g.Covers(&asked, q.decision.PolicyIdentity, q.now) {
			return g
		}
	}
	return nil
}

// asked is the question that would be asked about the operation.
func (q *question) asked(wide *Wide) Asked {
	target := &q.op.Target
	asked := Asked{
		SessionUID: q.session.UID, Epoch: q.session.Epoch, Requester: q.session.Username, Stage: q.op.Stage,
		Verb: q.op.Verb, Group: target.Group, Resource: target.Resource, Subresource: target.Subresource,
		Namespace: target.Namespace, Name: target.Name, Command: wide.Command, Manner: wide.Manner,
		Requirements: q.decision.Approvals.Requirements,
	}
	for i := range q.decision.Details {
		// What is only disclosed needs nobody's approval.
		if d := &q.decision.Details[i]; d.Class >= ClassAsk {
			asked.add(d)
		}
	}
	return asked
}

func (a *Asked) add(d *Detail) {
	if d.Fact != "" {
		a.Facts = append(a.Facts, AskedFact{Fact: d.Fact, Value: d.Presence.String(), Why: d.Why})
	}
	if name := d.ReasonName(); name != "" {
		a.Rules = append(a.Rules, name)
	}
}

// enginePrefix names a reason of the engine itself, which is neither a fact nor a rule of any policy.
const enginePrefix = "engine/"

// ReasonName is the rule or catalogue entry behind a reason as policy/name, engine/Code for a reason of the engine itself,
// and empty for a fact that only a parser found.
func (d *Detail) ReasonName() string {
	if d.Rule == "" && d.Fact == "" {
		return enginePrefix + d.Code
	}
	return d.Rule
}

const star = "*"

// MatchName tells whether the whole name matches: a * stands for any run of characters, also an empty one, everything
// else for itself. A pattern that is empty or begins with * matches nothing, so that no slip covers everything.
func MatchName(pattern, name string) bool {
	return pattern != "" && !strings.HasPrefix(pattern, star) && wildcard(pattern, name)
}

// MatchCommand tells whether a command, given word by word, matches a pattern of words with one space between each. A *
// stands for any run of characters within its word, and a word with a * matches nothing that holds two dots in a row: so
// it reaches no further argument and, in a path, no folder above. A pattern that begins with * matches nothing.
func MatchCommand(pattern string, command []string) bool {
	words := strings.Split(pattern, " ")
	if len(words) != len(command) || strings.HasPrefix(pattern, star) {
		return false
	}
	for i, word := range words {
		open, given := strings.Contains(word, star), command[i]
		if word == "" || strings.Contains(given, " ") || open && strings.Contains(given, "..") || !wildcard(word, given) {
			return false
		}
	}
	return true
}

// wildcard matches the whole text. It takes at most as many steps as pattern and text have characters together.
func wildcard(pattern, text string) bool {
	parts := strings.Split(pattern, star)
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	rest := text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return true
}
