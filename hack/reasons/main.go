// Reasons writes docs/reasons.md: every reason of policy/reason.go with the word that a client prints, its boundary, what
// it means and the next step that a message ends with. Meanings come from the constants' comments, next steps from the
// messages themselves, so the table cannot differ from either.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "reasons:", err)
		os.Exit(1)
	}
}

// run reads and writes below root, the repository's top folder.
func run(root string) error {
	source, err := os.ReadFile(filepath.Join(root, "policy", "reason.go"))
	if err != nil {
		return err
	}
	meanings, err := parse(source)
	if err != nil {
		return fmt.Errorf("policy/reason.go: %w", err)
	}
	return os.WriteFile(filepath.Join(root, "docs", "reasons.md"), []byte(render(meanings)), 0o644)
}
