package policytest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/internal/policytest"
)

// scenarios are the folders of policy/testdata.
func scenarios(t *testing.T) []string {
	t.Helper()
	const root = "../../policy/testdata"
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, entry := range entries {
		if entry.IsDir() {
			folders = append(folders, filepath.Join(root, entry.Name()))
		}
	}
	if len(folders) == 0 {
		t.Fatalf("%s has no scenarios", root)
	}
	return folders
}

// results runs every case of a folder.
func results(t *testing.T, folder string) []policytest.Result {
	t.Helper()
	suite, err := policytest.Load(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	results, err := suite.Run()
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// TestScenarios runs every folder of policy/testdata.
func TestScenarios(t *testing.T) {
	for _, folder := range scenarios(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			for _, result := range results(t, folder) {
				t.Run(result.Name, func(t *testing.T) {
					if !result.Passed() {
						t.Errorf("%v\n%s", result.Differences, strings.Join(result.Because, "\n"))
					}
				})
			}
		})
	}
}

// Proves K-5: a reader finds the case in its file, and sees which rules no case tries.
func TestResultsNameTheLineOfTheCaseAndTheRulesThatNoCaseTouches(t *testing.T) {
	folder := fstest.MapFS{
		"cases.yaml": {Data: []byte(cases)},
		"policy.yaml": {Data: []byte(strings.Replace(policies, "---\n", `  rules:
  - {name: forbid-nodes, class: FORBIDDEN, match: {kubernetes: [{groups: [""], resources: [nodes], verbs: [update]}]}}
  - {name: ask-config, class: ASK, match: {kubernetes: [{groups: [""], resources: [configmaps], verbs: [delete]}]}}
  - {name: count-config, class: ASK, enforcement: Audit, match: {kubernetes: [{groups: [""], resources: [configmaps], verbs: [create]}]}}
---
`, 1))},
	}
	suite, err := policytest.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	results, err := suite.Run()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(cases, "\n")
	for _, result := range results {
		if result.Line == 0 || !strings.Contains(lines[result.Line-1], "- name: "+result.Name) {
			t.Errorf("%q stands in line %d", result.Name, result.Line)
		}
	}
	if diff := cmp.Diff([]string{"default/forbid-nodes"}, suite.Untouched(results)); diff != "" {
		t.Errorf("rules that no case touches (-want +got):\n%s", diff)
	}
}
