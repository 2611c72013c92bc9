package policy

// selectorIndex finds the rules whose selector could fit an operation, without looking at the others.
type selectorIndex struct {
	kubernetes map[selectorKey][]int
	tools      map[string][]int
}

type selectorKey struct {
	group    string
	resource string // "deployments", "deployments/scale", "deployments/*" or "*"
	verb     Verb
}

// allVerbs stand for a selector without verbs, so that a look-up needs no key for "any verb".
var allVerbs = []Verb{VerbCreate, VerbUpdate, VerbDelete, VerbConnect, VerbRead}

var anything = []string{"*"}

func (x *selectorIndex) add(position int, match *Match) {
	for i := range match.Kubernetes {
		x.addKubernetes(position, &match.Kubernetes[i])
	}
	for _, tool := range match.Tools {
		if x.tools == nil {
			x.tools = map[string][]int{}
		}
		x.tools[tool] = append(x.tools[tool], position)
	}
}

func (x *selectorIndex) addKubernetes(position int, s *KubernetesSelector) {
	if x.kubernetes == nil {
		x.kubernetes = map[selectorKey][]int{}
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
				key := selectorKey{group: group, resource: resource, verb: verb}
				x.kubernetes[key] = append(x.kubernetes[key], position)
			}
		}
	}
}

// candidates calls yield with the position of every rule that could match, possibly more than once.
func (x *selectorIndex) candidates(op *Operation, yield func(position int)) {
	if op.Tool != "" {
		for _, tool := range [2]string{op.Tool, "*"} {
			for _, position := range x.tools[tool] {
				yield(position)
			}
		}
	}
	if op.Kubernetes == nil || len(x.kubernetes) == 0 {
		return
	}
	path := op.Target.ResourcePath()
	resources := [3]string{path, "*", ""}
	if op.Target.Subresource != "" {
		resources[2] = op.Target.Resource + "/*"
	}
	for _, group := range [2]string{op.Target.Group, "*"} {
		for _, resource := range resources {
			if resource == "" {
				continue
			}
			for _, position := range x.kubernetes[selectorKey{group: group, resource: resource, verb: op.Verb}] {
				yield(position)
			}
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
	return op.Tool != "" && len(m.Tools) > 0 && matchesAny(m.Tools, op.Tool)
}
