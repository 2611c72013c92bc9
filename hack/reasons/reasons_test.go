package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
)

func TestMeaningsAreReadFromTheComments(t *testing.T) {
	got, err := parse([]byte(`package policy
type Reason string
const (
	// ReasonForbidden: a rule closes it.
	// It stays closed.
	ReasonForbidden Reason = "Forbidden"
	// BoundaryNone is another type's.
	BoundaryNone Boundary = ""
)
var other = 1
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []meaning{{policy.ReasonForbidden, "A rule closes it. It stays closed."}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(meaning{})); diff != "" {
		t.Errorf("meanings (-want +got):\n%s", diff)
	}
}

func TestAConstantThatSaysNothingIsNamed(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"no comment":                     {`const ReasonA Reason = "A"`, "ReasonA: its comment must be"},
		"a comment about something else": {"const (\n// The first.\nReasonA Reason = \"A\"\n)", "ReasonA: its comment must be"},
		"a value that is no literal":     {"const (\n// ReasonA: a.\nReasonA Reason = other\n)", "ReasonA: is no literal"},
		"a value that is no text":        {"const (\n// ReasonA: a.\nReasonA Reason = 1\n)", "ReasonA: invalid syntax"},
		"no constant of the type":        {"const a = 1", "has no constants"},
		"text that is no Go":             {"const", "expected"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse([]byte("package policy\n" + test.source + "\n")); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want it to say %q", err, test.want)
			}
		})
	}
}

// committed reads the meanings of the engine's own file.
func committed(t *testing.T) []meaning {
	t.Helper()
	source, err := os.ReadFile("../../policy/reason.go")
	if err != nil {
		t.Fatal(err)
	}
	meanings, err := parse(source)
	if err != nil {
		t.Fatal(err)
	}
	return meanings
}

// Proves B-1: the table names every reason that prevents an operation with its boundary and what to do next.
func TestEveryPreventingReasonHasANextStep(t *testing.T) {
	for _, m := range committed(t) {
		if m.reason.Boundary() == policy.BoundaryNone {
			continue
		}
		next := nextStep(m.reason)
		if strings.Trim(next, " .") == "" || strings.Contains(next, "[") || strings.HasSuffix(next, "..") {
			t.Errorf("%s: next step %q is no sentence", m.reason, next)
		}
	}
}

func TestTheCommittedTableIsTheGeneratedOne(t *testing.T) {
	table, err := os.ReadFile("../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(render(committed(t)), string(table)); diff != "" {
		t.Errorf("docs/reasons.md is old, run make reasons (-want +got):\n%s", diff)
	}
}

// Every reason that prevents an operation is produced, not merely named: a scenario expects it, or a test of the code that
// gives it names it.
func TestEveryPreventingReasonIsProducedByATest(t *testing.T) {
	var tests strings.Builder
	for _, top := range []string{"policy", "internal", "webhook", "test"} {
		err := filepath.WalkDir(filepath.Join("..", "..", top), func(path string, entry os.DirEntry, err error) error {
			name := entry.Name()
			scenario := name == "cases.yaml" && strings.Contains(filepath.ToSlash(path), "testdata")
			if err != nil || entry.IsDir() || !scenario && !strings.HasSuffix(name, "_test.go") {
				return err
			}
			// These list the whole vocabulary.
			if name == "reason_test.go" || name == "message_test.go" {
				return nil
			}
			text, err := os.ReadFile(path)
			tests.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range committed(t) {
		if m.reason.Boundary() == policy.BoundaryNone {
			continue
		}
		inGo := strings.Contains(tests.String(), "policy.Reason"+string(m.reason)) ||
			strings.Contains(tests.String(), `"`+string(m.reason)+`"`) || strings.Contains(tests.String(), "403 "+string(m.reason)+": ")
		inScenario := false
		for line := range strings.SplitSeq(tests.String(), "\n") {
			_, reasons, found := strings.Cut(line, "reasons: [")
			list, _, _ := strings.Cut(reasons, "]")
			for reason := range strings.SplitSeq(list, ",") {
				inScenario = inScenario || found && strings.TrimSpace(reason) == string(m.reason)
			}
		}
		if !inGo && !inScenario {
			t.Errorf("no test or scenario produces %s", m.reason)
		}
	}
}
