package breaker

import (
	"fmt"
	"slices"
)

// Settings are how many calls make a signal. A field that is zero or negative takes its default.
type Settings struct {
	// Key of the digests.
	Key []byte
	// SameResult calls in a row with one result are a signal; default 4.
	SameResult int
	// SameError calls in a row with one error are a signal; default 3.
	SameError int
	// Rounds of one cycle are a signal; default 3.
	Rounds int
	// LongestCycle is the largest number of different calls in a cycle; default 4, at most 16.
	LongestCycle int
	// Window is how many calls are remembered; default 32, raised to what the other settings need, at most 256.
	Window int
}

func (s Settings) withDefaults() Settings {
	s.SameResult = within(s.SameResult, 4, 2, maxWindow)
	s.SameError = within(s.SameError, 3, 2, maxWindow)
	s.LongestCycle = within(s.LongestCycle, 4, 1, 16)
	s.Rounds = within(s.Rounds, 3, 2, maxWindow/s.LongestCycle)
	s.Window = within(s.Window, 32, max(s.SameResult, s.SameError, s.Rounds*s.LongestCycle), maxWindow)
	return s
}

const maxWindow = 256

// within is n between least and most, or fallback when n is not set.
func within(n, fallback, least, most int) int {
	if n <= 0 {
		n = fallback
	}
	return min(max(n, least), most)
}

// Window is what is remembered of a session's calls, the newest last. The zero value is an empty window.
type Window struct {
	Observed []Signature `json:"observed,omitempty"`
}

// Signal is what the newest call shows together with those before it.
type Signal string

const (
	SignalNone Signal = ""
	// SignalSameResult: the same calls in a row had the same result.
	SignalSameResult Signal = "SameResult"
	// SignalSameError: the same calls in a row failed in the same way.
	SignalSameError Signal = "SameError"
	// SignalCycle: different calls follow each other in rounds, and every one has its own result each time.
	SignalCycle Signal = "Cycle"
)

// Hypothesis is a guess at what would help, never an instruction.
type Hypothesis string

const (
	HypothesisNone Hypothesis = ""
	// HypothesisLookElsewhere: one more of the same will not tell anything new.
	HypothesisLookElsewhere Hypothesis = "LookElsewhere"
	// HypothesisActOnError: the error's own words name what has to change first.
	HypothesisActOnError Hypothesis = "ActOnError"
	// HypothesisDecide: what the round shows is all that it will show.
	HypothesisDecide Hypothesis = "Decide"
)

// Label is a word in telemetry. It prevents nothing.
type Label string

const (
	LabelNone Label = ""
	// LabelBlocked: action, inputs, state and result are all known and unchanged, and no recovery step is available
	// (requirement L-2).
	LabelBlocked Label = "blocked"
)

// Observation is what can be said about one call. It is data for telemetry and advice; nothing in it can prevent a call.
type Observation struct {
	// Counted is false for a call that the tool never answered; such a call leaves everything as it was.
	Counted bool
	Signal  Signal
	// Count is how often the pattern occurs in a row, within the window: calls, or rounds of a cycle. 1 means once.
	Count int
	// Period is the number of calls in one round; 1 for anything but a cycle.
	Period    int
	Signature Signature
	// Changed names what is different from the last call with the same action and inputs; empty when there is none or
	// nothing changed. A change starts the count anew (requirement L-3).
	Changed    []Component
	Hypothesis Hypothesis
	// Advice is the hypothesis in one sentence, without any text of the call; empty when there is none.
	Advice string
	Label  Label
	// Evidence are the components that are known and unchanged, with a Label only.
	Evidence []Component
}

// Observe looks at one more call and gives the window that has it. The given window is not changed.
func (s Settings) Observe(window Window, event *Event) (Window, Observation) {
	if !event.Outcome.native() {
		return window, Observation{}
	}
	s = s.withDefaults()
	signature := Sign(s.Key, event)
	o := Observation{Counted: true, Count: 1, Period: 1, Signature: signature, Changed: signature.changedSince(window.Observed)}
	observed := append(slices.Clone(window.Observed), signature)
	observed = observed[max(0, len(observed)-s.Window):]

	o.Count = rounds(observed, 1)
	switch {
	case event.Outcome == OutcomeFailed && o.Count >= s.SameError:
		o.Signal, o.Hypothesis = SignalSameError, HypothesisActOnError
	case event.Outcome == OutcomeSucceeded && o.Count >= s.SameResult:
		o.Signal, o.Hypothesis = SignalSameResult, HypothesisLookElsewhere
	case o.Count == 1:
		s.findCycle(&o, observed)
	}
	o.Advice = o.advice()
	if o.Period == 1 && o.Signal != SignalNone && signature[atState] != "" && event.Recovery == RecoveryNone {
		o.Label = LabelBlocked
		o.Evidence = []Component{ComponentAction, ComponentInputs, ComponentState, ComponentResult}
	}
	return Window{Observed: observed}, o
}

// Replay observes a whole run from an empty window, one Observation for each event.
func (s Settings) Replay(events []Event) []Observation {
	var window Window
	observations := make([]Observation, len(events))
	for i := range events {
		window, observations[i] = s.Observe(window, &events[i])
	}
	return observations
}

func (s Settings) findCycle(o *Observation, observed []Signature) {
	for period := 2; period <= s.LongestCycle; period++ {
		if n := rounds(observed, period); n >= s.Rounds {
			o.Signal, o.Hypothesis, o.Count, o.Period = SignalCycle, HypothesisDecide, n, period
			return
		}
	}
}

// rounds is how often the last period calls follow each other at the end of observed, at least 1.
func rounds(observed []Signature, period int) int {
	n := 1
	for end := len(observed); end-(n+1)*period >= 0; n++ {
		for i := range period {
			if !observed[end-period+i].same(observed[end-(n+1)*period+i]) {
				return n
			}
		}
	}
	return n
}

func (o *Observation) advice() string {
	switch o.Hypothesis {
	case HypothesisLookElsewhere:
		return fmt.Sprintf("The last %d calls were the same and so was every answer; another input or another source may tell more.", o.Count)
	case HypothesisActOnError:
		return fmt.Sprintf("The last %d calls failed in the same way; what the error names may have to change first.", o.Count)
	case HypothesisDecide:
		return fmt.Sprintf("The last %d calls went round %d times with the same answers; what they show may be enough to decide.", o.Count*o.Period, o.Count)
	default:
		return ""
	}
}
