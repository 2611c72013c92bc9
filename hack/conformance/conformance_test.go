package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const aGoTest = `package p

import "testing"

// TestEpoch is about old grants.
// Proves G-2.
func TestEpoch(t *testing.T) {
	rows := []string{
		"plain",
		"denied", // Proves C-3, G-1 and G-2.
	}
	_ = rows
}

// Proves C-1.
var table = []string{"row"}
`

const aScenario = `apiVersion: test.stepbeyond.dev/v1alpha1
spec:
  cases:
  - name: no approval opens a role binding
    proves: [C-3, C-6]
  - name: proves nothing
`

func TestFindProofs(t *testing.T) {
	tests := []struct {
		name    string
		files   map[string]string
		want    []proof
		wantErr string
	}{
		{
			name:  "a Go test is found by its comments, in a table row too, and other Go files are not read",
			files: map[string]string{"policy/a_test.go": aGoTest, "policy/a.go": aGoTest},
			want: []proof{
				{"G-2", "policy/a_test.go", "TestEpoch"},
				{"C-3", "policy/a_test.go", "TestEpoch"},
				{"G-1", "policy/a_test.go", "TestEpoch"},
				{"G-2", "policy/a_test.go", "TestEpoch"},
				{"C-1", "policy/a_test.go", "table"},
			},
		},
		{
			name:  "a scenario is found by its name, and build output is not read",
			files: map[string]string{"policy/testdata/rbac/cases.yaml": aScenario, "bin/x_test.go": aGoTest},
			want: []proof{
				{"C-3", "policy/testdata/rbac/cases.yaml", "no approval opens a role binding"},
				{"C-6", "policy/testdata/rbac/cases.yaml", "no approval opens a role binding"},
			},
		},
		{
			name:    "a comment that proves nothing by ID is an error with its place",
			files:   map[string]string{"a_test.go": "package p\n\n// Proves everything.\nfunc TestA() {}\n"},
			wantErr: `a_test.go:3:1: "// Proves everything." names no requirement`,
		},
		{
			name:    "a comment outside of every test is an error with its place",
			files:   map[string]string{"a_test.go": "package p\n\n// Proves C-1.\n\nfunc TestA() {}\n"},
			wantErr: `a_test.go:3:1: "// Proves C-1." belongs to no test`,
		},
		{
			name:    "a scenario without a name is an error with its place",
			files:   map[string]string{"test/cases.yaml": "cases:\n- proves: [C-1]\n"},
			wantErr: "test/cases.yaml:2: proves needs a name",
		},
		{
			name:    "a list that is none is an error",
			files:   map[string]string{"test/cases.yaml": "cases:\n- name: a\n  proves: {C-1: true}\n"},
			wantErr: "test/cases.yaml:2: yaml:",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			repository := fstest.MapFS{}
			for name, content := range tt.files {
				repository[name] = &fstest.MapFile{Data: []byte(content)}
			}
			got, err := findProofs(repository)
			if (err == nil) != (tt.wantErr == "") {
				t.Fatalf("error %v, want %q", err, tt.wantErr)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error %v, want %q", err, tt.wantErr)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(proof{})); diff != "" {
				t.Errorf("proofs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRequirements(t *testing.T) {
	tests := []struct{ name, text, wantErr string }{
		{"a list in order is accepted", "## C: classes\n\n- C-1: One.\n- C-2: Two.\n", ""},
		{"a gap in the numbers is refused", "## C: classes\n- C-1: One.\n- C-3: Three.\n", "line 3: C-3, want C-2"},
		{"a requirement under another group's heading is refused", "## C: classes\n- G-1: One.\n", "line 2: G-1 is not in its group"},
		{"a line of another shape is refused", "## C: classes\n- C-1 One.\n", `line 2: want "- X-1: text"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseRequirements(tt.text)
			if tt.wantErr == "" && err != nil || tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
				t.Errorf("error %v, want %q", err, tt.wantErr)
			}
		})
	}
}

func TestRender(t *testing.T) {
	groups := []group{{letter: "C", title: "classes", requirements: []requirement{{"C-1", "One class."}, {"C-2", "A|B."}}}}
	got, err := render(groups, []proof{
		{"C-1", "policy/b_test.go", "TestB"},
		{"C-1", "policy/a_test.go", "TestA"},
		{"C-1", "policy/a_test.go", "TestA"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `
## C: classes

1 of 2 named by a test.

| ID | Requirement | Tests |
|---|---|---|
| C-1 | One class. | [TestA](../policy/a_test.go), [TestB](../policy/b_test.go) |
| C-2 | A\|B. | ` + "`none`" + ` |
`
	if diff := cmp.Diff(want, strings.TrimPrefix(got, preamble)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}

	_, err = render(groups, []proof{{"Z-9", "policy/a_test.go", "TestA"}})
	if err == nil || !strings.Contains(err.Error(), `policy/a_test.go: "TestA" names Z-9`) {
		t.Errorf("a test that names an unknown requirement: error %v", err)
	}
}

func TestTheCommittedRequirementsAreWellFormed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "requirements.md"))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := parseRequirements(string(text))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, g := range groups {
		got[g.letter] = len(g.requirements)
	}
	want := map[string]int{
		"M": 6, "P": 4, "I": 2, "D": 5, "S": 4, "C": 7, "G": 9, "N": 4, "U": 7, "V": 4, "O": 2, "H": 4,
		"A": 3, "E": 4, "F": 3, "T": 7, "B": 8, "R": 7, "L": 3, "K": 10,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requirements per group (-want +got):\n%s", diff)
	}
}
