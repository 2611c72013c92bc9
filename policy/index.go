package policy

import (
	"slices"
	"strings"
)

// selectorIndex finds the rules whose selector could fit an operation, without looking at the others.
type selectorIndex struct {
	kubernetes map[selectorKey]verbIndex
	// anyGroup and anyResource tell whether a key has "*" there, so that most look-ups of those need not be made.
	anyGroup, anyResource bool
	tools                 *nameIndex
}

type selectorKey struct {
	group    string
	resource string // plural, or "*" for any with any subresource
	// subresource is empty for none, "*" for any.
	subresource string
}

// verbIndex holds the names of each verb. There are few verbs, so that comparing beats hashing.
type verbIndex []verbNames

type verbNames struct {
	verb  Verb
	names *nameIndex
}

func (x verbIndex) find(verb Verb) *nameIndex {
	for i := range x {
		if x[i].verb == verb {
			return x[i].names
		}
	}
	return nil
}

// allVerbs stand for a selector without verbs, so that a look-up needs no key for "any verb".
var allVerbs = []Verb{VerbCreate, VerbUpdate, VerbDelete, VerbConnect, VerbRead}

var anything = []string{"*"}

func (x *selectorIndex) add(position int, match *Match) {
	for i := range match.Kubernetes {
		x.addKubernetes(position, &match.Kubernetes[i])
	}
	if len(match.Tools) > 0 {
		if x.tools == nil {
			x.tools = &nameIndex{}
		}
		x.tools.add(position, match.Tools)
	}
}

func (x *selectorIndex) addKubernetes(position int, s *KubernetesSelector) {
	if x.kubernetes == nil {
		x.kubernetes = map[selectorKey]verbIndex{}
	}
	groups, resources, verbs := s.Groups, s.Resources, s.Verbs
	if len(groups) == 0 {
		groups = anything
	}
	if len(resources) == 0 {
		resources = anything
	}
	if len(verbs) == 0 {
		verbs = allVerbs
	}
	for _, group := range groups {
		for _, resource := range resources {
			for _, verb := range verbs {
				key := selectorKey{group: group}
				key.resource, key.subresource, _ = strings.Cut(resource, "/")
				x.anyGroup, x.anyResource = x.anyGroup || group == "*", x.anyResource || resource == "*"
				if x.kubernetes[key].find(verb) == nil {
					x.kubernetes[key] = append(x.kubernetes[key], verbNames{verb, &nameIndex{}})
				}
				x.kubernetes[key].find(verb).add(position, s.Names)
			}
		}
	}
}

// candidates calls yield with the position of every rule that could match, possibly more than once.
func (x *selectorIndex) candidates(op *Operation, yield func(position int)) {
	if op.Tool != "" {
		x.tools.candidates(op.Tool, yield)
	}
	if op.Kubernetes == nil || len(x.kubernetes) == 0 {
		return
	}
	x.kubernetesCandidates(op, op.Target.Group, yield)
	if x.anyGroup {
		x.kubernetesCandidates(op, "*", yield)
	}
}

func (x *selectorIndex) kubernetesCandidates(op *Operation, group string, yield func(position int)) {
	key := selectorKey{group: group, resource: op.Target.Resource, subresource: op.Target.Subresource}
	x.kubernetes[key].find(op.Verb).candidates(op.Target.Name, yield)
	if key.subresource != "" {
		key.subresource = "*"
		x.kubernetes[key].find(op.Verb).candidates(op.Target.Name, yield)
	}
	if x.anyResource {
		key.resource, key.subresource = "*", ""
		x.kubernetes[key].find(op.Verb).candidates(op.Target.Name, yield)
	}
}

// nameIndex finds the positions of one key whose names could fit.
type nameIndex struct {
	any   []int
	exact map[string][]int
	// prefixes by the text before the "*", and their distinct lengths.
	prefixes map[string][]int
	lengths  []int
}

func (x *nameIndex) add(position int, names []string) {
	if len(names) == 0 {
		names = anything
	}
	for _, name := range names {
		prefix, wild := strings.CutSuffix(name, "*")
		switch {
		case wild && prefix == "":
			x.any = append(x.any, position)
		case wild:
			if x.prefixes == nil {
				x.prefixes = map[string][]int{}
			}
			x.prefixes[prefix] = append(x.prefixes[prefix], position)
			if !slices.Contains(x.lengths, len(prefix)) {
				x.lengths = append(x.lengths, len(prefix))
			}
		default:
			if x.exact == nil {
				x.exact = map[string][]int{}
			}
			x.exact[name] = append(x.exact[name], position)
		}
	}
}

func (x *nameIndex) candidates(name string, yield func(position int)) {
	if x == nil {
		return
	}
	for _, position := range x.any {
		yield(position)
	}
	for _, position := range x.exact[name] {
		yield(position)
	}
	for _, length := range x.lengths {
		if length > len(name) {
			continue
		}
		for _, position := range x.prefixes[name[:length]] {
			yield(position)
		}
	}
}

func (m *Match) matches(op *Operation) bool {
	if op.Kubernetes != nil {
		for i := range m.Kubernetes {
			if m.Kubernetes[i].matches(op) {
				return true
			}
		}
	}
	return op.Tool != "" && len(m.Tools) > 0 && matchesName(m.Tools, op.Tool)
}
