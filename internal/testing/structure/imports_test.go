package structure_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// goPackage is what `go list -json` says of one package; imports of test files are not in it.
type goPackage struct {
	ImportPath string
	Name       string
	Imports    []string
	Deps       []string
}

// importRule forbids some imports to some packages. Paths of this module begin with "." ("./policy/expr"), all
// others are whole ("k8s.io/api/core/v1").
type importRule struct {
	text    string
	from    func(importer string) bool
	forbids func(importer, imported string) bool
	deps    bool // the rule looks at all dependencies and not only at direct imports
}

var importRules = []importRule{
	{
		text:    "policy/** imports no k8s.io or sigs.k8s.io, except policy/expr the CEL function libraries",
		from:    within("./policy"),
		forbids: forbiddenKubernetes,
	},
	{
		text:    "policy/** imports no api/, internal/, webhook/ or cmd/",
		from:    within("./policy"),
		forbids: to(within("./api", "./internal", "./webhook", "./cmd")),
	},
	{
		text:    "policy/** does not depend on client-go or controller-runtime",
		from:    within("./policy"),
		forbids: to(within("k8s.io/client-go", "sigs.k8s.io/controller-runtime")),
		deps:    true,
	},
	{
		text:    "api/** does not depend on policy/, internal/, client-go or controller-runtime",
		from:    within("./api"),
		forbids: to(within("./policy", "./internal", "k8s.io/client-go", "sigs.k8s.io/controller-runtime")),
		deps:    true,
	},
	{
		text:    "the stored types import apimachinery and the standard library only",
		from:    within("./api/v1alpha1"),
		forbids: to(func(imported string) bool { return !standard(imported) && !within("k8s.io/apimachinery")(imported) }),
	},
	{
		text:    "the wire types import the standard library only",
		from:    within("./api/decision"),
		forbids: to(func(imported string) bool { return !standard(imported) }),
	},
	{
		text:    "only internal/manager imports webhook/",
		from:    func(importer string) bool { return !within("./internal/manager", "./webhook")(importer) },
		forbids: to(within("./webhook")),
	},
	{
		text: "only internal/manager imports internal/controller/**",
		from: func(importer string) bool { return !within("./internal/manager")(importer) },
		forbids: func(importer, imported string) bool {
			return within("./internal/controller")(imported) && !sameKind(importer, imported)
		},
	},
}

func forbiddenKubernetes(importer, imported string) bool {
	if within("./policy/expr")(importer) && imported == "k8s.io/apiserver/pkg/cel/library" {
		return false
	}
	return within("k8s.io", "sigs.k8s.io")(imported)
}

// sameKind is true for two packages of one controller: ./internal/controller/KIND/**.
func sameKind(a, b string) bool {
	kind := func(p string) []string {
		elements := strings.Split(p, "/")
		return elements[:min(4, len(elements))]
	}
	return slices.Equal(kind(a), kind(b))
}

// within is true for the named folders and everything below them.
func within(folders ...string) func(string) bool {
	return func(p string) bool {
		return slices.ContainsFunc(folders, func(f string) bool { return p == f || strings.HasPrefix(p, f+"/") })
	}
}

func to(imported func(string) bool) func(string, string) bool {
	return func(_, p string) bool { return imported(p) }
}

// standard is true for packages of the standard library: the first element of every other path has a dot.
func standard(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return !strings.Contains(first, ".")
}

func relative(importPath string) string {
	if own, ok := strings.CutPrefix(importPath, module+"/"); ok {
		return "./" + own
	}
	return importPath
}

// brokenImports names each import that a rule forbids.
func brokenImports(packages []goPackage) []string {
	var broken []string
	for _, p := range packages {
		importer := relative(p.ImportPath)
		for _, rule := range importRules {
			if !rule.from(importer) {
				continue
			}
			imports := p.Imports
			if rule.deps {
				imports = p.Deps
			}
			for _, imported := range imports {
				if rule.forbids(importer, relative(imported)) {
					broken = append(broken, fmt.Sprintf("%s -> %s: %s", importer, relative(imported), rule.text))
				}
			}
		}
	}
	return broken
}

// grabBags names each package whose name or folder says nothing of what it does.
func grabBags(packages []goPackage) []string {
	banned := []string{"util", "utils", "common", "helper", "helpers", "misc"}
	var found []string
	for _, p := range packages {
		if slices.Contains(banned, p.Name) || slices.Contains(banned, path.Base(p.ImportPath)) {
			found = append(found, fmt.Sprintf("%s: a package is named for what it does, not %s", relative(p.ImportPath), p.Name))
		}
	}
	return found
}

func TestImportsFollowTheLayout(t *testing.T) { report(t, brokenImports(packages(t))) }

