package tier_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/internal/testing/shares"
	"stepbeyond.dev/stepbeyond/policy/tier"
)

// batch reads a short notation: a letter is the item's name, "-" after it means that it cannot run, a digit its atomic batch.
func batch(notation string) []tier.Item {
	var items []tier.Item
	for _, word := range strings.Fields(notation) {
		item := tier.Item{Name: word[:1], Runnable: !strings.Contains(word, "-")}
		if last := word[len(word)-1:]; last >= "0" && last <= "9" {
			item.AtomicBatch = last
		}
		items = append(items, item)
	}
	return items
}

func line(planned []tier.Planned) string {
	var words []string
	for _, p := range planned {
		words = append(words, p.Name+"="+string(p.Disposition))
	}
	return strings.Join(words, " ")
}

// Proves T-3.
func TestABatchIsPlannedItemByItem(t *testing.T) {
	tests := []struct {
		name, items string
		runAtMost   int
		// of the small tier; medium and large have the one without a limit.
		small, others string
	}{
		{"what runs runs in the caller's order", "c a b", 0, "c=run a=run b=run", "c=run a=run b=run"},
		{"an item that cannot run takes nothing from the others", "a b- c", 0, "a=run b=answered c=run", "a=run b=answered c=run"},
		{"inside an atomic batch it keeps all from running", "a b1 c-1 d1 e", 0, "a=run b=incomplete c=answered d=incomplete e=run", "a=run b=incomplete c=answered d=incomplete e=run"},
		{"one atomic batch keeps nothing from another", "a1 b-2 c1 d2", 0, "a=run b=answered c=run d=incomplete", "a=run b=answered c=run d=incomplete"},
		{"guidance defers what is beyond its limit, in its place, for small only", "a b c", 2, "a=run b=run c=deferred", "a=run b=run c=run"},
		{"what cannot run does not count", "a- b c- d e", 2, "a=answered b=run c=answered d=run e=deferred", "a=answered b=run c=answered d=run e=run"},
		{"an answer stands beside what is deferred", "a b c-", 1, "a=run b=deferred c=answered", "a=run b=run c=answered"},
		{"an atomic batch is deferred whole", "a b1 c1 d", 2, "a=run b=deferred c=deferred d=deferred", "a=run b=run c=run d=run"},
		{"nothing overtakes what is deferred", "a b1 c1 d", 2, "a=run b=deferred c=deferred d=deferred", "a=run b=run c=run d=run"},
		{"an atomic batch that has begun runs whole", "a1 b c1", 2, "a=run b=deferred c=run", "a=run b=run c=run"},
		{"an atomic batch that is larger than the limit runs when it comes first", "a1 b1 c1 d", 2, "a=run b=run c=run d=deferred", "a=run b=run c=run d=run"},
		{"an incomplete atomic batch does not count", "a1 b-1 c d", 1, "a=incomplete b=answered c=run d=deferred", "a=incomplete b=answered c=run d=run"},
		{"an empty batch has an empty plan", "", 1, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, of := range tiers {
				want := tt.others
				if of == tier.Small {
					want = tt.small
				}
				planned, err := tier.PlanBatch(of, batch(tt.items), tt.runAtMost)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, line(planned)); diff != "" {
					t.Errorf("tier %s (-want +got):\n%s", of, diff)
				}
			}
		})
	}
}

// Proves T-3 and B-8: what is not run is never reported as a result or failure.
func TestOnlyWhatRunsHasAResult(t *testing.T) {
	for d, want := range map[tier.Disposition]bool{
		tier.DispositionRun: true, tier.DispositionAnswered: false, tier.DispositionIncomplete: false, tier.DispositionDeferred: false,
	} {
		if got := d.HasResult(); got != want {
			t.Errorf("%s has a result: %v, want %v", d, got, want)
		}
	}
}

