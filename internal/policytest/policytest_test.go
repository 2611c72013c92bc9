package policytest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbeyond.dev/stepbeyond/internal/policytest"
)

// TestScenarios runs every folder of policy/testdata.
func TestScenarios(t *testing.T) {
	const root = "../../policy/testdata"
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	folders := 0
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		folders++
		t.Run(entry.Name(), func(t *testing.T) {
			suite, err := policytest.Load(os.DirFS(filepath.Join(root, entry.Name())))
			if err != nil {
				t.Fatal(err)
			}
			results, err := suite.Run()
			if err != nil {
				t.Fatal(err)
			}
			for _, result := range results {
				t.Run(result.Name, func(t *testing.T) {
					if len(result.Differences) > 0 {
						t.Error(strings.Join(result.Differences, "\n"))
					}
				})
			}
		})
	}
	if folders == 0 {
		t.Errorf("%s has no scenarios", root)
	}
}
