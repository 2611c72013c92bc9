// Package phase is the pipeline that a session reports on: which phase may follow which, and the record of transitions.
// A report is bookkeeping. Nothing here can hold or deny a call, and no decision reads a phase (requirements P-1, B-6).
package phase

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Phase is a step of the pipeline, in the specification's spelling.
type Phase string

const (
	Context    Phase = "CONTEXT"
	Intent     Phase = "INTENT"
	Decide     Phase = "DECIDE"
	Build      Phase = "BUILD"
	Initiative Phase = "INITIATIVE"
	Execute    Phase = "EXECUTE"
	Verify     Phase = "VERIFY"
	Deliver    Phase = "DELIVER"
	Learn      Phase = "LEARN"
)

// All phases in the order of the pipeline.
func All() []Phase {
	return []Phase{Context, Intent, Decide, Build, Initiative, Execute, Verify, Deliver, Learn}
}

// follows says where each phase can lead. Every phase can go back to CONTEXT: new instructions, steering or evidence begin
// the sequence anew. BUILD reaches EXECUTE and VERIFY without INITIATIVE, because the requested result does not depend on
// optional work (requirement P-4). VERIFY goes back to BUILD to repair.
var follows = map[Phase][]Phase{
	"":         {Context},
	Context:    {Intent},
	Intent:     {Context, Decide},
	Decide:     {Context, Intent, Build},
	Build:      {Context, Decide, Initiative, Execute, Verify},
	Initiative: {Context, Build, Execute, Verify},
	Execute:    {Context, Build, Initiative, Execute, Verify},
	Verify:     {Context, Build, Execute, Deliver},
	Deliver:    {Context, Learn},
	Learn:      {Context},
}

// MaxTransitions is how many transitions a record keeps; the oldest go first.
const MaxTransitions = 64

// maxCause bounds the cause of a transition, in bytes.
const maxCause = 240

// Transition is one change of phase.
type Transition struct {
	From  Phase // empty for the first
	To    Phase
	Time  time.Time
	Cause string
}

// Record is the current phase of a session and how it came there. The zero value is a session that has not begun. It is
// plain data: whoever keeps it may copy it.
type Record struct {
	Current     Phase
	Transitions []Transition
}

// ReportError is why a report is impossible. It changes nothing and denies nothing.
type ReportError struct {
	Field   string
	Problem string
	// Allowed are the phases that may follow now; set for an impossible transition.
	Allowed []Phase
}

// Error names the field, and the phases that may follow.
func (e *ReportError) Error() string {
	text := e.Field + ": " + e.Problem
	if len(e.Allowed) > 0 {
		names := make([]string, len(e.Allowed))
		for i, phase := range e.Allowed {
			names[i] = string(phase)
		}
		text += "; possible now: " + strings.Join(names, ", ")
	}
	return text
}

// Allowed lists the phases that may follow the current one.
func (r Record) Allowed() []Phase { return slices.Clone(follows[r.Current]) }

// Report records that the session has entered a phase. The error is a [*ReportError], and the record is then unchanged: an
// unknown phase, one that cannot follow, a cause that is missing or over 240 bytes, or a time before the last transition.
func (r Record) Report(to Phase, cause string, now time.Time) (Record, error) {
	switch last := len(r.Transitions) - 1; {
	case !slices.Contains(All(), to):
		return r, &ReportError{Field: "phase", Problem: fmt.Sprintf("%q is no phase", clip(string(to))), Allowed: r.Allowed()}
	case !slices.Contains(follows[r.Current], to):
		return r, &ReportError{Field: "phase", Problem: fmt.Sprintf("%s cannot follow %s", to, name(r.Current)), Allowed: r.Allowed()}
	case cause == "" || len(cause) > maxCause:
		return r, &ReportError{Field: "cause", Problem: fmt.Sprintf("must have 1 to %d bytes", maxCause)}
	case last >= 0 && now.Before(r.Transitions[last].Time):
		return r, &ReportError{Field: "time", Problem: "lies before the last transition"}
	}
	next := Record{Current: to, Transitions: append(slices.Clone(r.Transitions), Transition{From: r.Current, To: to, Time: now, Cause: cause})}
	if over := len(next.Transitions) - MaxTransitions; over > 0 {
		next.Transitions = next.Transitions[over:]
	}
	return next, nil
}

func name(p Phase) string {
	if p == "" {
		return "the beginning"
	}
	return string(p)
}

func clip(s string) string { return s[:min(len(s), 32)] }
