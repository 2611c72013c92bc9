package structure_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Written in two parts, so that this file does not hold what it forbids.
var scaffolds = []string{"+kubebuilder:" + "scaffold", "TODO" + "(user)"}

// explained is a nolint that names its linters and, after a second comment mark, the reason.
var explained = regexp.MustCompile(`^//nolint:[a-z0-9]+(,[a-z0-9]+)* // \S`)

// scaffolding names each line that a project generator left behind.
func scaffolding(sources []source) []string {
	var found []string
	for _, s := range sources {
		for i, line := range strings.Split(s.text, "\n") {
			for _, scaffold := range scaffolds {
				if strings.Contains(line, scaffold) {
					found = append(found, fmt.Sprintf("%s:%d: a scaffold comment, %s", s.path, i+1, scaffold))
				}
			}
		}
	}
	return found
}

// bareNolints names each nolint without a linter or without a reason, in tests too.
func bareNolints(sources []source) ([]string, error) {
	var found []string
	for _, s := range sources {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, s.path, s.text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, group := range file.Comments {
			for _, comment := range group.List {
				text := strings.Join(strings.Fields(comment.Text), " ")
				directive := strings.HasPrefix(text, "//nolint") || strings.HasPrefix(text, "// nolint")
				if directive && !explained.MatchString(text) {
					found = append(found, fmt.Sprintf("%s: want //nolint:LINTER // reason", files.Position(comment.Pos())))
				}
			}
		}
	}
	return found, nil
}

func TestNoScaffoldCommentIsLeft(t *testing.T) {
	report(t, scaffolding(sources(t, ".go", ".yaml", ".md", ".sh", "Makefile", "Dockerfile", "PROJECT")))
}

func TestEveryNolintIsExplained(t *testing.T) {
	found, err := bareNolints(sources(t, ".go"))
	if err != nil {
		t.Fatal(err)
	}
	report(t, found)
}

func TestAScaffoldCommentIsFound(t *testing.T) {
	got := scaffolding([]source{
		{"a.go", "package a\n\t// " + scaffolds[1] + ": fill in\n"},
		{"config/kustomization.yaml", "# " + scaffolds[0] + ":crdkustomizeresource\n"},
		{"b.go", "package b\n// +kubebuilder:rbac:groups=apps\n"},
	})
	want := []string{
		"a.go:2: a scaffold comment, " + scaffolds[1],
		"config/kustomization.yaml:1: a scaffold comment, " + scaffolds[0],
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scaffolding (-want +got):\n%s", diff)
	}
}

func TestABareNolintIsFound(t *testing.T) {
	tests := []struct{ name, comment, want string }{
		{"a linter and a reason", "//nolint:errcheck // the process is ending", ""},
		{"two linters and a reason", "//nolint:errcheck,gosec // the process is ending", ""},
		{"no linter", "//nolint // the process is ending", "a.go:3:12: want //nolint:LINTER // reason"},
		{"no reason", "//nolint:errcheck", "a.go:3:12: want //nolint:LINTER // reason"},
		{"a space in front, which the linters ignore", "// nolint:errcheck // reason", "a.go:3:12: want //nolint:LINTER // reason"},
		{"an ordinary comment", "// says nolint somewhere", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := bareNolints([]source{{"a.go", "package a\n\nvar _ = 0; " + tt.comment + "\n"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("bare nolints (-want +got):\n%s", diff)
			}
		})
	}
}
