package enforcement

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Difference is one place where a live object is not as it should be.
type Difference struct {
	// Path is for people: webhooks[enforce.stepbeyond.dev].matchConditions[x].
	Path string
	// By are the field managers that own the place; none for what was taken away, because nobody owns what is not there.
	By []string

	steps []step
}

func (d Difference) String() string {
	if len(d.By) == 0 {
		return d.Path
	}
	return d.Path + " by " + strings.Join(d.By, ", ")
}

// step goes into the field of a map, or to the element of a list whose elements are told apart by their name.
type step struct{ field, name string }

func (s step) String() string {
	if s.field != "" {
		return "." + s.field
	}
	return "[" + s.name + "]"
}

// differences compares what the manager alone decides: everything but metadata and status, and, for what it makes itself,
// the owner references, by which a garbage collector would delete the object. What is not wanted must be empty, as every
// default of these kinds is that is not written out.
func differences(wanted, live *unstructured.Unstructured) []Difference {
	found := compare(nil, sections(wanted), sections(live))
	if len(live.GetOwnerReferences()) > 0 && !isDefinition(live) {
		found = append(found, Difference{steps: []step{{field: "metadata"}, {field: "ownerReferences"}}})
	}
	for i := range found {
		var path strings.Builder
		for _, s := range found[i].steps {
			path.WriteString(s.String())
		}
		found[i].Path = strings.TrimPrefix(path.String(), ".")
		found[i].By = owners(live, found[i].steps)
	}
	return found
}

// digestOf is equal for two objects that decide the same.
func digestOf(object *unstructured.Unstructured) (string, error) {
	data, err := json.Marshal(sections(object))
	if err != nil {
		return "", fmt.Errorf("digest of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// sections are the parts of the object that decide anything, without what is empty.
func sections(object *unstructured.Unstructured) map[string]any {
	whole := maps.Clone(object.Object)
	for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(whole, field)
	}
	parts, _ := meaningful(whole).(map[string]any)
	if isDefinition(object) {
		parts, _ = withoutProse(parts).(map[string]any)
	}
	return parts
}

// meaningful drops fields that are empty: an empty selector selects everything and no conditions are none, written or
// not. Elements of lists stay, because "" is the name of a group.
func meaningful(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for field, part := range value {
			if part = meaningful(part); !empty(part) {
				kept[field] = part
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i := range value {
			kept[i] = meaningful(value[i])
		}
		return kept
	default:
		return value
	}
}

func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	default:
		return false
	}
}

func compare(at []step, wanted, live any) []Difference {
	if reflect.DeepEqual(wanted, live) {
		return nil
	}
	if wanted, live, ok := both[map[string]any](wanted, live); ok {
		return compareFields(wanted, live, func(field string) []step { return append(slices.Clone(at), step{field: field}) })
	}
	if wanted, live, ok := both[[]any](wanted, live); ok {
		wantedByName, named := byName(wanted)
		liveByName, also := byName(live)
		if named && also {
			found := compareFields(wantedByName, liveByName, func(name string) []step { return append(slices.Clone(at), step{name: name}) })
			if len(found) > 0 {
				return found
			} // else the order differs
		}
	}
	return []Difference{{steps: at}}
}

func compareFields(wanted, live map[string]any, at func(string) []step) []Difference {
	all := maps.Clone(wanted)
	maps.Copy(all, live)
	var found []Difference
	for _, field := range slices.Sorted(maps.Keys(all)) {
		found = append(found, compare(at(field), wanted[field], live[field])...)
	}
	return found
}

func both[T any](a, b any) (T, T, bool) {
	first, isFirst := a.(T)
	second, isSecond := b.(T)
	return first, second, isFirst && isSecond
}

// byName is false unless every element is a map with a name of its own.
func byName(list []any) (map[string]any, bool) {
	named := map[string]any{}
	for _, element := range list {
		fields, _ := element.(map[string]any)
		name, _ := fields["name"].(string)
		if _, twice := named[name]; twice || name == "" {
			return nil, false
		}
		named[name] = fields
	}
	return named, true
}
