package main

import (
	"fmt"
	"regexp"
	"strings"
)

// group is one capability of docs/requirements.md, such as "G: stages and grants".
type group struct {
	letter, title string
	requirements  []requirement
}

type requirement struct{ id, text string }

var (
	groupLine       = regexp.MustCompile(`^## ([A-Z]): (.+)$`)
	requirementLine = regexp.MustCompile(`^- ([A-Z])-([0-9]+): (.+)$`)
)

// parseRequirements reads the list: a heading per group, then one line per requirement, numbered from 1 without gaps.
func parseRequirements(text string) ([]group, error) {
	var groups []group
	for i, line := range strings.Split(text, "\n") {
		if m := groupLine.FindStringSubmatch(line); m != nil {
			groups = append(groups, group{letter: m[1], title: m[2]})
			continue
		}
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		m := requirementLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("line %d: want %q, got %q", i+1, "- X-1: text", line)
		}
		if len(groups) == 0 || groups[len(groups)-1].letter != m[1] {
			return nil, fmt.Errorf("line %d: %s-%s is not in its group", i+1, m[1], m[2])
		}
		last := &groups[len(groups)-1]
		if want := fmt.Sprint(len(last.requirements) + 1); m[2] != want {
			return nil, fmt.Errorf("line %d: %s-%s, want %s-%s", i+1, m[1], m[2], m[1], want)
		}
		last.requirements = append(last.requirements, requirement{id: m[1] + "-" + m[2], text: m[3]})
	}
	return groups, nil
}
