package steering_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/internal/testing/shares"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/steering"
)

var (
	kinds    = []steering.InputType{steering.TypeScope, steering.TypeSafety, steering.TypePriority, steering.TypePlan, steering.TypeContext}
	statuses = []steering.Status{steering.StatusApplied, steering.StatusNotApplicable, steering.StatusNeedsClarification, "done"}
	ids      = []string{"in-1", "in-2", "in-3", "in-4"}
	objects  = []string{"web", "api", ""}
	plurals  = []string{"deployments", "jobs"}
	allVerbs = []policy.Verb{policy.VerbCreate, policy.VerbUpdate, policy.VerbDelete, policy.VerbConnect, policy.VerbRead}
)

func one[T any](t *rapid.T, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, label)
}

func drawSelectors(t *rapid.T, label string) []steering.Selector {
	var selectors []steering.Selector
	for range max(0, rapid.IntRange(-3, 1).Draw(t, label)) {
		selectors = append(selectors, steering.Selector{Resources: []string{one(t, "resource", "*", "deployments", "jobs")}, Names: one(t, "names", nil, []string{"web"}, []string{"a*"})})
	}
	return selectors
}

func drawInput(t *rapid.T) steering.Input {
	in := input(one(t, "type", kinds...), one(t, "id", ids...))
	in.Supersedes = one(t, "supersedes", nil, []string{"in-1"}, []string{"in-2"})
	if in.Type == steering.TypeContext {
		return in
	}
	in.Constraints = steering.Constraints{Forbid: drawSelectors(t, "forbid"), NarrowTo: drawSelectors(t, "narrow"), Budgets: steering.Budgets{MaxMutations: one(t, "budget", nil, nil, nil, nil, count(5))}}
	if in.Type == steering.TypeSafety && rapid.Bool().Draw(t, "suspend") {
		in.Constraints.Activity = steering.ActivitySuspend
	}
	in.Expiration = one(t, "expiration", in.Expiration, after(100))
	return in
}

func drawEvent(t *rapid.T, s steering.State) steering.Event {
	id := one(t, "id", ids...)
	work := one(t, "action", "a1", "a2")
	switch rapid.IntRange(0, 15).Draw(t, "event") {
	case 0, 1:
		return steered(drawInput(t))
	case 2:
		return steering.ActionStarted{Action: action(work, s.Epoch)}
	case 3, 10:
		return listed(s)
	case 4:
		return listed(s, action(work, max(0, s.Epoch-1)))
	case 5, 12:
		return steering.ActionSettled{ID: work, Time: after(4)}
	case 6, 11:
		return steering.LeaseRenewed{ID: work, Until: after(50), Time: after(4)}
	case 7, 14:
		return steering.Withdrawn{ID: id, Time: after(4)}
	case 8, 13:
		return steering.Expired{ID: id, Time: after(200)}
	default:
		return answer(id, one(t, "status", statuses...))
	}
}

func drawCall(t *rapid.T) steering.Call {
	op := write(one(t, "verb", allVerbs...), one(t, "plural", plurals...), one(t, "object", objects...))
	op.DryRun = rapid.IntRange(0, 4).Draw(t, "dry run") == 0
	return steering.Call{Operation: op, Role: one(t, "role", steering.RoleOrdinary, steering.RoleOrdinary, steering.RoleOrdinary, steering.RoleOrdinary, steering.RoleVerifier, steering.RoleReconciliation), Mutations: one[int32](t, "mutations", 0, 7)}
}

// turn is one event of a history, the states around it, and a call that is answered after it.
type turn struct {
	before, after steering.State
	event         steering.Event
	err           error
	call          steering.Call
}

// history draws turns one after the other, so that each is drawn for the state that the one before left.
func history(t *rapid.T, each func(turn)) {
	s := steering.State{Epoch: 1, ListedEpoch: 1}
	for range rapid.IntRange(1, 25).Draw(t, "length") {
		event, call := drawEvent(t, s), drawCall(t)
		next, err := s.Apply(event)
		each(turn{before: s, after: next, event: event, err: err, call: call})
		s = next
	}
}

// Proves.
func TestPropertiesOfEveryHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history(t, func(s turn) {
			checkStep(t, s.before, s.event, s.after, s.err, s.call)
			checkState(t, s.after, s.call)
		})
	})
}

