package enforcement

import (
	"fmt"
	"io/fs"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/config/crd"
)

// AnnotationSchemaRevision of a custom resource definition counts the releases that changed its schema. A manager leaves
// a definition with a higher revision than its own alone, so that an upgrade may bring the definitions first.
const AnnotationSchemaRevision = "stepbeyond.dev/schema-revision"

const kindDefinition = "CustomResourceDefinition"

// definitions are the custom resource definitions that this binary was built with.
func definitions() ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(crd.Bases, "bases/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("embedded definitions: %w", err)
	}
	var all []*unstructured.Unstructured
	for _, name := range names {
		data, err := crd.Bases.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("embedded definition: %w", err)
		}
		object := &unstructured.Unstructured{}
		if data, err = yaml.YAMLToJSON(data); err == nil {
			err = object.UnmarshalJSON(data)
		}
		if err != nil {
			return nil, fmt.Errorf("embedded definition %s: %w", name, err)
		}
		// The only default of the API server that is not empty.
		if err := unstructured.SetNestedField(object.Object, "None", "spec", "conversion", "strategy"); err != nil {
			return nil, fmt.Errorf("embedded definition %s: %w", name, err)
		}
		all = append(all, object)
	}
	return all, nil
}

func isDefinition(object *unstructured.Unstructured) bool { return object.GetKind() == kindDefinition }

// revision is 0 for a definition without a readable one.
func revision(definition *unstructured.Unstructured) int {
	n, err := strconv.Atoi(definition.GetAnnotations()[AnnotationSchemaRevision])
	if err != nil {
		return 0
	}
	return n
}

// withoutProse drops descriptions: tools that deploy definitions shorten them, and they decide nothing. A property that
// has the name description is a map, and stays.
func withoutProse(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for field, part := range value {
			if _, isText := part.(string); field != "description" || !isText {
				kept[field] = withoutProse(part)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i := range value {
			kept[i] = withoutProse(value[i])
		}
		return kept
	default:
		return value
	}
}

// needed are the differences of a newer definition that this version cannot work with: a version that is not served any
// more, or a property that is gone or of another type. What a newer one adds or judges otherwise is its own affair.
func needed(wanted, live *unstructured.Unstructured) []Difference {
	var found []Difference
	for _, d := range differences(wanted, live) {
		if !d.lost(wanted, live) {
			continue
		}
		found = append(found, d)
	}
	return found
}

// lost is true where the live definition lacks a version or a property, or has another type or serves a version not.
func (d Difference) lost(wanted, live *unstructured.Unstructured) bool {
	last := d.steps[len(d.steps)-1]
	if last.field == "type" || last.field == "served" {
		return true
	}
	parent := d.steps[:len(d.steps)-1]
	inMap := len(parent) > 0 && (parent[len(parent)-1].field == "properties" || parent[len(parent)-1].field == "versions")
	return inMap && valueAt(wanted, d.steps) != nil && valueAt(live, d.steps) == nil
}

func valueAt(object *unstructured.Unstructured, at []step) any {
	var value any = sections(object)
	for _, s := range at {
		if list, isList := value.([]any); isList {
			named, _ := byName(list)
			value = named[s.name]
			continue
		}
		fields, _ := value.(map[string]any)
		value = fields[s.field]
	}
	return value
}
