package breaker_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/internal/testing/shares"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/breaker"
)

// call is a read whose every part is known.
func call(action, inputs, result string) breaker.Event {
	return breaker.Event{
		Action: action, Inputs: breaker.Known(inputs), State: breaker.Known("s1"), Source: breaker.Known("instruction-1"),
		Environment: breaker.Known("host-1"), Authority: breaker.Known("epoch-1"), Result: breaker.Known(result), Outcome: breaker.OutcomeSucceeded,
	}
}

func failed(action, inputs, result string) breaker.Event {
	e := call(action, inputs, result)
	e.Outcome = breaker.OutcomeFailed
	return e
}

func times(n int, events ...breaker.Event) []breaker.Event {
	var all []breaker.Event
	for range n {
		all = append(all, events...)
	}
	return all
}

// seen is what a row wants of the last observation.
type seen struct {
	Signal     breaker.Signal
	Count      int
	Period     int
	Hypothesis breaker.Hypothesis
	Label      breaker.Label
}

func last(events []breaker.Event) (seen, breaker.Observation) {
	all := breaker.Settings{}.Replay(events)
	o := all[len(all)-1]
	return seen{o.Signal, o.Count, o.Period, o.Hypothesis, o.Label}, o
}

// Proves L-1.
func TestTheSameCallWithTheSameAnswerIsASignal(t *testing.T) {
	get, list, pwd := call("get", "web", "x"), call("list", "pods", "y"), call("pwd", "", "/")
	fail := failed("get", "web", "not found")
	for name, row := range map[string]struct {
		events []breaker.Event
		want   seen
	}{
		"one call":                             {times(1, get), seen{Count: 1, Period: 1}},
		"three of the same are none yet":       {times(3, get), seen{Count: 3, Period: 1}},
		"four of the same":                     {times(4, get), seen{breaker.SignalSameResult, 4, 1, breaker.HypothesisLookElsewhere, ""}},
		"two of the same error are none yet":   {times(2, fail), seen{Count: 2, Period: 1}},
		"three of the same error":              {times(3, fail), seen{breaker.SignalSameError, 3, 1, breaker.HypothesisActOnError, ""}},
		"two calls in turn, two rounds":        {times(2, get, list), seen{Count: 1, Period: 1}},
		"two calls in turn, three rounds":      {times(3, get, list), seen{breaker.SignalCycle, 3, 2, breaker.HypothesisDecide, ""}},
		"three calls in turn, three rounds":    {times(3, get, list, pwd), seen{breaker.SignalCycle, 3, 3, breaker.HypothesisDecide, ""}},
		"a round may begin anywhere":           {append(times(1, list), times(3, get, list)...), seen{breaker.SignalCycle, 3, 2, breaker.HypothesisDecide, ""}},
		"another call in between starts anew":  {append(append(times(3, get), list), times(3, get)...), seen{Count: 3, Period: 1}},
		"a success with the error's own words": {append(times(2, fail), call("get", "web", "not found")), seen{Count: 1, Period: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, o := last(row.events)
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
			if (o.Advice == "") != (got.Hypothesis == "") {
				t.Errorf("advice %q with hypothesis %q", o.Advice, got.Hypothesis)
			}
		})
	}
}

