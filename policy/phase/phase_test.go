package phase_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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

func TestEveryHistoryIsBoundedAndPossible(t *testing.T) {
	reached := map[phase.Phase]bool{}
	rapid.Check(t, func(t *rapid.T) {
		var record phase.Record
		now := start
		for range rapid.IntRange(1, 100).Draw(t, "reports") {
			now = now.Add(time.Second)
			to := rapid.SampledFrom(append(phase.All(), record.Allowed()...)).Draw(t, "to")
			next, err := record.Report(to, "drawn", now)
			if possible := slices.Contains(record.Allowed(), to); possible != (err == nil) {
				t.Fatalf("%s after %q: error %v, possible %v", to, record.Current, err, possible)
			}
			if err == nil && (next.Current != to || len(next.Transitions) > phase.MaxTransitions) {
				t.Fatalf("record %+v", next)
			}
			record = next
			reached[record.Current] = true
		}
		if record.Current != "" && !slices.Contains(record.Allowed(), phase.Context) && record.Current != phase.Context {
			t.Fatalf("%s cannot begin anew", record.Current)
		}
	})
	for _, p := range phase.All() {
		if !reached[p] && !testing.Short() {
			t.Errorf("no history reached %s", p)
		}
	}
}
