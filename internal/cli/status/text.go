package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/prose"
	"stepbeyond.dev/stepbeyond/internal/cli/span"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
)

const (
	// label is the width of the names of lines.
	label = 14
	// mostAttention and mostNames bound what is listed; -o json has all.
	mostAttention = 8
	mostNames     = 5
	// maxMessage bounds a condition's message, in characters.
	maxMessage = 300
)

func (r *Report) text(paint terminal.Paint) string {
	b := &strings.Builder{}
	line := func(style terminal.Style, name, text string) {
		head := fmt.Sprintf("%-*s", label, name)
		inner := &strings.Builder{}
		prose.Write(inner, head, text)
		b.WriteString(paint.Text(style, head) + strings.TrimPrefix(inner.String(), head))
	}
	style, text := r.enforcement()
	line(style, "enforcement", text)
	line(terminal.Plain, "governed", r.governed())
	line(terminal.Plain, "queue", r.queue())
	if text := r.suspended(); text != "" {
		line(terminal.Amber, "sessions", text)
	}
	if o := r.Onboarding; o != nil {
		line(terminal.Plain, "onboarding", fmt.Sprintf("would have asked %d and refused %d of %d requests since %s",
			o.WouldAsk, o.WouldRefuse, o.WouldAllow+o.WouldAsk+o.WouldRefuse+o.Undecided, r.OnboardingSince.UTC().Format("2006-01-02 15:04Z")))
	}
	name := "attention"
	for i, a := range r.Attention {
		if i == mostAttention {
			line(terminal.Amber, name, fmt.Sprintf("and %d more (-o json lists all)", len(r.Attention)-mostAttention))
			break
		}
		text := a.Object + ": " + cut(a.Message)
		if a.Command != "" {
			text += " (" + a.Command + ")"
		}
		line(terminal.Amber, name, text)
		name = ""
	}
	return b.String()
}

func cut(text string) string {
	if runes := []rune(text); len(runes) > maxMessage {
		return string(runes[:maxMessage]) + "..."
	}
	return text
}

// unread says why a kind is not told of; empty when it was read.
func (r *Report) unread(kind string) string {
	at := slices.IndexFunc(r.NotRead, func(n NotRead) bool { return n.Kind == kind })
	if at < 0 {
		return ""
	}
	return fmt.Sprintf("not known: list %s: %s", kind, r.NotRead[at].Reason)
}

func (r *Report) enforcement() (terminal.Style, string) {
	if text := r.unread(clusterPolicies); text != "" {
		return terminal.Amber, text
	}
	e := r.Enforcement
	if e.Policies == 0 {
		return terminal.Red, "none: no ClusterAgentPolicy exists, so nobody new is governed"
	}
	halves := fmt.Sprintf("(webhook %s, floor %s, %s)", e.Webhook, e.Floor, prose.Count(e.FloorPolicies, "floor policy proven", "floor policies proven"))
	proven := "never proven"
	if e.LastProvenTime != nil {
		proven = "proven " + span.Text(r.now.Sub(e.LastProvenTime.Time)) + " ago"
	}
	switch e.State {
	case string(v1alpha1.EnforcementInForce):
		return terminal.Green, "in force, " + proven + " " + halves
	case stale:
		return terminal.Red, "not known, " + proven + ", which is too long ago: no manager may be running " + halves
	case string(v1alpha1.EnforcementRepairing):
		return terminal.Amber, "being repaired, " + proven + " " + halves
	case string(v1alpha1.EnforcementLost):
		return terminal.Red, "LOST, " + proven + " " + halves
	default:
		return terminal.Red, "not proven yet: no manager has written a status"
	}
}

func (r *Report) governed() string {
	text := r.unread(clusterPolicies)
	if text == "" {
		g := r.Governed
		text = prose.Count(g.Namespaces+g.OnboardingNamespaces, "namespace", "namespaces")
		if g.OnboardingNamespaces > 0 {
			text += fmt.Sprintf(" (%d onboarding)", g.OnboardingNamespaces)
		}
		text += ", " + prose.Count(g.Users, "user", "users")
	}
	if unread := r.unread(sessions); unread != "" {
		return text + "; sessions " + unread
	}
	text += ", " + prose.Count(r.Sessions.Live, "session", "sessions")
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	var parts []string
	for _, guarantee := range []string{string(v1alpha1.GuaranteeVerified), string(v1alpha1.GuaranteeRuntimeBacked), string(v1alpha1.GuaranteePromptOnly), notComputed} {
		if n := r.Sessions.Guarantee[guarantee]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, guarantee))
		}
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

func (r *Report) queue() string {
	if text := r.unread(grants); text != "" {
		return text
	}
	q := r.Queue
	text := "nothing pending"
	if q.OldestTime != nil {
		text = fmt.Sprintf("%d pending, oldest %s", q.Pending, span.Text(r.now.Sub(q.OldestTime.Time)))
	}
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	if q.none {
		return text + ", and no grant is there"
	}
	period := "24 h"
	if !q.whole {
		// Nobody knows what was before the oldest grant that is still there.
		period = "since " + span.Text(r.now.Sub(q.SinceTime.Time)) + " ago"
	}
	text += fmt.Sprintf("; %s: %d approved, %d denied, %d expired", period, q.Approved, q.Denied, q.Expired)
	if q.MedianAnswerSeconds != nil {
		text += ", median answer " + span.Text(time.Duration(*q.MedianAnswerSeconds)*time.Second)
	}
	return text
}

func (r *Report) suspended() string {
	if r.Sessions == nil || len(r.Sessions.Suspended) == 0 {
		return ""
	}
	names := r.Sessions.Suspended
	text := fmt.Sprintf("%d suspended: %s", len(names), strings.Join(names[:min(len(names), mostNames)], ", "))
	if more := len(names) - mostNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
