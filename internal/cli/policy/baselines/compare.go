package baselines

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/internal/cli/prose"
	"stepbeyond.dev/stepbeyond/policy"
)

// Kind of a change.
type Kind string

// Kinds of changes.
const (
	Added   Kind = "Added"
	Removed Kind = "Removed"
	Changed Kind = "Changed"
)

var marks = map[Kind]string{Added: "+", Removed: "-", Changed: "~"}

// Change of one rule or catalogue entry.
type Change struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	// What has changed, one line each.
	What []string `json:"what"`
}

// ClassChange is another class of operations on one kind.
type ClassChange struct {
	Kind string `json:"kind"`
	// Operations are verbs; behind some stands whose object is meant, own or others'.
	Operations []string `json:"operations"`
	Before     string   `json:"before"`
	After      string   `json:"after"`
}

// words are the operations for people: a verb on an own object and on one of others is the verb.
func (c *ClassChange) words() string {
	var texts []string
	for _, operation := range c.Operations {
		verb, whose, _ := strings.Cut(operation, " ")
		switch {
		case whose == "own" && slices.Contains(c.Operations, verb+" others'"):
			operation = verb
		case whose == "others'" && slices.Contains(c.Operations, verb+" own"):
			operation = verb
		}
		if !slices.Contains(texts, operation) {
			texts = append(texts, operation)
		}
	}
	return strings.Join(texts, ", ")
}

// operations counts those of all kinds.
func (r *Report) operations() int {
	n := 0
	for i := range r.Classes {
		n += len(r.Classes[i].Operations)
	}
	return n
}

// Report is how two versions differ; with -o it is written as it is.
type Report struct {
	Before    string   `json:"before"`
	After     string   `json:"after"`
	Rules     []Change `json:"rules,omitempty"`
	Catalogue []Change `json:"catalogue,omitempty"`
	// Classes of operations on a plain object; Compared is how many were.
	Classes  []ClassChange `json:"classes,omitempty"`
	Compared int           `json:"compared"`

	sameText bool
}

func compare(before, after *side) (*Report, error) {
	made := &Report{Before: before.String(), After: after.String(), sameText: before.ID == after.ID}
	made.Rules = changes(before.Rules, after.Rules, func(r *policy.Rule) string { return r.Name }, ruleLines)
	made.Catalogue = changes(before.Catalogue, after.Catalogue, func(e *policy.CatalogueEntry) string { return e.Name }, entryLines)
	var err error
	made.Classes, made.Compared, err = classes(before, after)
	return made, err
}

// line is one property of a rule or an entry.
type line struct{ field, text string }

func ruleLines(r *policy.Rule) []line {
	return []line{
		{"class", r.Class.String()}, {"match", matchText(&r.Match)}, {"when", r.When}, {"detail", r.Detail}, {"recovery", r.Recovery},
	}
}

func entryLines(e *policy.CatalogueEntry) []line {
	return []line{
		{"present", factsText(e.Present)}, {"absent", factsText(e.Absent)}, {"effect", string(e.Effect)}, {"match", matchText(&e.Match)},
		{"when", e.When}, {"detail", e.Detail}, {"recovery", e.Recovery},
	}
}

func factsText(facts []policy.Fact) string {
	texts := make([]string, len(facts))
	for i, fact := range facts {
		texts[i] = fact.String()
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), ", ")
}

func matchText(m *policy.Match) string {
	var parts []string
	for i := range m.Kubernetes {
		parts = append(parts, selectorText(&m.Kubernetes[i]))
	}
	if len(m.Tools) > 0 {
		parts = append(parts, "tools "+strings.Join(m.Tools, ", "))
	}
	return strings.Join(parts, "; ")
}