// Proves L-3.
func TestAnyMeaningfulChangeStartsAnew(t *testing.T) {
	for component, change := range map[breaker.Component]func(*breaker.Event){
		breaker.ComponentState:       func(e *breaker.Event) { e.State = breaker.Known("s2") },
		breaker.ComponentSource:      func(e *breaker.Event) { e.Source = breaker.Known("instruction-2") },
		breaker.ComponentEnvironment: func(e *breaker.Event) { e.Environment = breaker.Known("host-2") },
		breaker.ComponentAuthority:   func(e *breaker.Event) { e.Authority = breaker.Known("epoch-2") },
		breaker.ComponentResult:      func(e *breaker.Event) { e.Result = breaker.Known("y") },
	} {
		t.Run(string(component)+" is a change", func(t *testing.T) {
			other := call("get", "web", "x")
			change(&other)
			got, o := last(append(times(4, call("get", "web", "x")), other))
			if diff := cmp.Diff(seen{Count: 1, Period: 1}, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]breaker.Component{component}, o.Changed); diff != "" {
				t.Error(diff)
			}
		})
		t.Run(string(component)+" that becomes unknown is a change", func(t *testing.T) {
			other := call("get", "web", "x")
			change(&other)
			e := call("get", "web", "x")
			*map[breaker.Component]*breaker.Part{
				breaker.ComponentState: &e.State, breaker.ComponentSource: &e.Source, breaker.ComponentEnvironment: &e.Environment,
				breaker.ComponentAuthority: &e.Authority, breaker.ComponentResult: &e.Result,
			}[component] = breaker.Part{}
			if got, _ := last(append(times(4, call("get", "web", "x")), e)); got.Signal != "" {
				t.Errorf("%+v", got)
			}
		})
	}
	t.Run("other inputs are another call", func(t *testing.T) {
		got, o := last(append(times(4, call("get", "web", "x")), call("get", "api", "x")))
		if diff := cmp.Diff(seen{Count: 1, Period: 1}, got); diff != "" || o.Changed != nil {
			t.Errorf("%s, changed %v", diff, o.Changed)
		}
	})
	t.Run("the clock alone is no change", func(t *testing.T) {
		var events []breaker.Event
		for i := range 4 {
			events = append(events, call("get", "web", fmt.Sprintf("web Running %ds at 2026-11-30T18:52:0%dZ", 5+i, i)))
		}
		if got, o := last(events); got.Signal != breaker.SignalSameResult || o.Changed != nil {
			t.Errorf("%+v, changed %v", got, o.Changed)
		}
	})
	t.Run("a change is compared with the newest call of its kind", func(t *testing.T) {
		_, o := last([]breaker.Event{call("get", "web", "x"), call("list", "pods", "p"), call("get", "web", "y"), call("list", "pods", "p"), call("get", "web", "y")})
		if o.Changed != nil {
			t.Errorf("changed %v", o.Changed)
		}
	})
}

// Proves L-3.
func TestALabelIsNoIdentity(t *testing.T) {
	for name, unknown := range map[string]func(*breaker.Event){
		"without inputs": func(e *breaker.Event) { e.Inputs = breaker.Part{} },
		"without result": func(e *breaker.Event) { e.Result = breaker.Part{} },
	} {
		t.Run("calls of one name "+name+" are never the same", func(t *testing.T) {
			e := failed("get", "web", "x")
			unknown(&e)
			if got, o := last(times(20, e)); got.Signal != "" || got.Count != 1 || o.Changed != nil {
				t.Errorf("%+v, changed %v", got, o.Changed)
			}
		})
	}
	t.Run("empty inputs are known", func(t *testing.T) {
		if got, _ := last(times(4, call("pwd", "", "/"))); got.Signal != breaker.SignalSameResult {
			t.Errorf("%+v", got)
		}
	})
	t.Run("the same inputs and result of another action are another call", func(t *testing.T) {
		if got, _ := last(append(times(3, call("get", "web", "x")), call("describe", "web", "x"))); got.Signal != "" {
			t.Errorf("%+v", got)
		}
	})
}

