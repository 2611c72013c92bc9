package coverage

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

//go:embed examples.yaml
var examples string

// Place says where an example goes. Kinds whose names follow a rule, as APIServices and IPAddresses, make theirs of it.
type Place struct {
	Namespace string // empty for a cluster-scoped kind
	Name      string
	// Number distinguishes what cannot be named freely. Between 1 and 254.
	Number int
}

// Example is the plainest object of a kind. known is false for a kind without one in examples.yaml, which then is an
// object without content.
func Example(kind schema.GroupVersionKind, at Place) (object *unstructured.Unstructured, known bool, err error) {
	object = &unstructured.Unstructured{Object: map[string]any{}}
	filled := strings.NewReplacer("NAMESPACE", at.Namespace, "NAME", at.Name, "NUMBER", strconv.Itoa(at.Number)).Replace(examples)
	for text := range strings.SplitSeq(filled, "\n---\n") {
		candidate := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &candidate); err != nil {
			return nil, false, fmt.Errorf("example of %s: %w", kind, err)
		}
		if (&unstructured.Unstructured{Object: candidate}).GroupVersionKind() == kind {
			object.Object, known = candidate, true
			break
		}
	}
	object.SetGroupVersionKind(kind)
	if object.GetName() == "" {
		object.SetName(at.Name)
	}
	object.SetNamespace(at.Namespace)
	return object, known, nil
}
