// Package shares tells whether the generator of a property test reaches what the property speaks of. A property that
// hardly ever sees a FORBIDDEN operation proves little about one, and does so silently.
//
// Counting inside of the property would depend on luck: a property is meant to draw something else in each run. Here the
// generator draws with the seeds 0 to draws-1, so a count has one answer, on every machine and in every run. It changes
// only with the generator or with what is tested.
package shares

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// LeastPercent is the share of its group below which a label counts as hardly reached.
const LeastPercent = 5

// Counts is how often each label was drawn, and how often any label of each group.
type Counts struct {
	labels map[string]int
	groups map[string]int
}

// Count draws as often as it is told, with the seeds 0, 1, 2 and so on. The generator labels what the property would
// have seen: one draw gives any number of labels such as "class ASK", whose first word is their group. It panics when
// the generator cannot draw.
func Count(labels *rapid.Generator[[]string], draws int) Counts {
	c := Counts{labels: map[string]int{}, groups: map[string]int{}}
	for seed := range draws {
		for _, label := range labels.Example(seed) {
			c.labels[label]++
			c.groups[group(label)]++
		}
	}
	return c
}

// Starved says of each wanted label that has less than LeastPercent of its group by how much; it is empty when all have
// their share. A label that was never drawn is starved, and so is one of a single word: it would be its own group and
// have all of it.
func (c Counts) Starved(wanted ...string) []string {
	var starved []string
	for _, label := range wanted {
		n, all := c.labels[label], c.groups[group(label)]
		switch {
		case !strings.Contains(label, " "):
			starved = append(starved, fmt.Sprintf("%q names no group", label))
		case all == 0 || 100*n < LeastPercent*all:
			starved = append(starved, fmt.Sprintf("%s was reached %d times of %d, under %d %%", label, n, all, LeastPercent))
		}
	}
	return starved
}

// Check logs the share of each label that was drawn and fails the test for each wanted one that is starved.
func Check(t testing.TB, labels *rapid.Generator[[]string], draws int, wanted ...string) {
	t.Helper()
	c := Count(labels, draws)
	for _, label := range slices.Sorted(maps.Keys(c.labels)) {
		n, all := c.labels[label], c.groups[group(label)]
		t.Logf("%s: %d of %d, %.1f %%", label, n, all, 100*float64(n)/float64(all))
	}
	for _, problem := range c.Starved(wanted...) {
		t.Error(problem)
	}
}

func group(label string) string {
	first, _, _ := strings.Cut(label, " ")
	return first
}