// Proves L-2.
func TestBlockedNeedsAllTheEvidence(t *testing.T) {
	stuck := func(change func(*breaker.Event)) []breaker.Event {
		e := failed("edit", "main.go", "no match")
		e.Recovery = breaker.RecoveryNone
		change(&e)
		return times(3, e)
	}
	for name, row := range map[string]struct {
		events []breaker.Event
		want   breaker.Label
	}{
		"everything known and unchanged, nothing left to try": {stuck(func(*breaker.Event) {}), breaker.LabelBlocked},
		"a recovery step is available":                        {stuck(func(e *breaker.Event) { e.Recovery = breaker.RecoveryAvailable }), ""},
		"nobody looked for a recovery step":                   {stuck(func(e *breaker.Event) { e.Recovery = breaker.RecoveryUnknown }), ""},
		"the state is not known":                              {stuck(func(e *breaker.Event) { e.State = breaker.Part{} }), ""},
		"the result is not known":                             {stuck(func(e *breaker.Event) { e.Result = breaker.Part{} }), ""},
		"the inputs are not known":                            {stuck(func(e *breaker.Event) { e.Inputs = breaker.Part{} }), ""},
		"not often enough":                                    {stuck(func(*breaker.Event) {})[:2], ""},
		"the state changed on the way":                        {append(stuck(func(*breaker.Event) {})[:2], stuck(func(e *breaker.Event) { e.State = breaker.Known("s2") })[0]), ""},
		"a cycle, in which state may move to and fro":         {times(3, stuck(func(*breaker.Event) {})[0], stuck(func(e *breaker.Event) { e.Inputs = breaker.Known("b.go") })[0]), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, o := last(row.events)
			if got.Label != row.want {
				t.Errorf("got %q, want %q", got.Label, row.want)
			}
			var evidence []breaker.Component
			if row.want != "" {
				evidence = []breaker.Component{breaker.ComponentAction, breaker.ComponentInputs, breaker.ComponentState, breaker.ComponentResult}
			}
			if diff := cmp.Diff(evidence, o.Evidence); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a changed answer takes the label away", func(t *testing.T) {
		if got, _ := last(append(stuck(func(*breaker.Event) {}), stuck(func(e *breaker.Event) { e.Result = breaker.Known("saved") })[0])); got.Label != "" {
			t.Errorf("%+v", got)
		}
	})
}

// Proves B-8.
func TestStatesOfTheRuntimeAreNoAnswers(t *testing.T) {
	for _, outcome := range []breaker.Outcome{breaker.OutcomeDenied, breaker.OutcomePending, breaker.OutcomeHeld, breaker.OutcomeDeferred, breaker.OutcomeRuntimeUnavailable, "", "Strange"} {
		t.Run(fmt.Sprintf("%q neither counts nor starts anew", outcome), func(t *testing.T) {
			other := call("get", "web", "Held: waits")
			other.Outcome = outcome
			events := append(times(20, other), times(3, call("get", "web", "x"))...)
			events = append(append(events, other), call("get", "web", "x"))
			all := breaker.Settings{}.Replay(events)
			if got := all[len(all)-1]; got.Signal != breaker.SignalSameResult || got.Count != 4 || !got.Counted {
				t.Errorf("%+v", got)
			}
			if got := all[19]; !reflect.ValueOf(got).IsZero() {
				t.Errorf("20 of them: %+v", got)
			}
		})
	}
}

// Proves L-1, B-1, B-4.
func TestNoTypeOfABreakerCanPreventACall(t *testing.T) {
	allowed := map[reflect.Type]bool{}
	for _, value := range []any{breaker.SignalNone, breaker.HypothesisNone, breaker.LabelNone, breaker.ComponentAction, breaker.Signature{}, "", 0, true} {
		allowed[reflect.TypeOf(value)] = true
	}
	observation := reflect.TypeFor[breaker.Observation]()
	for i := range observation.NumField() {
		field := observation.Field(i)
		of := field.Type
		if of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if !allowed[of] {
			t.Errorf("field %s has type %s", field.Name, of)
		}
		if of.Kind() == reflect.Bool && field.Name != "Counted" {
			t.Errorf("field %s says yes or no to something", field.Name)
		}
		for _, word := range []string{"Verdict", "Deny", "Denied", "Allow", "Block", "Reason", "Boundary", "Err", "Replace"} {
			if strings.Contains(field.Name, word) {
				t.Errorf("field %s", field.Name)
			}
		}
	}
	for _, verdict := range []any{policy.VerdictDeny, policy.ReasonForbidden, policy.ClassForbidden, policy.BoundaryNone} {
		if allowed[reflect.TypeOf(verdict)] {
			t.Errorf("%T is among the allowed types", verdict)
		}
	}
	observe, _ := reflect.TypeFor[breaker.Settings]().MethodByName("Observe")
	for i := range observe.Type.NumOut() {
		if out := observe.Type.Out(i); out != observation && out != reflect.TypeFor[breaker.Window]() {
			t.Errorf("Observe also answers with %s", out)
		}
	}
}

