package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// all stands for the three operations of a round together.
const all operation = "all"

// promise bounds the throughput of one contender by that of another.
type promise struct {
	of, by string
	do     operation
	least  float64
	most   float64 // 0 = none
	// broken says what it means when the ratio lies outside.
	broken string
}

const (
	tooDear      = "MISSED"
	notComparing = "BROKEN COMPARISON"
)

var promises = []promise{
	{of: bare, by: none, do: all, least: 0.5, most: 0.75, broken: notComparing},
	{of: governed, by: bare, do: create, least: 0.8, broken: tooDear},
	{of: governed, by: bare, do: update, least: 0.9, broken: tooDear},
	{of: governed, by: bare, do: remove, least: 0.9, broken: tooDear},
	{of: bystander, by: excluded, do: all, least: 0.97, broken: tooDear},
}

// shown are ratios that nothing is promised about.
var shown = []promise{
	{of: excluded, by: none, do: all},
	{of: governed, by: none, do: all},
}

// printPromises tells whether all are kept.
func printPromises(out io.Writer, found costs) bool {
	kept := true
	fmt.Fprintln(out, "\nthroughput as a ratio, median of the rounds (and their quartiles)")
	for _, p := range promises {
		ratio, low, high := found.ratio(p)
		word := "kept"
		if ratio < p.least || p.most != 0 && ratio > p.most {
			word, kept = p.broken, false
		}
		bound := fmt.Sprintf("at least %.2f", p.least)
		if p.most != 0 {
			bound = fmt.Sprintf("%.2f to %.2f", p.least, p.most)
		}
		fmt.Fprintf(out, "%s  %s/%s, %s: %.3f (%.3f to %.3f), %s\n", word, p.of, p.by, p.do, ratio, low, high, bound)
	}
	for _, p := range shown {
		ratio, low, high := found.ratio(p)
		fmt.Fprintf(out, "      %s/%s, %s: %.3f (%.3f to %.3f)\n", p.of, p.by, p.do, ratio, low, high)
	}
	return kept
}

// printBystander tells whether the manager was never called.
func printBystander(out io.Writer, writes, calls int) bool {
	word := "kept"
	if calls != 0 {
		word = tooDear
	}
	fmt.Fprintf(out, "%s  calls of the manager in %d writes of the bystander: %d, exactly 0\n", word, writes, calls)
	return calls == 0
}

// ratio of the throughput of two contenders in the same rounds.
func (found costs) ratio(p promise) (median, low, high float64) {
	var ratios []float64
	by := found.walls(p.by, p.do)
	for round, wall := range found.walls(p.of, p.do) {
		ratios = append(ratios, by[round]/wall)
	}
	return quartiles(ratios)
}

// walls are the seconds of a write in each round.
func (found costs) walls(contender string, do operation) []float64 {
	var seconds []float64
	for round, block := range found[contender][operations[0]] {
		if do != all {
			seconds = append(seconds, found[contender][do][round].wall.Seconds())
			continue
		}
		total := block.wall
		for _, other := range operations[1:] {
			total += found[contender][other][round].wall
		}
		seconds = append(seconds, total.Seconds()/float64(len(operations)))
	}
	return seconds
}

// quartiles are the median and the bounds of the middle half of the values, which are not none.
func quartiles(values []float64) (median, low, high float64) {
	values = slices.Sorted(slices.Values(values))
	at := func(quarter int) float64 { return values[quarter*(len(values)-1)/4] }
	return at(2), at(1), at(3)
}

// printTable prints medians, and of the throughput the quartiles too.
func printTable(out io.Writer, found costs) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\t\t\t\tCPU us per write\t\t\t\t")
	fmt.Fprintln(table, "contender\toperation\twrites/s\tquartiles\tAPI server\tetcd\twebhook\ttogether\t")
	for _, name := range []string{none, bare, governed, excluded, bystander} {
		for _, do := range operations {
			blocks := found[name][do]
			wall, low, high := quartiles(each(blocks, func(c cost) time.Duration { return c.wall }))
			fmt.Fprintf(table, "%s\t%s\t%.0f\t%.0f to %.0f\t", name, do, 1e6/wall, 1e6/high, 1e6/low)
			for _, part := range []func(cost) time.Duration{
				func(c cost) time.Duration { return c.apiServer },
				func(c cost) time.Duration { return c.etcd },
				func(c cost) time.Duration { return c.webhook },
				func(c cost) time.Duration { return c.apiServer + c.etcd + c.webhook },
			} {
				median, _, _ := quartiles(each(blocks, part))
				fmt.Fprintf(table, "%.0f\t", median)
			}
			fmt.Fprintln(table)
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print figures: %w", err)
	}
	return nil
}

// each is one part of every block, in microseconds.
func each(blocks []cost, part func(cost) time.Duration) []float64 {
	var values []float64
	for _, block := range blocks {
		values = append(values, float64(part(block).Nanoseconds())/1e3)
	}
	return values
}
