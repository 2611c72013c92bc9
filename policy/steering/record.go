package steering

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// RecordReserve is the smallest bound in bytes with which [State.Record] names every one of n inputs whose IDs are at
// most idBytes long.
func RecordReserve(n, idBytes int) int { return 64 + n*(idBytes+2) }

// Record is the protected record: one text that lists every open input in the order in which they arrived, ends every
// context frame, and goes out as a warning to agents that have only kubectl (requirements ). It is empty when no
// input is open.
//
// The text is at most maxBytes bytes of lines that no input's own text can add to. Messages are cut first, evenly, then
// left out; every ID stays while maxBytes is at least [RecordReserve], below that the rest is counted.
func (s State) Record(maxBytes int) string {
	open := s.Open()
	if len(open) == 0 {
		return ""
	}
	head, tail := s.recordHead(len(open)), recordTail(open)
	heads := make([]string, len(open))
	fixed := len(head) + len(tail)
	for i := range open {
		heads[i] = fmt.Sprintf("\n%d. %s", i+1, open[i].head())
		fixed += len(heads[i])
	}
	if room := maxBytes - fixed; room >= 0 {
		var text strings.Builder
		text.WriteString(head)
		for i := range open {
			body := clip(open[i].body(), room/(len(open)-i))
			room -= len(body)
			text.WriteString(heads[i] + body)
		}
		return text.String() + tail
	}
	return idsOnly(open, maxBytes)
}

// Lines are the record for one warning each, every line at most maxBytes bytes, none longer than an API server passes on
// whole.
func (s State) Lines(maxBytes int) []string {
	open := s.Open()
	if len(open) == 0 {
		return nil
	}
	lines := []string{clip(s.recordHead(len(open)), maxBytes)}
	for i := range open {
		lines = append(lines, clip(fmt.Sprintf("%d. %s%s", i+1, open[i].head(), open[i].body()), maxBytes))
	}
	if tail := strings.TrimPrefix(recordTail(open), "\n"); tail != "" {
		lines = append(lines, clip(tail, maxBytes))
	}
	return lines
}

// Frame ends a context frame with the record: items stay in order, and as many of the last ones are left out as the
// bound of maxBytes in all needs. The record itself is never cut away.
func (s State) Frame(items []string, maxBytes int) []string {
	record := s.Record(maxBytes)
	room := maxBytes - len(record)
	var frame []string
	for _, item := range items {
		if room -= len(item); room < 0 {
			break
		}
		frame = append(frame, item)
	}
	if record == "" {
		return frame
	}
	return append(frame, record)
}

func (s State) recordHead(n int) string {
	hold := s.Hold()
	switch {
	case hold.Suspended:
		return fmt.Sprintf("Steering, %d open, epoch %d: this session is suspended; reads go on, writes wait for a person (steering input %s).", n, s.Epoch, hold.Input.ID)
	case hold.State == HoldWaitingForBoundary:
		return fmt.Sprintf("Steering, %d open, epoch %d: what has started completes, then writes wait (steering input %s).", n, s.Epoch, hold.Input.ID)
	case hold.State == HoldHeld:
		return fmt.Sprintf("Steering, %d open, epoch %d: writes wait until steering input %s is answered; reads go on.", n, s.Epoch, hold.Input.ID)
	default:
		return fmt.Sprintf("Steering, %d open, epoch %d: for information; nothing waits.", n, s.Epoch)
	}
}

// recordTail says how to answer, where there is something to answer.
func recordTail(open []Entry) string {
	for i := range open {
		if open[i].open() {
			return "\nAnswer in this order, each with inputId, status (applied, not_applicable or needs_clarification), changedConstraints and revisedNextAction."
		}
	}
	return ""
}

func (e *Entry) head() string {
	standing := "to be answered"
	switch {
	case e.Suspends():
		standing = "suspension; nothing to answer"
	case e.Type == TypeContext:
		standing = "nothing to answer"
	case e.Answer.Status == StatusNeedsClarification:
		standing = "clarification asked for"
	}
	return fmt.Sprintf("%s (%s, %s) by %s at %s", e.ID, e.Type, standing, oneLine(e.Author), e.Time.UTC().Format(time.RFC3339))
}

// body holds what binds first, because it is cut at the end.
func (e *Entry) body() string {
	text := ""
	if limits := e.limits(); limits != "" {
		text = ". In force: " + limits
	}
	if message := strings.TrimSpace(oneLine(e.Message)); message != "" {
		text += ". Message: " + message
	}
	return text
}

// limits names the constraints in words; expired ones bind no more.
func (e *Entry) limits() string {
	if e.Expired {
		return ""
	}
	c := &e.Constraints
	var parts []string
	for _, capability := range c.ForbidCapabilities {
		parts = append(parts, "no "+string(capability))
	}
	for i := range c.Forbid {
		parts = append(parts, "no "+c.Forbid[i].words())
	}
	for i := range c.NarrowTo {
		parts = append(parts, "only "+c.NarrowTo[i].words())
	}
	if c.StrictScope != "" {
		parts = append(parts, "strict scope "+string(c.StrictScope))
	}
	if c.Budgets.MaxMutations != nil {
		parts = append(parts, fmt.Sprintf("at most %d writes in all", *c.Budgets.MaxMutations))
	}
	if c.Budgets.MaxChildSessions != nil {
		parts = append(parts, fmt.Sprintf("at most %d child sessions in all", *c.Budgets.MaxChildSessions))
	}
	return strings.Join(parts, "; ")
}

func (s *Selector) words() string {
	verbs := make([]string, len(s.Verbs))
	for i, verb := range s.Verbs {
		verbs[i] = string(verb)
	}
	if len(verbs) == 0 {
		verbs = []string{"write"}
	}
	text := strings.Join(verbs, "/")
	if len(s.Groups) > 0 {
		text += " in group " + strings.Join(s.Groups, ",")
	}
	for _, list := range [][]string{s.Resources, s.Tools, s.Names} {
		if len(list) > 0 {
			text += " " + strings.Join(list, ",")
		}
	}
	return text
}

// idsOnly is the record under a bound too small for anything else.
func idsOnly(open []Entry, maxBytes int) string {
	const more = " and %d more"
	text := "Steering inputs open, in order:"
	for i := range open {
		next := " " + open[i].ID
		reserve := 0
		if left := len(open) - i - 1; left > 0 {
			reserve = len(fmt.Sprintf(more, left))
		}
		if len(text)+len(next)+reserve > maxBytes {
			return clip(text+fmt.Sprintf(more, len(open)-i), maxBytes)
		}
		text += next
	}
	return text
}

// oneLine keeps a person's text from looking like a line of the record.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
}

// clip cuts to at most limit bytes, at a rune, and shows that it did where there is room to.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	mark := "..."
	if limit < len(mark) {
		mark = ""
	}
	cut := max(0, limit-len(mark))
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + mark
}