func TestSettingsAreBounded(t *testing.T) {
	for name, row := range map[string]struct {
		settings breaker.Settings
		n        int
		want     int // observations kept
	}{
		"the default window":                           {breaker.Settings{}, 300, 32},
		"a window too small for the signals is raised": {breaker.Settings{Window: 1}, 300, 12},
		"a window too large is lowered":                {breaker.Settings{Window: 1 << 30}, 300, 256},
		"signals too large are lowered":                {breaker.Settings{SameResult: 1 << 30, Rounds: 1 << 30, LongestCycle: 1 << 30}, 300, 256},
		"a count of one is raised to two":              {breaker.Settings{SameResult: 1, SameError: 1, LongestCycle: 1, Rounds: 1, Window: 1}, 300, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var window breaker.Window
			for range row.n {
				e := call("get", "web", "x")
				window, _ = row.settings.Observe(window, &e)
			}
			if got := len(window.Observed); got != row.want {
				t.Errorf("%d kept, want %d", got, row.want)
			}
		})
	}
	t.Run("own counts", func(t *testing.T) {
		settings := breaker.Settings{SameResult: 2, SameError: 5, LongestCycle: 2, Rounds: 2}
		if all := settings.Replay(times(2, call("get", "web", "x"))); all[1].Signal != breaker.SignalSameResult {
			t.Errorf("%+v", all[1])
		}
		if all := settings.Replay(times(4, failed("get", "web", "x"))); all[3].Signal != "" {
			t.Errorf("%+v", all[3])
		}
		if all := settings.Replay(times(2, call("get", "web", "x"), call("list", "", "y"))); all[3].Signal != breaker.SignalCycle {
			t.Errorf("%+v", all[3])
		}
		if all := settings.Replay(times(3, call("a", "", ""), call("b", "", ""), call("c", "", ""))); all[8].Signal != "" {
			t.Errorf("a cycle longer than asked for: %+v", all[8])
		}
	})
}

func TestSignaturesAreKeyedAndHoldNoPayload(t *testing.T) {
	e := call("get", "password", "hunter2")
	one, two := breaker.Sign([]byte("key-1"), &e), breaker.Sign([]byte("key-2"), &e)
	for i := range one {
		if one[i] == two[i] {
			t.Errorf("component %d does not depend on the key", i)
		}
	}
	text, err := json.Marshal(breaker.Window{Observed: []breaker.Signature{one}})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "password") || strings.Contains(string(text), "hunter2") {
		t.Errorf("a payload is in %s", text)
	}
	var read breaker.Window
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(breaker.Window{Observed: []breaker.Signature{one}}, read); diff != "" {
		t.Error(diff)
	}
	e.State = e.Inputs
	if s := breaker.Sign(nil, &e); s[1] == s[2] {
		t.Error("equal texts of two components have one digest")
	}
}