func selectorText(s *policy.KubernetesSelector) string {
	var parts []string
	if len(s.Verbs) > 0 {
		parts = append(parts, joined(s.Verbs))
	}
	resources := "any resource"
	if len(s.Resources) > 0 {
		resources = joined(s.Resources)
	}
	groups := make([]string, len(s.Groups))
	for i, group := range s.Groups {
		groups[i] = group
		if group == "" {
			groups[i] = "core"
		}
	}
	if len(groups) > 0 {
		resources += " of " + strings.Join(groups, ", ")
	}
	parts = append(parts, resources)
	if len(s.Names) > 0 {
		parts = append(parts, "named "+joined(s.Names))
	}
	if len(s.Origins) > 0 {
		parts = append(parts, "from "+joined(s.Origins))
	}
	return strings.Join(parts, " ")
}

func joined[S ~string](values []S) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return strings.Join(texts, ", ")
}

// changes compares two lists by name, in the order of the newer one; what is gone comes last.
func changes[T any](before, after []T, name func(*T) string, lines func(*T) []line) []Change {
	find := func(list []T, wanted string) *T {
		for i := range list {
			if name(&list[i]) == wanted {
				return &list[i]
			}
		}
		return nil
	}
	var found []Change
	for i := range after {
		now := &after[i]
		was := find(before, name(now))
		switch {
		case was == nil:
			found = append(found, Change{Kind: Added, Name: name(now), What: shown(lines(now))})
		case !reflect.DeepEqual(lines(was), lines(now)):
			found = append(found, Change{Kind: Changed, Name: name(now), What: different(lines(was), lines(now))})
		}
	}
	for i := range before {
		if was := &before[i]; find(after, name(was)) == nil {
			found = append(found, Change{Kind: Removed, Name: name(was), What: shown(lines(was))})
		}
	}
	return found
}

// shown are the properties that an added or removed rule has.
func shown(lines []line) []string {
	var texts []string
	for _, l := range lines {
		if l.text != "" {
			texts = append(texts, l.field+" "+l.text)
		}
	}
	return texts
}

// different are the properties that changed; of lists what came and what went.
func different(was, now []line) []string {
	var texts []string
	for i := range now {
		if was[i].text == now[i].text {
			continue
		}
		separator := map[string]string{"present": ", ", "absent": ", ", "match": "; "}[now[i].field]
		if separator == "" {
			texts = append(texts, fmt.Sprintf("%s %s -> %s", now[i].field, orNone(was[i].text), orNone(now[i].text)))
			continue
		}
		then, since := split(was[i].text, separator), split(now[i].text, separator)
		reordered := true
		for _, item := range then {
			if !slices.Contains(since, item) {
				texts, reordered = append(texts, now[i].field+" - "+item), false
			}
		}
		for _, item := range since {
			if !slices.Contains(then, item) {
				texts, reordered = append(texts, now[i].field+" + "+item), false
			}
		}
		if reordered {
			texts = append(texts, now[i].field+" in another order")
		}
	}
	return texts
}

func split(text, separator string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, separator)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

const label = 11

func (r *Report) text() string {
	b := &strings.Builder{}
	prose.Write(b, "", r.Before+" -> "+r.After)
	if r.sameText {
		fmt.Fprintf(b, "They are the same file.\n")
		return b.String()
	}
	for _, part := range []struct {
		name    string
		changes []Change
	}{{"rules", r.Rules}, {"catalogue", r.Catalogue}} {
		if len(part.changes) == 0 {
			fmt.Fprintf(b, "%-*snone differs\n", label, part.name)
			continue
		}
		name := part.name
		for _, change := range part.changes {
			prose.Write(b, fmt.Sprintf("%-*s%s ", label, name, marks[change.Kind]), change.Name)
			name = ""
			for _, what := range change.What {
				prose.Write(b, strings.Repeat(" ", label+4), what)
			}
		}
	}
	name := "classes"
	for i := range r.Classes {
		class := &r.Classes[i]
		prose.Write(b, fmt.Sprintf("%-*s~ ", label, name), class.words()+" "+class.Kind+": "+class.Before+" -> "+class.After)
		name = ""
	}
	fmt.Fprintf(b, "%-*s%d of %d compared operations have another class\n", label, name, r.operations(), r.Compared)
	return b.String()
}
