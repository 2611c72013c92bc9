package effective

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/prose"
	"stepbeyond.dev/stepbeyond/internal/cli/span"
	"stepbeyond.dev/stepbeyond/internal/cli/table"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
	"stepbeyond.dev/stepbeyond/policy"
)

// label is the width of the names of lines below the table.
const label = 11

func (r *Report) text(paint terminal.Paint) (string, error) {
	b := &strings.Builder{}
	rows := make([]table.Row, 0, len(r.Layers))
	for i := range r.Layers {
		l := &r.Layers[i]
		rows = append(rows, table.Row{{Text: l.From}, {Text: r.what(l)}, {Text: l.enforcement()}, {Text: l.compiled()}})
	}
	columns := []table.Column{{Name: "FROM"}, {Name: "WHAT", Least: 30}, {Name: "ENFORCEMENT", Least: 12}, {Name: "COMPILED", Least: 12}}
	if err := table.Write(b, paint, columns, rows); err != nil {
		return "", err
	}
	line := func(style terminal.Style, name, text string) {
		head := fmt.Sprintf("%-*s", label, name)
		inner := &strings.Builder{}
		prose.Write(inner, head, text)
		b.WriteString(paint.Text(style, head) + strings.TrimPrefix(inner.String(), head))
	}
	if r.FloorEnforcement == v1alpha1.FloorEnforcementAudit {
		line(terminal.Amber, "audit", "Profile "+r.Profile+" only audits: nothing is refused here, and what would be is counted.")
	}
	for _, problem := range r.Problems {
		line(terminal.Red, "problem", problem)
	}
	if text := r.Questions.text(); text != "" {
		line(terminal.Plain, "questions", text)
	}
	if len(r.Templates) == 0 && r.ModelTier != "" {
		line(terminal.Red, "sessions", "No session template: no agent of this namespace has a session, so every write of theirs is refused.")
		return b.String(), nil
	}
	if len(r.Examples) == 0 {
		return b.String(), nil
	}
	line(terminal.Plain, "sessions", r.templates())
	b.WriteString(paint.Text(terminal.Bold, "in short") + "\n")
	for _, group := range r.groups() {
		inner := &strings.Builder{}
		head := "  " + group.name + strings.Repeat(" ", max(2, groupWidth-len(group.name)))
		prose.Write(inner, head, strings.Join(group.examples, "; "))
		b.WriteString(paint.Text(group.style, head) + strings.TrimPrefix(inner.String(), head))
	}
	return b.String(), nil
}

func (r *Report) what(l *Layer) string {
	switch l.From {
	case "baseline":
		return fmt.Sprintf("%s: %s, %s", l.name, prose.Count(l.Rules, "rule", "rules"), prose.Count(l.CatalogueEntries, "catalogue entry", "catalogue entries"))
	case "profile":
		return fmt.Sprintf("%s, tier %s, mode %s", l.counts(), r.ModelTier, r.InitiativeMode)
	default:
		return l.counts()
	}
}

// counts leaves out what there is none of, but for rules.
func (l *Layer) counts() string {
	text := l.name + ": " + prose.Count(l.Rules, "rule", "rules")
	if l.CatalogueEntries > 0 {
		text += ", " + prose.Count(l.CatalogueEntries, "catalogue entry", "catalogue entries")
	}
	if l.Requirements > 0 {
		text += ", " + prose.Count(l.Requirements, "requirement", "requirements")
	}
	return text
}

// enforcement of the rules: the word alone when it is that of all.
func (l *Layer) enforcement() string {
	if len(l.Enforcement) == 1 {
		for word := range l.Enforcement {
			return word
		}
	}
	var parts []string
	for _, word := range []policy.Enforcement{policy.EnforcementEnforce, policy.EnforcementWarn, policy.EnforcementAudit} {
		if n := l.Enforcement[string(word)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	return strings.Join(parts, ", ")
}

func (l *Layer) compiled() string {
	var parts []string
	if l.Webhook != "" {
		parts = append(parts, "webhook "+string(l.Webhook), "floor "+string(l.Floor))
	}
	for _, target := range slices.Sorted(maps.Keys(l.Compiled)) {
		parts = append(parts, fmt.Sprintf("%d %s", l.Compiled[target], target))
	}
	return strings.Join(parts, ", ")
}

func (q *Questions) text() string {
	if q == nil {
		return ""
	}
	var parts []string
	for _, bound := range []struct {
		name    string
		seconds int32
	}{{"decided within", q.DecideWithinSeconds}, {"used within", q.UseWithinSeconds}, {"after a denial not asked again for", q.AskAgainAfterSeconds}} {
		if bound.seconds > 0 {
			parts = append(parts, bound.name+" "+span.Text(time.Duration(bound.seconds)*time.Second))
		}
	}
	if q.MaxPendingPerSession != nil {
		parts = append(parts, fmt.Sprintf("at most %d open per session", *q.MaxPendingPerSession))
	}
	return strings.Join(parts, ", ")
}

func (r *Report) templates() string {
	texts := make([]string, len(r.Templates))
	for i, t := range r.Templates {
		texts[i] = fmt.Sprintf("template %s (ServiceAccount %s)", t.Name, t.ServiceAccount)
	}
	text := strings.Join(texts, ", ")
	if len(texts) > 1 {
		text += "; in short is for " + r.Template + ", --template chooses"
	}
	return text
}

// groupWidth is the width of the names of groups; AUTO_WITH_DISCLOSURE fits.
const groupWidth = 23

// group is what has one answer.
type group struct {
	name     string
	style    terminal.Style
	examples []string
}

var classStyles = map[policy.Class]terminal.Style{
	policy.ClassAuto: terminal.Green, policy.ClassAutoWithDisclosure: terminal.Green, policy.ClassAsk: terminal.Amber, policy.ClassForbidden: terminal.Red,
}

// groups in the order of the classes.
func (r *Report) groups() []group {
	var found []group
	for class := policy.ClassAuto; class <= policy.ClassForbidden; class++ {
		for i := range r.Examples {
			d := &r.Examples[i]
			if d.class != class {
				continue
			}
			name := d.Class
			if class == policy.ClassAsk && len(d.Approvers) > 0 {
				name += ", " + needs(d.Approvers)
			}
			at := slices.IndexFunc(found, func(g group) bool { return g.name == name })
			if at < 0 {
				at = len(found)
				found = append(found, group{name: name, style: classStyles[class]})
			}
			found[at].examples = append(found[at].examples, d.Name)
		}
	}
	return found
}