// drawRun is up to 15 calls of at most three kinds, in turn or not, so that calls often come again.
func drawRun(t *rapid.T) []breaker.Event {
	pick := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
	palette := make([]breaker.Event, rapid.IntRange(1, 3).Draw(t, "palette"))
	for i := range palette {
		e := call(pick("action", "get", "list"), pick("inputs", "a", "b"), pick("result", "x", "y"))
		e.Outcome = rapid.SampledFrom([]breaker.Outcome{breaker.OutcomeSucceeded, breaker.OutcomeSucceeded, breaker.OutcomeFailed, breaker.OutcomeFailed, breaker.OutcomeFailed, breaker.OutcomeHeld}).Draw(t, "outcome")
		e.Recovery = rapid.SampledFrom([]breaker.Recovery{breaker.RecoveryNone, breaker.RecoveryNone, breaker.RecoveryAvailable}).Draw(t, "recovery")
		if rapid.IntRange(0, 3).Draw(t, "state") == 0 {
			e.State = breaker.Part{}
		}
		palette[i] = e
	}
	inTurn := rapid.Bool().Draw(t, "in turn")
	events := make([]breaker.Event, rapid.IntRange(1, 15).Draw(t, "length"))
	for i := range events {
		events[i] = palette[i%len(palette)]
		if !inTurn {
			events[i] = rapid.SampledFrom(palette).Draw(t, "next")
		}
	}
	return events
}

// Proves L-1, L-2, L-3, B-8.
func TestPropertiesOfEveryRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var window breaker.Window
		var native []breaker.Event
		for _, e := range drawRun(t) {
			before := append([]breaker.Signature{}, window.Observed...)
			next, o := breaker.Settings{}.Observe(window, &e)
			if diff := cmp.Diff(before, append([]breaker.Signature{}, window.Observed...)); diff != "" {
				t.Fatalf("the given window changed: %s", diff)
			}
			window = next
			if e.Outcome == breaker.OutcomeHeld {
				if o.Counted || len(window.Observed) != len(before) {
					t.Fatalf("a hold was counted: %+v", o)
				}
				continue
			}
			native = append(native, e)
			checkObservation(t, native, o)
		}
	})
}

func TestRunsReachEverySignal(t *testing.T) {
	labels := rapid.Custom(func(t *rapid.T) []string {
		var labels []string
		events := drawRun(t)
		for i, o := range (breaker.Settings{}).Replay(events) {
			labels = append(labels, fmt.Sprintf("held %t", events[i].Outcome == breaker.OutcomeHeld))
			if o.Counted {
				labels = append(labels, "signal "+string(o.Signal), "label "+string(o.Label))
			}
		}
		return labels
	})
	shares.Check(t, labels, 2000, "signal "+string(breaker.SignalNone), "signal "+string(breaker.SignalSameResult), "signal "+string(breaker.SignalSameError),
		"signal "+string(breaker.SignalCycle), "label "+string(breaker.LabelBlocked), "label "+string(breaker.LabelNone), "held true", "held false")
}

// checkObservation counts by hand: events are plain enough here to be compared as they are.
func checkObservation(t *rapid.T, events []breaker.Event, o breaker.Observation) {
	n := len(events)
	same := func(i, j int) bool {
		a, b := events[i], events[j]
		a.Recovery, b.Recovery = "", ""
		return a == b
	}
	if o.Signal == breaker.SignalNone {
		return
	}
	if o.Count < 3 || n < o.Count*o.Period {
		t.Fatalf("a signal of %d rounds of %d in %d calls", o.Count, o.Period, n)
	}
	for i := n - 1; i >= n-(o.Count-1)*o.Period; i-- {
		if !same(i, i-o.Period) {
			t.Fatalf("signal %s over calls that differ", o.Signal)
		}
	}
	if o.Label == breaker.LabelBlocked && (events[n-1].State == breaker.Part{} || events[n-1].Recovery != breaker.RecoveryNone || o.Period != 1) {
		t.Fatalf("blocked without the evidence: %+v", o)
	}
}

// Proves L-1, B-8.
func TestAdviceNamesNoFailureOfTheRuntime(t *testing.T) {
	for _, events := range [][]breaker.Event{times(4, call("get", "w", "x")), times(3, failed("get", "w", "x")), times(3, call("get", "w", "x"), call("list", "w", "x"))} {
		_, o := last(events)
		for _, word := range []string{"repeat", "loop", "denied", "blocked", "controller", "lock", "todo", "must", "exploration"} {
			if strings.Contains(strings.ToLower(o.Advice), word) {
				t.Errorf("%q is in %q", word, o.Advice)
			}
		}
	}
}