func TestPackagesAreNamedForWhatTheyDo(t *testing.T) { report(t, grabBags(packages(t))) }

func TestAForbiddenImportIsFound(t *testing.T) {
	own := func(p string) string { return module + "/" + p }
	tests := []struct {
		name string
		pkg  goPackage
		want []string
	}{
		{
			name: "the engine with the standard library and cel-go",
			pkg:  goPackage{ImportPath: own("policy"), Imports: []string{"slices", "github.com/google/cel-go/cel", own("policy/expr")}},
		},
		{
			name: "the engine with a Kubernetes type",
			pkg:  goPackage{ImportPath: own("policy/kube"), Imports: []string{"k8s.io/api/core/v1", "sigs.k8s.io/yaml"}},
			want: []string{
				"./policy/kube -> k8s.io/api/core/v1: " + importRules[0].text,
				"./policy/kube -> sigs.k8s.io/yaml: " + importRules[0].text,
			},
		},
		{
			name: "the CEL function libraries, in policy/expr only",
			pkg:  goPackage{ImportPath: own("policy/expr"), Imports: []string{"k8s.io/apiserver/pkg/cel/library", "k8s.io/apiserver/pkg/cel"}},
			want: []string{"./policy/expr -> k8s.io/apiserver/pkg/cel: " + importRules[0].text},
		},
		{
			name: "the engine with a stored type",
			pkg:  goPackage{ImportPath: own("policy"), Imports: []string{own("api/v1alpha1"), own("internal/identity")}},
			want: []string{
				"./policy -> ./api/v1alpha1: " + importRules[1].text,
				"./policy -> ./internal/identity: " + importRules[1].text,
			},
		},
		{
			name: "the engine with a client behind another package",
			pkg:  goPackage{ImportPath: own("policy/expr"), Deps: []string{"k8s.io/client-go/rest", "k8s.io/apimachinery/pkg/types"}},
			want: []string{"./policy/expr -> k8s.io/client-go/rest: " + importRules[2].text},
		},
		{
			name: "a stored type with the engine behind another package, and with a client",
			pkg: goPackage{
				ImportPath: own("api/v1alpha1"),
				Imports:    []string{"k8s.io/apimachinery/pkg/apis/meta/v1", "sigs.k8s.io/controller-runtime/pkg/scheme"},
				Deps:       []string{own("policy"), "sigs.k8s.io/controller-runtime/pkg/scheme"},
			},
			want: []string{
				"./api/v1alpha1 -> ./policy: " + importRules[3].text,
				"./api/v1alpha1 -> sigs.k8s.io/controller-runtime/pkg/scheme: " + importRules[3].text,
				"./api/v1alpha1 -> sigs.k8s.io/controller-runtime/pkg/scheme: " + importRules[4].text,
			},
		},
		{
			name: "a wire type with a Kubernetes type",
			pkg:  goPackage{ImportPath: own("api/decision/v1"), Imports: []string{"time", "k8s.io/apimachinery/pkg/types"}},
			want: []string{"./api/decision/v1 -> k8s.io/apimachinery/pkg/types: " + importRules[5].text},
		},
		{
			name: "a command with the webhook and a controller",
			pkg:  goPackage{ImportPath: own("cmd/manager"), Imports: []string{own("webhook"), own("internal/controller/agentsession"), own("internal/manager")}},
			want: []string{
				"./cmd/manager -> ./webhook: " + importRules[6].text,
				"./cmd/manager -> ./internal/controller/agentsession: " + importRules[7].text,
			},
		},
		{
			name: "the manager with the webhook and a controller",
			pkg:  goPackage{ImportPath: own("internal/manager"), Imports: []string{own("webhook"), own("internal/controller/agentsession")}},
		},
		{
			name: "a controller with its own package and with another's",
			pkg: goPackage{
				ImportPath: own("internal/controller/agentsession"),
				Imports:    []string{own("internal/controller/agentsession/status"), own("internal/controller/permissiongrant")},
			},
			want: []string{"./internal/controller/agentsession -> ./internal/controller/permissiongrant: " + importRules[7].text},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, brokenImports([]goPackage{tt.pkg})); diff != "" {
				t.Errorf("broken imports (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAGrabBagIsFound(t *testing.T) {
	got := grabBags([]goPackage{
		{ImportPath: module + "/internal/grant", Name: "grant"},
		{ImportPath: module + "/internal/helpers", Name: "grants"},
		{ImportPath: module + "/internal/x", Name: "utils"},
	})
	want := []string{
		"./internal/helpers: a package is named for what it does, not grants",
		"./internal/x: a package is named for what it does, not utils",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("grab bags (-want +got):\n%s", diff)
	}
}
