package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// report prints figures and promises, and tells whether all promises are kept.
func report(out io.Writer, rounds int, slice time.Duration) (bool, error) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "what\trules\tpath\tengine\tus\tB\tallocations\t")
	costs := map[key]time.Duration{}
	for _, what := range []string{rules, kubernetes} {
		for _, path := range paths {
			g, err := measured(keys(what, path), rounds, slice)
			if err != nil {
				return false, err
			}
			for _, c := range g {
				costs[c.key] = c.perRun
				fmt.Fprintf(table, "%s\t%d\t%v\t%s\t%.2f\t%d\t%d\t\n",
					c.what, c.rules, c.path, c.engine, c.perRun.Seconds()*1e6, c.bytes, c.allocations)
			}
		}
	}
	if err := table.Flush(); err != nil {
		return false, fmt.Errorf("print figures: %w", err)
	}
	return printPromises(out, costs), nil
}

// measured is these contenders with their figures, in their order; their processes have ended.
func measured(list []key, rounds int, slice time.Duration) (group, error) {
	promised := promisedKeys()
	var compared, printed []key
	for _, k := range list {
		if promised[k] {
			compared = append(compared, k)
		} else {
			printed = append(printed, k)
		}
	}
	some, err := take(compared, rounds, slice)
	if err != nil {
		return nil, err
	}
	others, err := take(printed, max(1, rounds/4), slice)
	if err != nil {
		return nil, err
	}
	g := slices.Concat(some, others)
	slices.SortFunc(g, func(a, b *contender) int { return slices.Index(list, a.key) - slices.Index(list, b.key) })
	return g, nil
}

// take lets these contenders take turns.
func take(list []key, rounds int, slice time.Duration) (group, error) {
	var g group
	err := g.start(list, slice)
	if err == nil {
		err = g.measure(rounds)
	}
	return g, errors.Join(err, g.stop())
}
