// Conformance writes docs/conformance.md: for every requirement of docs/requirements.md the tests that name it.
//
// A Go test names requirements by a comment in or above a test function or a table, `// Proves C-3.` or
// `// Proves C-3, G-1.`; a scenario in a YAML file under policy/ or test/ by `proves: [C-3]` beside its name. A test
// that names an unknown requirement, or names none where it says that it proves one, is an error.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// run reads and writes below root, the repository's top folder.
func run(root string) error {
	text, err := os.ReadFile(filepath.Join(root, "docs", "requirements.md"))
	if err != nil {
		return err
	}
	groups, err := parseRequirements(string(text))
	if err != nil {
		return fmt.Errorf("docs/requirements.md: %w", err)
	}
	proofs, err := findProofs(os.DirFS(root))
	if err != nil {
		return err
	}
	table, err := render(groups, proofs)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs", "conformance.md"), []byte(table), 0o644)
}