func TestHistoriesReachEveryAnswerHoldAndEvent(t *testing.T) {
	labels := rapid.Custom(func(t *rapid.T) []string {
		var labels []string
		history(t, func(s turn) {
			name := strings.TrimPrefix(fmt.Sprintf("%T", s.event), "steering.")
			labels = append(labels, "event "+name, fmt.Sprintf("%s accepted=%t", name, s.err == nil),
				"answer "+string(s.after.Answer(s.call).Outcome), "hold "+string(s.after.Hold().State))
		})
		return labels
	})
	wanted := []string{"answer Proceed", "answer Held", "answer Constrained", "hold None", "hold WaitingForBoundary", "hold Held"}
	for _, event := range []string{"Steered", "InFlightListed", "ActionStarted", "ActionSettled", "LeaseRenewed", "Withdrawn", "Expired", "Reconciled"} {
		wanted = append(wanted, "event "+event, event+" accepted=true")
	}
	shares.Check(t, labels, 1000, wanted...)
}

// checkStep compares a state with the one before.
func checkStep(t *rapid.T, s steering.State, event steering.Event, next steering.State, err error, call steering.Call) {
	if err != nil {
		if diff := cmp.Diff(s, next); diff != "" {
			t.Fatalf("a rejected %T changed the state: %s", event, diff)
		}
		return
	}
	raised := next.Epoch - s.Epoch
	in, isInput := event.(steering.Steered)
	if want := int64(0); !isInput || !in.Input.Type.ChangesAuthority() {
		if raised != want {
			t.Fatalf("%T moved the epoch by %d", event, raised)
		}
	} else if raised != 1 {
		t.Fatalf("an input of type %s moved the epoch by %d", in.Input.Type, raised)
	}
	if isInput && in.Input.Type == steering.TypeContext && next.Hold().State != s.Hold().State {
		t.Fatalf("a context input turned hold %s into %s", s.Hold().State, next.Hold().State)
	}
	switch event.(type) {
	case steering.Withdrawn, steering.Expired:
	default:
		if s.Answer(call).Outcome == steering.OutcomeConstrained && next.Answer(call).Outcome != steering.OutcomeConstrained {
			t.Fatalf("%T gave back what an input had taken", event)
		}
	}
}

// checkState looks at one state alone.
func checkState(t *rapid.T, s steering.State, call steering.Call) {
	hold, got := s.Hold(), s.Answer(call)
	if (hold.Input != nil) != (hold.State != steering.HoldNone) {
		t.Fatalf("a hold without its input: %+v", hold)
	}
	if got.Spared != steering.SpareNone && got.Outcome == steering.OutcomeHeld {
		t.Fatalf("a spared call (%s) is held", got.Spared)
	}
	op := call.Operation
	if got.Outcome == steering.OutcomeHeld && (got.Input == nil || !op.Verb.Mutating() || op.DryRun || call.Role != steering.RoleOrdinary) {
		t.Fatalf("held without an input or though it must not be: %+v", got)
	}
	if hold.State != steering.HoldNone && got.Outcome == steering.OutcomeProceed && got.Spared == steering.SpareNone {
		t.Fatal("a write passes a hold")
	}
	checkRecord(t, s)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var read steering.State
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, read, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("written down and read back: %s", diff)
	}
}

func checkRecord(t *rapid.T, s steering.State) {
	var open []string
	for _, entry := range s.Open() {
		open = append(open, entry.ID)
	}
	bound := rapid.IntRange(steering.RecordReserve(len(ids), 4), 1500).Draw(t, "bound")
	record := s.Record(bound)
	if len(record) > bound {
		t.Fatalf("the record has %d bytes, bound %d", len(record), bound)
	}
	if (record == "") != (len(open) == 0) {
		t.Fatalf("record %q with %d open inputs", record, len(open))
	}
	if !slices.IsSortedFunc(open, func(a, b string) int {
		return strings.LastIndex(listing(record), " "+a) - strings.LastIndex(listing(record), " "+b)
	}) {
		t.Fatalf("inputs %v are out of order in %q", open, record)
	}
	for _, id := range open {
		if !strings.Contains(listing(record), " "+id) {
			t.Fatalf("%s is missing in %q", id, record)
		}
	}
	frame := s.Frame([]string{"user", "facts"}, bound)
	if record != "" && frame[len(frame)-1] != record {
		t.Fatalf("the record is not last: %q", frame)
	}
}

// listing is the record without its first sentence, which names the input of the hold.
func listing(record string) string {
	if first, rest, found := strings.Cut(record, "\n"); found && strings.HasPrefix(first, "Steering, ") {
		return rest
	}
	return record
}
