package policytest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
					if len(result.Differences) > 0 {
						t.Error(strings.Join(result.Differences, "\n"))
					}
				})
			}
		})
	}
}
