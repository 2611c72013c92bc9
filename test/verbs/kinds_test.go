package verbs_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/coverage"
)

// manifest is one entry of testdata/kinds.yaml.
type manifest struct {
	Object   map[string]any   `json:"object"`
	Change   map[string]any   `json:"change"`
	Commands []special        `json:"commands"`
	Also     []map[string]any `json:"also"`
	Only     bool             `json:"only"`
}

// special is a verb of kubectl that fits only some kinds.
type special struct {
	Verb        string             `json:"verb"`
	Args        []string           `json:"args"`
	Before      map[string]any     `json:"before"`
	Change      map[string]any     `json:"change"`
	Gone        bool               `json:"gone"`
	Subresource string             `json:"subresource"`
	Operation   coverage.Operation `json:"operation"`
}

// kind is a kind of discovery with the object that stands for it.
type kind struct {
	manifest
	resource coverage.Resource
}

// exempt are the resources without an object that a verb could change.
var exempt = map[schema.GroupResource]string{
	{Resource: "bindings"}:                                                 "carries no object: it is the subresource binding of a pod, without a kubectl verb",
	{Resource: "componentstatuses"}:                                        "can only be read",
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}:       "is answered and never stored",
	{Group: "authentication.k8s.io", Resource: "tokenreviews"}:             "is answered and never stored",
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}: "is answered and never stored",
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}:  "is answered and never stored",
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"}:   "is answered and never stored",
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}:      "is answered and never stored",
}

// kinds reads the manifests. Those of a namespaced kind get their namespace from the agent that works on them.
func kinds(t *testing.T) []*kind {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "kinds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []*kind
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		k := &kind{}
		if err := decoder.Decode(&k.manifest); err != nil {
			break // the end, or a file that TestEveryKindOfDiscoveryHasAManifest finds too short
		}
		if k.Object == nil {
			continue
		}
		of := schema.FromAPIVersionAndKind(fmt.Sprint(k.Object["apiVersion"]), fmt.Sprint(k.Object["kind"]))
		i := slices.IndexFunc(resources, func(r coverage.Resource) bool { return r.Subresource == "" && r.Kind == of })
		if i < 0 {
			t.Fatalf("%s is not in discovery", of)
		}
		k.resource = resources[i]
		all = append(all, k)
	}
	return all
}

// Every kind of discovery but Step Beyond's own, which test/integration and test/coverage try, takes part.
func TestEveryKindOfDiscoveryHasAManifest(t *testing.T) {
	all := kinds(t)
	seen := map[schema.GroupResource]bool{}
	for _, r := range resources {
		of := r.GroupResource()
		if r.Subresource != "" || r.Group == v1alpha1.GroupVersion.Group || seen[of] {
			continue
		}
		seen[of] = true
		with := slices.ContainsFunc(all, func(k *kind) bool { return k.resource.GroupResource() == of })
		_, without := exempt[of]
		if with == without {
			t.Errorf("%s: has a manifest: %t, has a reason for none: %t; want one of them", of, with, without)
		}
	}
	for of, why := range exempt {
		if !seen[of] {
			t.Errorf("%s is not in discovery, and exempt because it %s", of, why)
		}
	}
}

// object as a person writes it, for an agent's namespace.
func (k *kind) object(namespace string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: filled(k.Object, namespace).(map[string]any)}
	object.SetName(cmp.Or(object.GetName(), "subject"))
	if k.resource.Namespaced {
		object.SetNamespace(namespace)
	}
	return object
}

// filled copies a plain value with the namespace in its place.
func filled(value any, namespace string) any {
	switch v := value.(type) {
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, item := range v {
			object[key] = filled(item, namespace)
		}
		return object
	case []any:
		list := make([]any, 0, len(v))
		for _, item := range v {
			list = append(list, filled(item, namespace))
		}
		return list
	case string:
		return strings.ReplaceAll(v, "NAMESPACE", namespace)
	default:
		return v
	}
}

// target is resource/name, as kubectl takes it.
func (k *kind) target(name string) string {
	if k.resource.Group == "" {
		return k.resource.Resource + "/" + name
	}
	return k.resource.Resource + "." + k.resource.Version + "." + k.resource.Group + "/" + name
}

// title names the kind in the table.
func (k *kind) title() string {
	title := k.resource.GroupResource().String()
	if k.Only {
		title += " (" + fmt.Sprint(k.Object["metadata"].(map[string]any)["name"]) + ")"
	}
	return title
}
