package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const guard = `A guard is gone.
--- a/policy/a.go
+++ b/policy/a.go
@@ -2,2 +2,2 @@
 func guard() bool {
-	return closed
+	return false
`

func TestAPatchIsRead(t *testing.T) {
	want := patch{
		breaks: "A guard is gone.", path: "policy/a.go",
		before: "func guard() bool {\n\treturn closed\n", after: "func guard() bool {\n\treturn false\n",
	}
	got, err := parse(guard)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(patch{})); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}

func TestWhatIsWrongInAPatchIsNamed(t *testing.T) {
	for name, test := range map[string]struct{ old, changed, want string }{
		"nothing":                      {guard, "", "line 1: must say in a sentence"},
		"no sentence":                  {"A guard is gone.\n", "", "line 1: must say in a sentence"},
		"no full stop":                 {"gone.", "gone", "line 1: must say in a sentence"},
		"a sentence alone":             {guard, "A guard is gone.\n", "has no diff"},
		"two files":                    {"+++ b/policy/a.go", "+++ b/policy/b.go", "lines 2 and 3: must be"},
		"no prefixes":                  {"--- a/", "--- ", "lines 2 and 3: must be"},
		"no hunk":                      {"@@ -2,2 +2,2 @@", "@", "line 4: must begin the hunk"},
		"two hunks":                    {"+\treturn false\n", "+\treturn false\n@@ -9 +9 @@\n-a\n+b\n", "line 8: a line of the one hunk"},
		"an insertion without a place": {" func guard() bool {\n-\treturn closed\n", "", "changes nothing"},
		"the same on both sides":       {"return false", "return closed", "changes nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(guard, test.old) {
				t.Fatalf("%q does not stand in the example", test.old)
			}
			_, err := parse(strings.Replace(guard, test.old, test.changed, 1))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want it to say %q", err, test.want)
			}
		})
	}
}

func TestAPatchIsAppliedWhereItsLinesStand(t *testing.T) {
	patches, err := readPatches(fstest.MapFS{"001-guard.patch": {Data: []byte(guard)}, "README.md": {Data: []byte("no patch")}})
	if err != nil {
		t.Fatal(err)
	}
	const file = "package a\n\n// moved down since\nfunc guard() bool {\n\treturn closed\n}\n"
	mutants, err := mutate(fstest.MapFS{"policy/a.go": {Data: []byte(file)}}, patches)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(file, "closed", "false", 1)
	if len(mutants) != 1 || mutants[0].text != want || mutants[0].name != "001-guard" {
		t.Errorf("mutants %+v, want 001-guard with %q", mutants, want)
	}
	for name, test := range map[string]struct{ file, want string }{
		"a file that is gone":                {"", "001-guard: does not apply: open policy/a.go"},
		"lines that are gone":                {"package a\n", "001-guard: does not apply: policy/a.go has no such lines"},
		"lines that only end alike":          {strings.Replace(file, "func", "afunc", 1), "001-guard: does not apply: policy/a.go has no such lines"},
		"lines that stand in several places": {file + file, "001-guard: does not apply: policy/a.go has its lines 2 times"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{}
			if test.file != "" {
				tree["policy/a.go"] = &fstest.MapFile{Data: []byte(test.file)}
			}
			if _, err := mutate(tree, patches); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// A package's tests are concerned by a change below it, in code or through a package that only tests import, its own tests
// first.
func TestTestsThatAChangeReachesAreRun(t *testing.T) {
	pkg := func(name string, deps, testImports []string) goPackage {
		p := goPackage{ImportPath: "m/" + name, Deps: deps, XTestImports: testImports, XTestGoFiles: []string{"a_test.go"}}
		p.Module.Path = "m"
		return p
	}
	packages := []goPackage{
		pkg("policy", nil, []string{"m/policy/baseline"}),
		pkg("policy/baseline", []string{"m/policy"}, nil),
		pkg("policy/scope", nil, nil),
		pkg("policy/tier", nil, []string{"m/policy"}),
	}
	for file, want := range map[string][]string{
		"policy/rule.go":          {"m/policy", "m/policy/tier", "m/policy/baseline"},
		"policy/baseline/v1.yaml": {"m/policy/baseline", "m/policy"},
		"policy/scope/state.go":   {"m/policy/scope"},
		"internal/grant/use.go":   nil,
	} {
		var got []string
		for _, p := range concerned(packages, file) {
			got = append(got, p.ImportPath)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestPatchesAreChosenByTheBeginningOfTheirNames(t *testing.T) {
	patches := []patch{{name: "001-a"}, {name: "002-b"}, {name: "010-c"}}
	for _, test := range []struct {
		prefixes []string
		want     int
	}{{nil, 3}, {[]string{"00"}, 2}, {[]string{"002", "0"}, 3}, {[]string{"9"}, 0}} {
		if got := chosen(patches, test.prefixes); len(got) != test.want {
			t.Errorf("%v chooses %d patches, want %d", test.prefixes, len(got), test.want)
		}
	}
}

// A patch that an edit has left behind is found here, long before the mutants are run.
func TestEveryPatchApplies(t *testing.T) {
	patches, err := readPatches(os.DirFS("patches"))
	if err != nil {
		t.Fatal(err)
	}
	if len(patches) < 30 {
		t.Errorf("%d patches, want at least 30", len(patches))
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mutate(os.DirFS(root), patches); err != nil {
		t.Error(err)
	}
}

func TestAKillerIsNamed(t *testing.T) {
	for output, want := range map[string]string{
		"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\nFAIL\n": "m/policy TestA",
		"panic: test timed out\n": "m/policy",
	} {
		if got := failed([]byte(output), "m/policy"); got != want {
			t.Errorf("%q is told as %q, want %q", output, got, want)
		}
	}
}
