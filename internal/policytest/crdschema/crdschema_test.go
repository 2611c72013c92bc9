package crdschema

import (
	"strings"
	"testing"
	"testing/fstest"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// What objects are refused for, and with which defaults they are stored, is compared with a real API server in test/crd.

func TestADefinitionThatCannotBeReadIsNamed(t *testing.T) {
	const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tests.acme.example}
spec:
  group: acme.example
  scope: Cluster
  names: {kind: Test, plural: tests}
  versions:
  - name: v1
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
`
	for _, test := range []struct{ name, old, changed, want string }{
		{"a text that is no YAML", "spec:\n", "spec: [\n", "bases/tests.yaml: error converting YAML to JSON"},
		{"an unknown field", "scope: Cluster", "scop: Cluster", `bases/tests.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "scop"`},
		{"a version without a schema", "    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}\n", "", "bases/tests.yaml: spec.versions[0].schema.openAPIV3Schema: is required"},
		{"a schema that says nothing", "openAPIV3Schema: {type: object, properties: {spec: {type: object}}}", "", "bases/tests.yaml: spec.versions[0].schema.openAPIV3Schema: is required"},
		{"a schema that no API server serves", "{spec: {type: object}}", "{spec: {$ref: a}}", "bases/tests.yaml: spec.versions[0].schema.openAPIV3Schema: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			if strings.Count(definition, test.old) != 1 {
				t.Fatalf("%q does not stand once in the definition", test.old)
			}
			text := strings.Replace(definition, test.old, test.changed, 1)
			_, err := read(fstest.MapFS{"bases/tests.yaml": {Data: []byte(text)}})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("read: %v\nwant an error with: %s", err, test.want)
			}
		})
	}
	kinds, err := read(fstest.MapFS{"bases/tests.yaml": {Data: []byte(definition)}})
	if err != nil || kinds[runtimeschema.GroupVersionKind{Group: "acme.example", Version: "v1", Kind: "Test"}] == nil {
		t.Errorf("the definition as it stands gives %v and %v, want kind Test", kinds, err)
	}
}

func TestEveryKindOfOursIsEmbedded(t *testing.T) {
	for _, kind := range []string{"ClusterAgentPolicy", "AgentPolicy", "AgentSession", "PermissionGrant"} {
		found, err := Of(runtimeschema.GroupVersionKind{Group: "stepbeyond.dev", Version: "v1alpha1", Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		if found == nil || found.rules() == nil {
			t.Errorf("%s has no schema with rules", kind)
		}
	}
	if other, err := Of(runtimeschema.GroupVersionKind{Version: "v1", Kind: "Namespace"}); other != nil || err != nil {
		t.Errorf("a Namespace, which we do not define, gives %v and %v", other, err)
	}
}
