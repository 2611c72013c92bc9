package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbeyond.dev/stepbeyond/policy"
)

// Proves C-7.
func TestEveryFactAndEveryFrontDoorStandsInTheTable(t *testing.T) {
	root := t.TempDir()
	for _, door := range doors {
		source, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(door.folder), "doc.go"))
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(root, filepath.FromSlash(door.folder))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "doc.go"), source, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := run(root); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "facts.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fact := range policy.AllFacts() {
		if !strings.Contains(string(text), "| "+fact.String()+" |") {
			t.Errorf("fact %s has no row", fact)
		}
	}
	for _, words := range []string{"| EscalatesAuthority | Present | FORBIDDEN | ASK |", "| Local | Absent | ASK | ASK |", "## Kubernetes requests", "## Tool calls"} {
		if !strings.Contains(string(text), words) {
			t.Errorf("the table does not say %q", words)
		}
	}
}

func TestAFrontDoorWithoutACommentIsAnError(t *testing.T) {
	if err := run(t.TempDir()); err == nil || !strings.Contains(err.Error(), "package comment") {
		t.Errorf("error = %v, want the package comment named", err)
	}
}
