package enforcement

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// celLiteral writes a string or a list of strings as CEL. JSON strings are CEL strings.
func celLiteral[T string | []string](value T) string {
	if list, ok := any(value).([]string); ok && len(list) == 0 {
		return "[]"
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // strings always have a JSON form, and the buffer takes it
	return strings.TrimSuffix(b.String(), "\n")
}

// podTemplateKind is a built-in kind that holds a pod template.
type podTemplateKind struct {
	group, resource string
	// template is the path from the object to its template; a Pod is one itself.
	template string
}

var podTemplateKinds = []podTemplateKind{
	{"", "pods", ""},
	{"", "podtemplates", ".?template"},
	{"", "replicationcontrollers", ".?spec.?template"},
	{"apps", "daemonsets", ".?spec.?template"},
	{"apps", "deployments", ".?spec.?template"},
	{"apps", "replicasets", ".?spec.?template"},
	{"apps", "statefulsets", ".?spec.?template"},
	{"batch", "cronjobs", ".?spec.?jobTemplate.?spec.?template"},
	{"batch", "jobs", ".?spec.?template"},
}

// podTemplateResources are the resources of podTemplateKinds, whatever their groups.
func podTemplateResources() []string {
	var list []string
	for _, kind := range podTemplateKinds {
		list = append(list, kind.resource)
	}
	return sortedUnique(list)
}

// podTemplate is an optional with the pod template of object or oldObject (of a Pod: its spec), or with its pod spec;
// none for kinds that have no pod template. The object must not be null.
func podTemplate(object, field string) string {
	var b strings.Builder
	for _, kind := range podTemplateKinds {
		path := kind.template + field
		if kind.template == "" {
			path = ".?spec"
		}
		b.WriteString("request.resource.group == " + celLiteral(kind.group) + " && request.resource.resource == " + celLiteral(kind.resource) +
			" ? " + object + path + " : ")
	}
	return "(" + b.String() + "optional.none())"
}

// annotation is an optional with one annotation of object or oldObject. The object must not be null.
func annotation(object, name string) string {
	return object + ".?metadata.?annotations[?" + celLiteral(name) + "]"
}

// sortedUnique is a sorted copy without duplicates.
func sortedUnique(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
