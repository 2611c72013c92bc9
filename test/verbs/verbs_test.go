package verbs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/internal/coverage"
)

// effect is what a command leaves.
type effect int

const (
	effectMade    effect = iota + 1 // the object is there
	effectChanged                   // it carries the change
	effectGone                      // it is deleted
	effectAnew                      // it carries the change and is another one
)

// verb is one of kubectl's on one kind.
type verb struct {
	name   string
	effect effect
	// change is a merge patch.
	change map[string]any
	// before is what a person changes first.
	before map[string]any
	// same says what the command asks for: commands with the same word ask the same question of the same object.
	same string
	// rows of the matrix that the requests belong to.
	operations  []coverage.Operation
	subresource string
	// line makes the command line for an object; live is nil when there is none yet.
	line func(t *testing.T, live *unstructured.Unstructured) command
}

// universal are the columns of the table.
var universal = []string{
	"create", "apply new", "apply --server-side new", "apply", "apply --server-side", "replace", "patch strategic", "patch merge",
	"patch json", "edit", "label", "annotate", "replace --force", "delete", "delete --force",
}

// verbsOf a kind, in the order in which an object can bear them.
func verbsOf(t *testing.T, s *subject) []verb {
	t.Helper()
	var all []verb
	if !s.kind.Only {
		all = append(creations(s), changes(t, s)...)
	}
	for i := range s.kind.Commands {
		all = append(all, s.special(t, &s.kind.Commands[i]))
	}
	if !s.kind.Only {
		all = append(all, deletions(s)...)
	}
	return all
}

func creations(s *subject) []verb {
	verbs := make([]verb, 0, 3)
	for name, args := range map[string][]string{
		"create": {"create"}, "apply new": {"apply"}, "apply --server-side new": {"apply", "--server-side"},
	} {
		verbs = append(verbs, verb{
			name: name, effect: effectMade, same: "create", operations: []coverage.Operation{coverage.OperationCreate},
			line: func(t *testing.T, _ *unstructured.Unstructured) command {
				object := s.base
				if !s.readable || s.redone > 0 { // the use of another verb may still be open
					word := fmt.Sprintf("%s %d", name, s.redone)
					object = with(t, object, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"acme.example/verb": word}}})
				}
				return command{args: append(slices.Clone(args), "-f", written(t, object))}
			},
		})
	}
	slices.SortFunc(verbs, byColumn)
	return verbs
}

func byColumn(a, b verb) int {
	return slices.Index(universal, a.name) - slices.Index(universal, b.name)
}

func changes(t *testing.T, s *subject) []verb {
	t.Helper()
	change := s.kind.Change
	target := s.kind.target(s.base.GetName())
	patch := encoded(t, change)
	lines := map[string]func(*testing.T, *unstructured.Unstructured) command{
		"apply": func(t *testing.T, _ *unstructured.Unstructured) command {
			return command{args: []string{"apply", "-f", written(t, with(t, s.base, change))}}
		},
		"apply --server-side": func(t *testing.T, _ *unstructured.Unstructured) command {
			return command{args: []string{"apply", "--server-side", "--force-conflicts", "-f", written(t, with(t, s.base, change))}}
		},
		"replace": func(t *testing.T, live *unstructured.Unstructured) command {
			return command{args: []string{"replace", "-f", written(t, with(t, bare(live), change))}}
		},
		"patch strategic": constant("patch", target, "--type=strategic", "-p", patch),
		"patch merge":     constant("patch", target, "--type=merge", "-p", patch),
		"patch json": func(t *testing.T, live *unstructured.Unstructured) command {
			return command{args: []string{"patch", target, "--type=json", "-p", encoded(t, operations(live.Object, change, ""))}}
		},
		"edit": func(t *testing.T, _ *unstructured.Unstructured) command {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			return command{args: []string{"edit", target}, env: []string{"KUBE_EDITOR=" + self, editorVariable + "=" + patch}}
		},
	}
	verbs := make([]verb, 0, len(lines)+2)
	for name, line := range lines {
		verbs = append(verbs, s.changing(t, name, change, line))
	}
	slices.SortFunc(verbs, byColumn)
	label := map[string]any{"metadata": map[string]any{"labels": map[string]any{"acme.example/team": "shop"}}}
	note := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"acme.example/note": "hello"}}}
	return append(verbs,
		s.changing(t, "label", label, constant("label", target, "acme.example/team=shop")),
		s.changing(t, "annotate", note, constant("annotate", target, "acme.example/note=hello")))
}

func (s *subject) changing(t *testing.T, name string, change map[string]any, line func(*testing.T, *unstructured.Unstructured) command) verb {
	t.Helper()
	return verb{
		name: name, effect: effectChanged, change: change, same: encoded(t, change),
		operations: []coverage.Operation{coverage.OperationUpdate}, line: line,
	}
}

func (s *subject) special(t *testing.T, c *special) verb {
	t.Helper()
	args := slices.Clone(c.Args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "TARGET", s.kind.target(s.base.GetName()))
	}
	v := s.changing(t, c.Verb, c.Change, constant(args...))
	v.before, v.subresource = c.Before, c.Subresource
	if c.Before != nil {
		v.same = c.Verb // of another object than the others change
	}
	if c.Gone {
		v.effect, v.same = effectGone, c.Verb
	}
	if c.Operation != "" {
		v.operations = []coverage.Operation{c.Operation}
	}
	return v
}

func deletions(s *subject) []verb {
	target := s.kind.target(s.base.GetName())
	change := s.kind.Change
	gone := func(name string, args ...string) verb {
		return verb{name: name, effect: effectGone, same: name, operations: []coverage.Operation{coverage.OperationDelete}, line: constant(args...)}
	}
	return []verb{
		{
			name: "replace --force", effect: effectAnew, change: change, same: "replace --force",
			operations: []coverage.Operation{coverage.OperationDelete, coverage.OperationCreate},
			line: func(t *testing.T, _ *unstructured.Unstructured) command {
				return command{args: []string{"replace", "--force", "-f", written(t, with(t, s.base, change))}}
			},
		},
		gone("delete", "delete", target),
		gone("delete --force", "delete", target, "--force", "--grace-period=0"),
	}
}

func constant(args ...string) func(*testing.T, *unstructured.Unstructured) command {
	return func(*testing.T, *unstructured.Unstructured) command { return command{args: args} }
}

// with is a manifest with a change.
func with(t *testing.T, object *unstructured.Unstructured, change map[string]any) *unstructured.Unstructured {
	t.Helper()
	result, err := changed(object, change)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// written is the file that holds an object.
func written(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "object.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
