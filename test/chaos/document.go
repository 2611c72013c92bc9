package main

import (
	_ "embed"
	"fmt"
	"os"
	"strings"
)

//go:embed head.md
var head string

// writeDocument writes docs/chaos.md about every row that was measured.
func writeDocument(all []*row, results *store) error {
	var measurements []*measured
	for _, r := range all {
		m, err := results.of(r)
		if err != nil {
			return err
		}
		measurements = append(measurements, m)
	}
	path, err := repository("docs", "chaos.md")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(render(all, measurements)), 0o644); err != nil {
		return fmt.Errorf("document: %w", err)
	}
	return nil
}

// render gives the document; a row without a measurement says so.
func render(all []*row, measurements []*measured) string {
	var b strings.Builder
	b.WriteString(head)
	fmt.Fprintf(&b, "\n## Matrix\n\n| Fault | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for i, r := range all {
		values := []string{"not measured"}
		if measurements[i] != nil {
			values = cells(r, measurements[i])
		}
		fmt.Fprintf(&b, "| %s | %s |\n", r.title, strings.Join(values, " | "))
	}
	b.WriteString("\n## Rows\n\n")
	for _, r := range all {
		fmt.Fprintf(&b, "- **%s** (`%s`). %s %s\n", r.title, r.name, r.done, r.expected)
	}
	return b.String()
}
