// Chaos brings faults over real control planes and writes docs/chaos.md: what governed and other identities were answered
// while each fault lasted and after it (requirements K-2, K-6, F-1, M-2, G-5). It needs the control plane of make
// controlplane and takes about half an hour.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	only := flag.String("rows", "", "names of rows to run, separated by commas; the others keep what was measured before; empty for all")
	document := flag.Bool("document", false, "write the document about what was measured before, and measure nothing")
	flag.Parse()
	log.SetLogger(logr.Discard()) // what the clients would say is in the answers
	if err := chaos(*only, *document); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// chaos measures rows, and writes the document about all that have been measured.
func chaos(only string, documentOnly bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	chosen, err := choose(rows(), only)
	if err != nil {
		return err
	}
	results, err := openStore()
	if err != nil {
		return err
	}
	if documentOnly {
		chosen = nil
	}
	var failures []error
	for _, r := range chosen {
		if err := report(ctx, r, results); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", r.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errors.Join(failures...), writeDocument(rows(), results))
}

// choose finds rows by their names.
func choose(all []*row, names string) ([]*row, error) {
	if names == "" {
		return all, nil
	}
	var chosen []*row
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(r *row) bool { return r.name == name })
		if i < 0 {
			return nil, fmt.Errorf("rows: there is no row %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// report measures one row, prints what it does and its cells, and keeps the result.
func report(ctx context.Context, r *row, results *store) error {
	start := time.Now()
	progress := func(step string) {
		fmt.Printf("%s %5.1fs %-24s %s\n", time.Now().Format(time.TimeOnly), time.Since(start).Seconds(), r.name, step)
	}
	m, err := r.measure(ctx, progress)
	if err != nil {
		return err
	}
	for i, cell := range cells(r, m) {
		progress(fmt.Sprintf("  %s: %s", columns[i], cell))
	}
	if err := results.keep(m); err != nil {
		return err
	}
	if bad := verdict(r, m); len(bad) > 0 {
		return fmt.Errorf("%s", strings.Join(bad, "; "))
	}
	return nil
}
