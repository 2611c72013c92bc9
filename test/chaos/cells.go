package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

var columns = []string{
	"FORBIDDEN still 403", "ASK refused", "AUTO while it lasts", "Bystander denials", "Bystander added latency", "Recovery", "Grants",
}

// failed marks a cell that fails the run.
const failed = "**FAILED** "

// cells of one row, in the order of the columns; a cell that fails the run is marked.
func cells(r *row, m *measured) []string {
	return []string{
		forbiddenCell(m), askCell(r, m), autoCell(r, m), bystanderCell(m), latencyCell(r, m), recoveryCell(r, m), grantsCell(r, m),
	}
}

// list joins what is not empty.
func list(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// some is "n text", or nothing for 0.
func some(n int, text string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", n, text)
}

func mark(wrong bool) string {
	if wrong {
		return failed
	}
	return ""
}

func forbiddenCell(m *measured) string {
	f := m.Forbidden
	answered := f.Sent - f.Away
	return mark(f.Passed > 0 || answered == 0) + list(
		fmt.Sprintf("%d of %d", f.Forbidden, answered), some(f.Refused, "refused otherwise"), some(f.Passed, "passed"), some(f.Away, "API server away"),
	)
}

func askCell(r *row, m *measured) string {
	a := m.Ask
	answered := a.Sent - a.Away
	text := list(fmt.Sprintf("%d of %d", answered-a.Passed, answered), some(a.Away, "API server away"))
	switch {
	case answered == 0 || a.Passed > 0 && r.exposed == "" || m.PassedGuarded > 0:
		return failed + text + ", " + some(a.Passed, "passed")
	case a.Passed > 0:
		return fmt.Sprintf("%s; %d passed, the last sent %s after the deletion, %s", text, a.Passed, seconds(m.Exposed), r.exposed)
	case r.exposed != "":
		return text + "; the repair was faster than the probes"
	default:
		return text
	}
}

func autoCell(r *row, m *measured) string {
	a, rate := m.Auto, ""
	if r.writers > 0 {
		rate = fmt.Sprintf("%.0f sent per second", m.AutoPerSecond)
	}
	return mark(a.Sent == 0 || a.Unstamped > 0 && r.exposed == "") + list(
		some(a.Passed-a.Unstamped, "allowed"), some(a.Unstamped, "past the manager"), some(a.Forbidden+a.Refused, "refused"), some(a.Away, "API server away"), rate,
	) + "; stated: " + r.auto
}

func bystanderCell(m *measured) string {
	b := m.Bystander
	wrong := b.Denied > 0 || b.Other > 0
	for kind := range b.Away {
		wrong = wrong || m.Bare == nil || m.Bare.Away[kind] == 0
	}
	text := fmt.Sprintf("%d of %d (%d Lease renewals)", b.Denied, b.Leases+b.Writes+b.Reads, b.Leases)
	if len(b.Away) > 0 {
		text += "; API server away: " + kinds(b.Away)
		if m.Bare != nil {
			text += "; without us: " + kinds(m.Bare.Away)
		}
	}
	return mark(wrong) + text + some(b.Other, " failed otherwise")
}

func kinds(away map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(away)) {
		parts = append(parts, fmt.Sprintf("%d %s", away[kind], kind))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func latencyCell(r *row, m *measured) string {
	b := m.Bystander
	if r.compared && m.Bare != nil {
		return fmt.Sprintf("%s (%s, and %s under the same fault without us)", added(m.Bare.During, b.During), millis(b.During), millis(m.Bare.During))
	}
	return fmt.Sprintf("%s (%s, and %s before)", added(b.Before, b.During), millis(b.During), millis(b.Before))
}

func added(before, during time.Duration) string {
	return fmt.Sprintf("%+.1f ms", (during-before).Seconds()*1000)
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func recoveryCell(r *row, m *measured) string {
	switch {
	case !m.Recovered:
		return fmt.Sprintf("%snot within %s", failed, recoverAtMax)
	case r.person != "":
		return fmt.Sprintf("needs a person: %s; then %s", r.person, seconds(m.Recovery))
	case m.Recovery == 0:
		return "at once"
	default:
		return seconds(m.Recovery)
	}
}

func grantsCell(r *row, m *measured) string {
	g := m.Grants
	return mark(g.Lost > 0 || g.Doubled > 0 || g.AskedAgain > 0 && !r.asksAgain) + list(
		fmt.Sprintf("%d lost", g.Lost), fmt.Sprintf("%d doubled", g.Doubled), some(g.Meanwhile, "used meanwhile"), some(g.Kept, "used after it"),
		some(g.AskedAgain, "asked again"), some(g.PendingAnswered, "pending answered after it"),
	)
}
