package enforcement

import (
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	object := &unstructured.Unstructured{}
	if err == nil {
		err = object.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// Proves M-2.
func TestDifferencesNameThePlaceAndItsOwner(t *testing.T) {
	const (
		head  = "apiVersion: v1\nkind: Thing\nmetadata: {name: x}\n"
		owned = `apiVersion: v1
kind: Thing
metadata:
  name: x
  managedFields:
  - {manager: stepbeyond-manager, operation: Apply, fieldsV1: {"f:spec": {"f:policy": {}}}}
  - {manager: intruder, operation: Update, fieldsV1: {"f:spec": {"f:conditions": {'k:{"name":"b"}': {".": {}, "f:rule": {}}}, "f:policy": {}}}}
  - {manager: watcher, operation: Update, subresource: status, fieldsV1: {"f:spec": {"f:policy": {}}}}
`
		wanted = head + "spec: {policy: Fail, conditions: [{name: a, rule: r}], list: [x, y], groups: [\"\"]}\n"
	)
	tests := []struct {
		name, live string
		want       []string
	}{
		{"equal", wanted, nil},
		{"empty fields are defaults", wanted + "selector: {}\nother: []\nstatus: {x: 1}\n", nil},
		{"a field that is not wanted", head + "spec: {policy: Fail, conditions: [{name: a, rule: r}], list: [x, y], groups: [\"\"], params: {a: b}}\n",
			[]string{"spec.params"}},
		{"an element more, and a value, with who wrote them", owned + "spec: {policy: Ignore, conditions: [{name: a, rule: r}, {name: b, rule: s}], list: [x, y], groups: [\"\"]}\n",
			[]string{"spec.conditions[b] by intruder", "spec.policy by intruder"}},
		{"an element that is gone has no owner", owned + "spec: {policy: Fail, list: [x, y], groups: [\"\"]}\n", []string{"spec.conditions by intruder"}},
		{"a value in an element", head + "spec: {policy: Fail, conditions: [{name: a, rule: s}], list: [x, y], groups: [\"\"]}\n",
			[]string{"spec.conditions[a].rule"}},
		{"another order", head + "spec: {policy: Fail, conditions: [{name: a, rule: r}], list: [y, x], groups: [\"\"]}\n", []string{"spec.list"}},
		{"the core group is no empty value", head + "spec: {policy: Fail, conditions: [{name: a, rule: r}], list: [x, y], groups: []}\n", []string{"spec.groups"}},
		{"twice the same name", head + "spec: {policy: Fail, conditions: [{name: a, rule: r}, {name: a, rule: s}], list: [x, y], groups: [\"\"]}\n",
			[]string{"spec.conditions"}},
		{"nothing is left", head, []string{"spec"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, d := range differences(objectOf(t, wanted), objectOf(t, tt.live)) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheOrderOfNamedElementsCounts(t *testing.T) {
	const head = "apiVersion: v1\nkind: Thing\nmetadata: {name: x}\n"
	found := differences(objectOf(t, head+"spec: {variables: [{name: a}, {name: b}]}\n"), objectOf(t, head+"spec: {variables: [{name: b}, {name: a}]}\n"))
	if len(found) != 1 || found[0].Path != "spec.variables" {
		t.Errorf("differences %v, want spec.variables: a variable may use an earlier one", found)
	}
}

// A manager takes a definition with its own revision for its own schema, and repairs it if it differs: two releases with
// one revision and two schemas would fight about it.
//
// Proves M-2.
func TestAnotherSchemaOfADefinitionHasAnotherRevision(t *testing.T) {
	all, err := definitions()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(revisionsFile)
	// By the name of the definition and the revision.
	digests := map[string]map[string]string{}
	if err == nil {
		err = yaml.UnmarshalStrict(data, &digests)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 || len(all) != len(digests) {
		t.Fatalf("%d definitions are embedded, and %s has %d", len(all), revisionsFile, len(digests))
	}
	for _, definition := range all {
		t.Run(definition.GetName(), func(t *testing.T) {
			n, digests := revision(definition), digests[definition.GetName()]
			if n < 1 {
				t.Fatalf("has no %s", AnnotationSchemaRevision)
			}
			got, err := digestOf(definition)
			if err != nil {
				t.Fatal(err)
			}
			if want := digests[strconv.Itoa(n)]; got != want {
				t.Errorf("the schema is not the one of revision %d in %s: raise %s of the type in api/v1alpha1 by one, run make generate, and add a line\n  %q: %s\n"+
					"(replace the last line instead only if no release has that revision)", n, revisionsFile, AnnotationSchemaRevision, strconv.Itoa(n+1), got)
			}
			if len(digests) != n {
				t.Errorf("%s has %d revisions, want every one up to %d and no later one", revisionsFile, len(digests), n)
			}
		})
	}
}

const revisionsFile = "testdata/revisions.yaml"

func TestDescriptionsOfADefinitionDecideNothing(t *testing.T) {
	definition := func(schema string) *unstructured.Unstructured {
		return objectOf(t, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\nspec: {schema: "+schema+"}\n")
	}
	wanted := definition("{description: long, properties: {description: {type: string, description: text}}}")
	if found := differences(wanted, definition("{properties: {description: {type: string}}}")); len(found) > 0 {
		t.Errorf("%v differs, but only texts are gone", found)
	}
	if found := differences(wanted, definition("{properties: {}}")); len(found) != 1 {
		t.Errorf("%v differs, want the property named description", found)
	}
}

func TestAddressesOfAClientConfiguration(t *testing.T) {
	for host, want := range map[string]string{
		"https://10.96.0.1:443": "10.96.0.1:443", "https://10.96.0.1": "10.96.0.1:443", "127.0.0.1:6443": "127.0.0.1:6443",
		"kubernetes.example.com": "kubernetes.example.com:443", "https://[fd00::1]:6443/prefix": "[fd00::1]:6443", "https://[fd00::1]": "[fd00::1]:443",
	} {
		if got, err := hostPort(host); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", host, got, err, want)
		}
	}
}
