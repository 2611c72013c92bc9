package shares_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/internal/testing/shares"
)

// dice draws "side 1" to "side SIDES", low sides more often than high ones, and says whether it was the first.
func dice(sides int) *rapid.Generator[[]string] {
	return rapid.Custom(func(t *rapid.T) []string {
		side := rapid.IntRange(1, sides).Draw(t, "side")
		return []string{fmt.Sprintf("side %d", side), fmt.Sprintf("first %t", side == 1)}
	})
}

// table draws its rows in turn, so that the counts are known.
func table(rows ...[]string) *rapid.Generator[[]string] {
	next := 0
	return rapid.Custom(func(t *rapid.T) []string {
		rapid.Bool().Draw(t, "ignored")
		next++
		return rows[(next-1)%len(rows)]
	})
}

func times(n int, labels ...string) [][]string {
	var rows [][]string
	for range n {
		rows = append(rows, labels)
	}
	return rows
}

func TestAStarvedLabelIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		rows   [][]string
		wanted []string
		want   []string
	}{
		"exactly the least share is enough": {
			rows: append(times(95, "class AUTO"), times(5, "class ASK")...), wanted: []string{"class AUTO", "class ASK"},
		},
		"a little less is not": {
			rows: append(times(96, "class AUTO"), times(4, "class ASK")...), wanted: []string{"class AUTO", "class ASK"},
			want: []string{"class ASK was reached 4 times of 100, under 5 %"},
		},
		"what was never drawn is starved, and so is a group of which nothing was": {
			rows: times(100, "class AUTO"), wanted: []string{"class ASK", "verdict Allow"},
			want: []string{"class ASK was reached 0 times of 100, under 5 %", "verdict Allow was reached 0 times of 0, under 5 %"},
		},
		"a share is one of the label's group, whatever else is drawn": {
			rows: append(times(10, "class AUTO", "step a", "step a"), append(times(89), []string{"class ASK"})...), wanted: []string{"class ASK", "step a"},
		},
		"a label without a group would have all of it": {
			rows: append(times(1, "ASK"), times(99, "AUTO")...), wanted: []string{"ASK"}, want: []string{`"ASK" names no group`},
		},
		"what nobody wants may be rare": {
			rows: append(times(99, "class AUTO"), times(1, "class ASK")...), wanted: []string{"class AUTO"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, shares.Count(table(test.rows...), 100).Starved(test.wanted...)); diff != "" {
				t.Errorf("starved (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAGeneratorThatHardlyReachesOneIsFound(t *testing.T) {
	last := func(sides int) int {
		return len(shares.Count(dice(sides), 2000).Starved(fmt.Sprintf("side %d", sides)))
	}
	if last(3) != 0 {
		t.Error("the third of three sides is starved")
	}
	if last(100) != 1 {
		t.Error("the last of a hundred sides has its share")
	}
}

// recorder is a test that was told of errors.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper()             {}
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) Error(values ...any) { r.errors = append(r.errors, fmt.Sprint(values...)) }

func TestACheckFailsForEachStarvedLabel(t *testing.T) {
	var got recorder
	shares.Check(&got, table(append(times(98, "class AUTO"), times(2, "class ASK")...)...), 100, "class AUTO", "class ASK", "class FORBIDDEN")
	want := []string{"class ASK was reached 2 times of 100, under 5 %", "class FORBIDDEN was reached 0 times of 100, under 5 %"}
	if diff := cmp.Diff(want, got.errors); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

// The seeds are fixed: these sums hold on every machine.
func TestTheSameSeedsGiveTheSameCounts(t *testing.T) {
	opaque := cmp.AllowUnexported(shares.Counts{})
	first := shares.Count(dice(6), 600)
	if diff := cmp.Diff(first, shares.Count(dice(6), 600), opaque); diff != "" {
		t.Errorf("drawn again (-first +again):\n%s", diff)
	}
	if first.Starved("side 1", "side 2", "side 3", "side 4", "side 5", "side 6", "first true", "first false") != nil {
		t.Errorf("a side is starved in %+v", first)
	}
	if cmp.Equal(first, shares.Count(dice(6), 601), opaque) {
		t.Error("another draw changes no count")
	}
}
