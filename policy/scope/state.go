package scope

// Source says who wrote a message. Only the caller knows, from the authenticated request; it is never read from the text.
type Source uint8

// Sources. The zero value is no one's and changes nothing.
const (
	SourceUnknown Source = iota
	// SourceUser is the human the session works for, or a human with the right to steer it.
	SourceUser
	SourceTool
	SourceFile
	SourceModel
)

// Directive is a structured instruction about strict scope that comes without words, as a steering constraint does.
type Directive uint8

// Directives.
const (
	DirectiveNone Directive = iota
	DirectiveActivate
	DirectiveRelease
)

// Message is what a source said, already read: the findings of its text and its directive. The text itself is not part
// of it (S-4).
type Message struct {
	Source    Source
	Findings  []Finding
	Directive Directive
}

// State is strict scope of one session. The zero value is off. It is a plain value: stored and restored it goes on as
// before (S-3).
type State struct {
	Active bool
	// Phrase, Start, End and Lexicon are those of the finding that turned it on. Empty while off, and while on by a
	// directive.
	Phrase     string
	Start, End int
	Lexicon    string
}

// Next is the state after a message. Only the user changes it. A limit turns it on and wins over a broadening in the same
// message; an active state keeps the phrase that turned it on. Off needs an explicit broadening or the directive.
func Next(state State, message Message) State {
	if message.Source != SourceUser {
		return state
	}
	limit, limited := first(message.Findings, KindLimit)
	_, broadened := first(message.Findings, KindBroaden)
	switch {
	case message.Directive == DirectiveActivate || limited:
		if state.Active {
			return state
		}
		return State{Active: true, Phrase: limit.Phrase, Start: limit.Start, End: limit.End, Lexicon: limit.Lexicon}
	case message.Directive == DirectiveRelease || broadened:
		return State{}
	}
	return state
}

func first(findings []Finding, kind Kind) (Finding, bool) {
	for _, f := range findings {
		if f.Kind == kind {
			return f, true
		}
	}
	return Finding{}, false
}

// Work is something an agent may do beside or for the requested result.
type Work uint8

// Kinds of work.
const (
	// WorkRequired is needed for the requested result to function.
	WorkRequired Work = iota
	// WorkCheckReport is honest reporting of checks performed.
	WorkCheckReport
	// WorkRequestedProposal is a proposal that the user asked for.
	WorkRequestedProposal
	// WorkOptional is an action beyond the requested result.
	WorkOptional
	// WorkUnsolicitedProposal is a proposal that nobody asked for.
	WorkUnsolicitedProposal
)

// Disables says that strict scope takes this work away: every optional action and unsolicited proposal, never work that the
// result needs nor the honest report of a check (S-2). A kind of work that is not listed counts as optional.
func (s State) Disables(work Work) bool {
	switch work {
	case WorkRequired, WorkCheckReport, WorkRequestedProposal:
		return false
	}
	return s.Active
}
