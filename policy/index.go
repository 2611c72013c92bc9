package policy

import (
	"slices"
	"strings"
)

// selectorIndex finds the rules whose selector could fit an operation, without looking at the others.
type selectorIndex struct {
	// kubernetes by resource: the plural. anyResource is "*", which is any with any subresource.
	kubernetes  map[string][]kindIndex
	anyResource []kindIndex
	tools       *nameIndex
}

// kindIndex holds the verbs of one kind. Few kinds share a resource, so that comparing the rest of the key beats hashing it.
type kindIndex struct {
	group string
	// subresource is empty for none, "*" for any.
	subresource string
	verbs       verbIndex
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
var allVerbs = []Verb{VerbCreate, VerbUpdate, VerbDelete, VerbConnect, VerbRead, VerbImpersonate}

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
		x.kubernetes = map[string][]kindIndex{}
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
				x.names(group, resource, verb).add(position, s.Names)
			}
		}
	}
}

// names of one key, made when they are new.
func (x *selectorIndex) names(group, resource string, verb Verb) *nameIndex {
	if resource == "*" {
		return namesIn(&x.anyResource, kindIndex{group: group}, verb)
	}
	resource, subresource, _ := strings.Cut(resource, "/")
	kinds := x.kubernetes[resource]
	found := namesIn(&kinds, kindIndex{group: group, subresource: subresource}, verb)
	x.kubernetes[resource] = kinds
	return found
}

func namesIn(kinds *[]kindIndex, kind kindIndex, verb Verb) *nameIndex {
	at := slices.IndexFunc(*kinds, func(k kindIndex) bool { return k.group == kind.group && k.subresource == kind.subresource })
	if at < 0 {
		at = len(*kinds)
		*kinds = append(*kinds, kind)
	}
	verbs := &(*kinds)[at].verbs
	if verbs.find(verb) == nil {
		*verbs = append(*verbs, verbNames{verb, &nameIndex{}})
	}
	return verbs.find(verb)
}

// candidates calls yield with the position of every rule that could match, possibly more than once.
func (x *selectorIndex) candidates(op *Operation, yield func(position int)) {
	if op.Tool != "" {
		x.tools.candidates(op.Tool, yield)
	}
	if op.Kubernetes == nil {
		return
	}
	kindCandidates(x.kubernetes[op.Target.Resource], op, op.Target.Subresource, yield)
	kindCandidates(x.anyResource, op, "", yield)
}

func kindCandidates(kinds []kindIndex, op *Operation, subresource string, yield func(position int)) {
	for i := range kinds {
		k := &kinds[i]
		if k.group != op.Target.Group && k.group != "*" {
			continue
		}
		if k.subresource == subresource || k.subresource == "*" && subresource != "" {
			names := k.verbs.find(op.Verb)
			if op.readsMany() {
				names.each(yield)
				continue
			}
			names.candidates(op.Target.Name, yield)
		}
	}
}

// nameIndex finds the positions of one key whose names could fit.
type nameIndex struct {
	all   []int
	any   []int
	exact map[string][]int
	// prefixes by the text before the "*", and their distinct lengths.
	prefixes map[string][]int
	lengths  []int
}

func (x *nameIndex) add(position int, names []string) {
	x.all = append(x.all, position)
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

// each calls yield with every position, whatever its names.
func (x *nameIndex) each(yield func(position int)) {
	if x == nil {
		return
	}
	for _, position := range x.all {
		yield(position)
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

// matches tells whether the operation is one of those that are selected.
func (m *Match) matches(op *Operation) bool {
	if op.Kubernetes != nil {
		for i := range m.Kubernetes {
			if m.Kubernetes[i].matches(op) {
				return true
			}
		}
	}
	return m.matchesTool(op)
}

// touches is matches, and true as well for a read without a name that can show an object whose name is selected.
func (m *Match) touches(op *Operation) bool {
	if op.Kubernetes != nil {
		for i := range m.Kubernetes {
			if m.Kubernetes[i].touches(op) {
				return true
			}
		}
	}
	return m.matchesTool(op)
}

func (m *Match) matchesTool(op *Operation) bool {
	return op.Tool != "" && len(m.Tools) > 0 && matchesName(m.Tools, op.Tool)
}
