package crd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func TestValidExamplesAreAccepted(t *testing.T) {
	paths, err := filepath.Glob("testdata/*/valid/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, path := range paths {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "testdata/"), ".yaml")
		t.Run(name, func(t *testing.T) {
			object := load(t, path)
			kinds[object.GetKind()] = true
			offline := object.DeepCopy()
			if err := k8s.Create(t.Context(), object, client.DryRunAll); err != nil {
				t.Fatalf("refused: %v", err)
			}
			expectSame(t, object, offline)
		})
	}
	if len(kinds) != 4 {
		t.Errorf("examples of %d kinds were tried, want 4: %v", len(kinds), kinds)
	}
}

// expectSame wants the object that was admitted without a cluster to be the one that the API server has.
func expectSame(t *testing.T, stored, offline *unstructured.Unstructured) {
	t.Helper()
	if refused := admit(t, offline); refused != nil {
		t.Fatalf("refused without a cluster: %v", refused)
	}
	// The server's own fields; a test of policies gives its own.
	object := stored.DeepCopy()
	for _, field := range []string{"uid", "creationTimestamp", "generation", "managedFields", "resourceVersion"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	if diff := cmp.Diff(object.Object, offline.Object); diff != "" {
		t.Errorf("the object (-API server +offline):\n%s", diff)
	}
}

// load reads one object and gives a namespaced one the namespace default.
func load(t *testing.T, path string) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	source, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(source); err != nil { // which keeps integers whole, as the API server does
		t.Fatalf("%s: %v", path, err)
	}
	namespaced, err := k8s.IsObjectNamespaced(object)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if namespaced && object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	return object
}

// makeNamespace creates a namespace and tolerates one that exists.
func makeNamespace(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := client.IgnoreAlreadyExists(k8s.Create(t.Context(), namespace)); err != nil {
		t.Fatal(err)
	}
}
