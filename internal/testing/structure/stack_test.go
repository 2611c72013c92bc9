package structure_test

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// Proves K-8.
func TestTheStackAndTheTopLevelAreAsAsked(t *testing.T) {
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(goCommand(t, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	var direct []string
	for _, require := range mod.Require {
		if !require.Indirect {
			direct = append(direct, require.Path)
		}
	}
	for _, want := range []string{
		"github.com/go-logr/logr", "k8s.io/apimachinery", "k8s.io/client-go", "sigs.k8s.io/controller-runtime",
	} {
		if !slices.Contains(direct, want) {
			t.Errorf("go.mod does not require %s directly", want)
		}
	}
	for _, want := range []string{
		".ci/run", "Dockerfile", "LICENSE", "Makefile", "PROJECT", "README.md", "api/v1alpha1", "cmd/manager",
		"config/crd/bases/stepbeyond.dev_agentpolicies.yaml", "config/crd/bases/stepbeyond.dev_clusteragentpolicies.yaml",
		"docs", "go.mod", "go.sum", "hack", "internal/controller", "policy", "test", "webhook",
	} {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(want))); err != nil {
			t.Error(err)
		}
	}
}

func TestPROJECTNamesTheKindsThatAreServed(t *testing.T) {
	type kind struct {
		Kind, Version string
		Namespaced    bool
	}
	var project struct {
		Resources []struct {
			Domain, Kind, Version string
			API                   struct{ Namespaced bool }
		}
	}
	decode(t, "PROJECT", &project)
	got := map[string]kind{}
	for _, resource := range project.Resources {
		got[resource.Kind+"."+resource.Domain] = kind{resource.Kind, resource.Version, resource.API.Namespaced}
	}
	want := map[string]kind{}
	for _, file := range sources(t, ".yaml") {
		if path.Dir(file.path) != "config/crd/bases" {
			continue
		}
		var crd struct {
			Spec struct {
				Group, Scope string
				Names        struct{ Kind string }
				Versions     []struct{ Name string }
			}
		}
		decode(t, file.path, &crd)
		for _, version := range crd.Spec.Versions {
			name := crd.Spec.Names.Kind
			want[name+"."+crd.Spec.Group] = kind{name, version.Name, crd.Spec.Scope == "Namespaced"}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds (-served +PROJECT):\n%s", diff)
	}
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
