package phase_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/internal/testing/shares"
	"stepbeyond.dev/stepbeyond/policy/phase"
)

var start = time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)

// Proves P-1.
func TestTheSequenceOfTheSpecificationIsPossible(t *testing.T) {
	var record phase.Record
	for i, to := range phase.All() {
		next, err := record.Report(to, "next step", start.Add(time.Duration(i)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		want := phase.Transition{From: record.Current, To: to, Time: start.Add(time.Duration(i) * time.Second), Cause: "next step"}
		if diff := cmp.Diff(want, next.Transitions[i]); diff != "" {
			t.Errorf("transition (-want +got):\n%s", diff)
		}
		record = next
	}
}

// Proves P-1.
func TestAnImpossibleReportNamesWhatIsPossible(t *testing.T) {
	at := phase.Record{Current: phase.Verify, Transitions: []phase.Transition{{To: phase.Verify, Time: start}}}
	for name, test := range map[string]struct {
		to    phase.Phase
		cause string
		now   time.Time
		want  string
	}{
		"a phase that cannot follow":      {phase.Learn, "done", start, "phase: LEARN cannot follow VERIFY; possible now: CONTEXT, BUILD, EXECUTE, DELIVER"},
		"a word that is no phase":         {"PONDER", "why not", start, `phase: "PONDER" is no phase; possible now: CONTEXT, BUILD, EXECUTE, DELIVER`},
		"a report without a cause":        {phase.Deliver, "", start, "cause: must have 1 to 240 bytes"},
		"a cause that is too long":        {phase.Deliver, strings.Repeat("x", 241), start, "cause: must have 1 to 240 bytes"},
		"a time before the last one":      {phase.Deliver, "done", start.Add(-time.Second), "time: lies before the last transition"},
		"a long word is not echoed whole": {phase.Phase(strings.Repeat("y", 100)), "x", start, `phase: "` + strings.Repeat("y", 32) + `" is no phase; possible now: CONTEXT, BUILD, EXECUTE, DELIVER`},
	} {
		t.Run(name, func(t *testing.T) {
			after, err := at.Report(test.to, test.cause, test.now)
			var report *phase.ReportError
			if !errors.As(err, &report) || err.Error() != test.want {
				t.Errorf("error = %v, want %s", err, test.want)
			}
			if diff := cmp.Diff(at, after); diff != "" {
				t.Errorf("an impossible report changed the record:\n%s", diff)
			}
		})
	}
	if _, err := (phase.Record{}).Report(phase.Deliver, "x", start); err == nil || !strings.Contains(err.Error(), "cannot follow the beginning; possible now: CONTEXT") {
		t.Errorf("a first report of DELIVER: %v", err)
	}
}

// Proves P-4: the requested result is built, run, checked and delivered without INITIATIVE.
func TestTheBaseResultNeedsNoInitiative(t *testing.T) {
	var record phase.Record
	for _, to := range []phase.Phase{phase.Context, phase.Intent, phase.Decide, phase.Build, phase.Execute, phase.Verify, phase.Deliver} {
		next, err := record.Report(to, "as asked", start)
		if err != nil {
			t.Fatal(err)
		}
		record = next
	}
}

// drawNext is mostly a step onward: at random a history goes back to CONTEXT before it ever comes to LEARN.
func drawNext(t *rapid.T, record phase.Record) phase.Phase {
	allowed := record.Allowed()
	switch rapid.SampledFrom([]string{"onward", "onward", "allowed", "allowed", "any"}).Draw(t, "next") {
	case "onward":
		return allowed[len(allowed)-1]
	case "allowed":
		return rapid.SampledFrom(allowed[min(1, len(allowed)-1):]).Draw(t, "to")
	default:
		return rapid.SampledFrom(phase.All()).Draw(t, "to")
	}
}

// history draws reports one after the other, each with the record before and after it.
func history(t *rapid.T, each func(before, after phase.Record, to phase.Phase, err error)) phase.Record {
	var record phase.Record
	for i := range rapid.SampledFrom([]int{1, 10, 30, 150}).Draw(t, "reports") {
		to := drawNext(t, record)
		next, err := record.Report(to, "drawn", start.Add(time.Duration(i)*time.Second))
		each(record, next, to, err)
		record = next
	}
	return record
}

// Proves P-1.
func TestEveryHistoryIsBoundedAndPossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		record := history(t, func(before, after phase.Record, to phase.Phase, err error) {
			if possible := slices.Contains(before.Allowed(), to); possible != (err == nil) {
				t.Fatalf("%s after %q: error %v, possible %v", to, before.Current, err, possible)
			}
			if err == nil && (after.Current != to || len(after.Transitions) > phase.MaxTransitions) {
				t.Fatalf("record %+v", after)
			}
		})
		if record.Current != "" && !slices.Contains(record.Allowed(), phase.Context) && record.Current != phase.Context {
			t.Fatalf("%s cannot begin anew", record.Current)
		}
	})
}

func TestHistoriesReachEveryPhaseAndTheBound(t *testing.T) {
	labels := rapid.Custom(func(t *rapid.T) []string {
		var labels []string
		reached := map[phase.Phase]bool{}
		record := history(t, func(_, after phase.Record, _ phase.Phase, err error) {
			labels = append(labels, fmt.Sprintf("possible %t", err == nil))
			reached[after.Current] = true
		})
		for _, p := range phase.All() {
			labels = append(labels, fmt.Sprintf("%s reached=%t", p, reached[p]))
		}
		return append(labels, fmt.Sprintf("full %t", len(record.Transitions) == phase.MaxTransitions))
	})
	wanted := []string{"possible true", "possible false", "full true", "full false"}
	for _, p := range phase.All() {
		wanted = append(wanted, string(p)+" reached=true")
	}
	shares.Check(t, labels, 2000, wanted...)
}
