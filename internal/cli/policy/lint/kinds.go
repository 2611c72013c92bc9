package lint

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stepbeyond.dev/stepbeyond/policy"
)

// kinds are the resources that API servers have.
type kinds struct {
	// groups by name; the resources of each with their subresources, as in "deployments/scale".
	groups map[string]map[string]bool
	// unknown groups could not be discovered: nothing is said about them.
	unknown map[string]bool
	// names lead from the other names of a resource, its kind, singular and short names, to the resource.
	names map[string][]string
}

func newKinds(lists []*metav1.APIResourceList) *kinds {
	k := &kinds{groups: map[string]map[string]bool{}, unknown: map[string]bool{}, names: map[string][]string{}}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // an API that nobody can name in a rule either
		}
		if k.groups[version.Group] == nil {
			k.groups[version.Group] = map[string]bool{}
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			k.groups[version.Group][r.Name] = true
			if strings.Contains(r.Name, "/") {
				continue
			}
			for _, other := range append([]string{r.SingularName, strings.ToLower(r.Kind)}, r.ShortNames...) {
				if other != "" && !slices.Contains(k.names[other], r.Name) {
					k.names[other] = append(k.names[other], r.Name)
				}
			}
		}
	}
	return k
}

// authorizationOnly are resources that no discovery lists: an API server names them only when it asks whether a request is
// allowed.
func authorizationOnly(resource string) bool {
	return resource == "nonresourceurls" || strings.HasPrefix(resource, "nodes/")
}

// has tells whether a resource of a selector, as in "pods", "pods/*" or "*", is in a group of it; "*" is any group. Of a
// group that could not be discovered it is assumed.
func (k *kinds) has(group, resource string) bool {
	if authorizationOnly(resource) || k.unknown[group] || group == policyAny && len(k.unknown) > 0 {
		return true
	}
	if group == policyAny {
		for name := range k.groups {
			if k.has(name, resource) {
				return true
			}
		}
		return false
	}
	found := k.groups[group]
	if resource == policyAny {
		return len(found) > 0
	}
	if prefix, any := strings.CutSuffix(resource, "/*"); any {
		for name := range found {
			if strings.HasPrefix(name, prefix+"/") {
				return true
			}
		}
		return false
	}
	return found[resource]
}

// policyAny stands for any group or resource.
const policyAny = "*"

// serves tells whether any of the groups exists.
func (k *kinds) serves(groups []string) bool {
	return slices.ContainsFunc(groups, func(group string) bool { return k.has(group, policyAny) })
}

// connections are the resources whose every request admission calls connect.
var connections = []string{
	"pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "services/proxy", "nodes/proxy",
}

// reading is what is wrong with one selector.
type reading struct {
	// dead: no request can ever be selected; why says the reason.
	dead bool
	why  string
	// missing are resources that no group of the selector has, although others select something.
	missing []string
}

// read judges one selector. Without kinds only its verbs are judged.
func read(s *policy.KubernetesSelector, k *kinds) reading {
	if why := verbsNeverFit(s); why != "" {
		return reading{dead: true, why: why}
	}
	if k == nil {
		return reading{}
	}
	groups, resources := s.Groups, s.Resources
	if len(groups) == 0 {
		groups = []string{policyAny}
	}
	if len(resources) == 0 {
		resources = []string{policyAny}
	}
	var missing []string
	for _, resource := range resources {
		if !slices.ContainsFunc(groups, func(group string) bool { return k.has(group, resource) }) {
			missing = append(missing, resource)
		}
	}
	if len(missing) < len(resources) {
		return reading{missing: missing}
	}
	if !k.serves(groups) {
		return reading{dead: true, why: "no API server has group " + strings.Join(groups, " or ")}
	}
	return reading{dead: true, why: "no API server has " + k.spelled(missing) + " in " + groupsText(groups), missing: missing}
}

// verbsNeverFit says why no request has these verbs and these resources; empty when one can.
func verbsNeverFit(s *policy.KubernetesSelector) string {
	if len(s.Verbs) == 0 || len(s.Resources) == 0 || slices.Contains(s.Verbs, policy.VerbRead) {
		return ""
	}
	connects := func(resource string) bool {
		return slices.Contains(connections, resource)
	}
	mayConnect := func(resource string) bool {
		return resource == policyAny || strings.HasSuffix(resource, "/*") || connects(resource)
	}
	if !slices.Contains(s.Verbs, policy.VerbConnect) {
		if !slices.ContainsFunc(s.Resources, func(r string) bool { return !connects(r) }) {
			return "admission calls every request to " + strings.Join(s.Resources, ", ") + " connect"
		}
		return ""
	}
	if len(s.Verbs) == 1 && !slices.ContainsFunc(s.Resources, mayConnect) {
		return "nobody connects to " + strings.Join(s.Resources, ", ") + "; what is connected to are " + strings.Join(connections[:4], ", ") + " and the like"
	}
	return ""
}

// spelled lists resources, each with the name that was probably meant.
func (k *kinds) spelled(resources []string) string {
	var texts []string
	for _, resource := range resources {
		text := resource
		name, sub, found := strings.Cut(resource, "/")
		if meant := k.names[strings.ToLower(name)]; len(meant) == 1 && meant[0] != name {
			text += " (did you mean " + meant[0]
			if found {
				text += "/" + sub
			}
			text += "?)"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

func groupsText(groups []string) string {
	texts := make([]string, len(groups))
	for i, group := range groups {
		switch group {
		case "":
			texts[i] = "the core group"
		case policyAny:
			texts[i] = "any group"
		default:
			texts[i] = "group " + group
		}
	}
	return strings.Join(texts, " or ")
}
