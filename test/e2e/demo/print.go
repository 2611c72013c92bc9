package main

import (
	"fmt"
	"strings"
)

// print writes the line of a row: who, what, class, verdict, reason; and below it, when it differs, each column that
// does and what kubectl printed.
func (p *player) print(s step, got row, differences []string, answers []answer) {
	mark := "ok"
	if len(differences) > 0 {
		mark = "DIFF"
	}
	c := got.columns()
	fmt.Fprintf(p.opts.out, "%-4s %2d %-9s %-41s %-20s %-15s %s\n", mark, p.count, c[1], c[2], c[3], c[4], explanation(got))
	for _, difference := range differences {
		fmt.Fprintf(p.opts.out, "        %s %s\n", got.Step, difference)
	}
	if len(differences) == 0 && !p.opts.verbose {
		return
	}
	if len(differences) > 0 {
		fmt.Fprintf(p.opts.out, "        row: %s\n", got.tsv())
	}
	fmt.Fprintf(p.opts.out, "        $ %s\n", s.Run)
	for _, a := range answers {
		for line := range strings.Lines(a.output) {
			fmt.Fprintf(p.opts.out, "        %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
}

// explanation is the last column of a printed row: reason, because, and who refused.
func explanation(r row) string {
	var parts []string
	if r.Reason != "" {
		parts = append(parts, r.Reason)
	}
	if r.Because != "" {
		parts = append(parts, "("+r.Because+")")
	}
	if r.By != "" {
		parts = append(parts, "by "+r.By)
	}
	if len(parts) == 0 {
		return r.Effect
	}
	return strings.Join(parts, " ")
}