func TestABatchThatCannotBePlannedIsRefused(t *testing.T) {
	tests := []struct {
		of        tier.Tier
		runAtMost int
		want      string
	}{
		{"huge", 0, `tier: "huge" is none of small, medium and large`},
		{tier.Small, -1, "runAtMost: is -1, must be 0 or more"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			_, err := tier.PlanBatch(tt.of, batch("a"), tt.runAtMost)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// plan is how the items of one batch are to be run.
type plan struct {
	of        tier.Tier
	runAtMost int
	items     []tier.Item
}

func drawPlan(t *rapid.T) plan {
	p := plan{
		of:        rapid.SampledFrom([]tier.Tier{tier.Small, tier.Small, tier.Medium, tier.Large}).Draw(t, "tier"),
		runAtMost: rapid.IntRange(0, 5).Draw(t, "run at most"),
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "items") {
		p.items = append(p.items, tier.Item{
			Name: string(rune('a' + i)), Runnable: rapid.IntRange(0, 3).Draw(t, "runnable") > 0,
			AtomicBatch: rapid.SampledFrom([]string{"", "", "1", "2"}).Draw(t, "atomic batch"),
		})
	}
	return p
}

// Proves T-3: every item keeps its place; an item outside of atomic batches that stops being runnable changes no other item
// of a medium or large model, and takes nothing that ran from a small one; atomic batches run whole or not at all, and
// nothing that cannot run is run.
func TestABatchKeepsOrderAndIndependence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := drawPlan(t)
		of, items := drawn.of, drawn.items
		plan := func(items []tier.Item) []tier.Planned {
			planned, err := tier.PlanBatch(of, items, drawn.runAtMost)
			if err != nil {
				t.Fatal(err)
			}
			return planned
		}
		got := plan(items)
		if len(got) != len(items) {
			t.Fatalf("%d items have %d plans", len(items), len(got))
		}
		runs := map[string]map[bool]bool{}
		for i, p := range got {
			ran := p.Disposition == tier.DispositionRun
			if p.Name != items[i].Name || (ran && !items[i].Runnable) || (p.Disposition == tier.DispositionAnswered) == items[i].Runnable {
				t.Fatalf("%+v is planned as %+v", items[i], p)
			}
			if p.Disposition == tier.DispositionDeferred && of != tier.Small {
				t.Fatalf("tier %s defers %+v", of, p)
			}
			if name := items[i].AtomicBatch; name != "" {
				if runs[name] == nil {
					runs[name] = map[bool]bool{}
				}
				runs[name][ran] = true
			}
		}
		for name, ran := range runs {
			if len(ran) > 1 {
				t.Fatalf("atomic batch %s runs in part: %+v", name, got)
			}
		}
		at := rapid.IntRange(0, len(items)-1).Draw(t, "stopped")
		if items[at].AtomicBatch != "" || !items[at].Runnable {
			return
		}
		stopped := slices.Clone(items)
		stopped[at].Runnable = false
		for i, p := range plan(stopped) {
			if i == at || p == got[i] {
				continue
			}
			if of != tier.Small || got[i].Disposition != tier.DispositionDeferred || p.Disposition != tier.DispositionRun {
				t.Fatalf("%+v stopped and %+v became %+v", items[at], got[i], p)
			}
		}
	})
}

func TestPlansReachEveryDisposition(t *testing.T) {
	labels := rapid.Custom(func(t *rapid.T) []string {
		drawn := drawPlan(t)
		planned, err := tier.PlanBatch(drawn.of, drawn.items, drawn.runAtMost)
		if err != nil {
			t.Fatal(err)
		}
		var labels []string
		for i, p := range planned {
			labels = append(labels, "disposition "+string(p.Disposition), fmt.Sprintf("atomic %t", drawn.items[i].AtomicBatch != ""))
		}
		return labels
	})
	shares.Check(t, labels, 2000, "disposition "+string(tier.DispositionRun), "disposition "+string(tier.DispositionAnswered),
		"disposition "+string(tier.DispositionIncomplete), "disposition "+string(tier.DispositionDeferred), "atomic true", "atomic false")
}
