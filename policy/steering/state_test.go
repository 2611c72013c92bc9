package steering_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/steering"
)

// view is what a row wants to see of a State.
type view struct {
	Epoch   int64
	Hold    steering.HoldState
	ID      string
	Waiting []string
}

func see(s steering.State) view {
	hold := s.Hold()
	v := view{Epoch: s.Epoch, Hold: hold.State, Waiting: hold.WaitingFor}
	if hold.Input != nil {
		v.ID = hold.Input.ID
	}
	return v
}

// Proves.
func TestSteeringRaisesTheEpochAndHoldsAtTheNextBoundary(t *testing.T) {
	fresh := steering.State{Epoch: 1, ListedEpoch: 1}
	running := must(t, fresh, steering.ActionStarted{Action: action("a1", 1)})
	for _, kind := range []steering.InputType{steering.TypeScope, steering.TypeSafety, steering.TypePriority, steering.TypePlan} {
		t.Run(string(kind)+" waits for the action that has started and then holds", func(t *testing.T) {
			s := must(t, running, steered(input(kind, "in-1")))
			if diff := cmp.Diff(view{Epoch: 2, Hold: steering.HoldWaitingForBoundary, ID: "in-1", Waiting: []string{"a1"}}, see(s)); diff != "" {
				t.Error(diff)
			}
			s = must(t, s, listed(s), steering.ActionSettled{ID: "a1", Time: after(3)})
			if diff := cmp.Diff(view{Epoch: 2, Hold: steering.HoldHeld, ID: "in-1"}, see(s)); diff != "" {
				t.Error(diff)
			}
			if got := s.Hold().BoundaryTime; !got.Equal(after(3)) {
				t.Errorf("the boundary was reached at %v, want %v", got, after(3))
			}
		})
	}
	t.Run("Context neither raises the epoch nor holds", func(t *testing.T) {
		s := must(t, running, steered(input(steering.TypeContext, "runbook")))
		if diff := cmp.Diff(view{Epoch: 1, Hold: steering.HoldNone}, see(s)); diff != "" {
			t.Error(diff)
		}
		if open := s.Open(); len(open) != 1 || open[0].ID != "runbook" {
			t.Errorf("the input is not visible: %v", open)
		}
	})
	t.Run("nothing in flight: the boundary is reached as soon as that is known", func(t *testing.T) {
		s := must(t, fresh, steered(input(steering.TypePlan, "in-1")))
		if got := s.Hold().State; got != steering.HoldWaitingForBoundary {
			t.Errorf("before the list: %s", got)
		}
		if got := must(t, s, listed(s)).Hold().State; got != steering.HoldHeld {
			t.Errorf("after the list: %s", got)
		}
	})
	t.Run("an action that the list found is waited for until its lease ends", func(t *testing.T) {
		s := must(t, fresh, steered(input(steering.TypePlan, "in-1")))
		s = must(t, s, listed(s, action("grant-use", 1), action("grant-use", 1)))
		if diff := cmp.Diff(view{Epoch: 2, Hold: steering.HoldWaitingForBoundary, ID: "in-1", Waiting: []string{"grant-use"}}, see(s)); diff != "" {
			t.Error(diff)
		}
		if _, err := s.Apply(steering.LeaseEnded{ID: "grant-use", Time: after(29)}); rejection(t, err).Problem != steering.ProblemTooEarly {
			t.Errorf("a lease ended before its time: %v", err)
		}
		s = must(t, s, steering.LeaseEnded{ID: "grant-use", Time: after(30)})
		if got := s.Hold(); got.State != steering.HoldHeld || !got.BoundaryTime.Equal(after(30)) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a list older than the newest input is refused", func(t *testing.T) {
		first := must(t, fresh, steered(input(steering.TypePlan, "in-1")))
		second := must(t, first, steered(input(steering.TypePlan, "in-2")))
		_, err := second.Apply(listed(first))
		if diff := cmp.Diff(steering.Rejection{Field: "epoch", Problem: steering.ProblemOldEpoch}, rejection(t, err)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a second input moves the boundary", func(t *testing.T) {
		s := must(t, held(t, input(steering.TypePlan, "in-1")), steered(input(steering.TypeSafety, "in-2")))
		if diff := cmp.Diff(view{Epoch: 3, Hold: steering.HoldWaitingForBoundary, ID: "in-1"}, see(s)); diff != "" {
			t.Error(diff)
		}
		if !s.Hold().BoundaryTime.IsZero() {
			t.Error("the older boundary is still shown")
		}
	})
	t.Run("a quick answer does not let the new plan run beside the old action", func(t *testing.T) {
		s := must(t, running, steered(input(steering.TypePlan, "in-1")), answer("in-1", steering.StatusApplied))
		s = must(t, s, listed(s))
		if diff := cmp.Diff(view{Epoch: 2, Hold: steering.HoldWaitingForBoundary, ID: "in-1", Waiting: []string{"a1"}}, see(s)); diff != "" {
			t.Error(diff)
		}
		s = must(t, s, steering.ActionSettled{ID: "a1", Time: after(2)})
		if diff := cmp.Diff(view{Epoch: 2, Hold: steering.HoldNone}, see(s)); diff != "" {
			t.Error(diff)
		}
		must(t, s, steering.ActionStarted{Action: action("a2", 2)})
	})
}

// Proves R-1.
func TestNothingStartsOrIsProlongedUnderAHold(t *testing.T) {
	running := must(t, steering.State{Epoch: 1, ListedEpoch: 1}, steering.ActionStarted{Action: action("a1", 1)})
	renewed := must(t, running, steering.LeaseRenewed{ID: "a1", Until: after(70), Time: after(20)})
	if got := renewed.InFlight[0].LeaseUntil; !got.Equal(after(70)) {
		t.Errorf("the lease ends at %v", got)
	}
	waiting := must(t, running, steered(input(steering.TypePlan, "in-1")))
	atBoundary := must(t, waiting, listed(waiting), steering.ActionSettled{ID: "a1", Time: after(2)})
	for name, row := range map[string]struct {
		state steering.State
		event steering.Event
		want  steering.Rejection
	}{
		"an action that starts while the boundary is awaited": {waiting, steering.ActionStarted{Action: action("a2", 2)}, steering.Rejection{Field: "action", Problem: steering.ProblemHeld, InputID: "in-1"}},
		"an action that starts after the boundary":            {atBoundary, steering.ActionStarted{Action: action("a2", 2)}, steering.Rejection{Field: "action", Problem: steering.ProblemHeld, InputID: "in-1"}},
		"a lease renewed while the boundary is awaited":       {waiting, steering.LeaseRenewed{ID: "a1", Until: after(70), Time: after(20)}, steering.Rejection{Field: "id", Problem: steering.ProblemHeld, InputID: "in-1"}},
		"an action of an older epoch":                         {running, steering.ActionStarted{Action: action("a2", 0)}, steering.Rejection{Field: "action.epoch", Problem: steering.ProblemOldEpoch}},
		"an action that runs already":                         {running, steering.ActionStarted{Action: action("a1", 1)}, steering.Rejection{Field: "action.id", Problem: steering.ProblemDuplicate}},
		"an action without a name":                            {running, steering.ActionStarted{Action: action("", 1)}, steering.Rejection{Field: "action.id", Problem: steering.ProblemMissing}},
		"a lease longer than a minute":                        {running, steering.ActionStarted{Action: steering.Action{ID: "a2", Epoch: 1, StartTime: start, LeaseUntil: after(61)}}, steering.Rejection{Field: "action.leaseUntil", Problem: steering.ProblemInvalid}},
		"a lease without an end":                              {running, steering.ActionStarted{Action: steering.Action{ID: "a2", Epoch: 1, StartTime: start}}, steering.Rejection{Field: "action.leaseUntil", Problem: steering.ProblemInvalid}},
		"a batch of 257 members":                              {running, steering.ActionStarted{Action: action("a2", 1, make([]string, 257)...)}, steering.Rejection{Field: "action.members", Problem: steering.ProblemTooLong}},
		"a renewal of more than a minute":                     {running, steering.LeaseRenewed{ID: "a1", Until: after(81), Time: after(20)}, steering.Rejection{Field: "until", Problem: steering.ProblemInvalid}},
		"a renewal of nothing":                                {running, steering.LeaseRenewed{ID: "a9", Until: after(70), Time: after(20)}, steering.Rejection{Field: "id", Problem: steering.ProblemUnknown}},
		"the end of nothing":                                  {running, steering.ActionSettled{ID: "a9", Time: after(20)}, steering.Rejection{Field: "id", Problem: steering.ProblemUnknown}},
		"the end of a lease of nothing":                       {running, steering.LeaseEnded{ID: "a9", Time: after(20)}, steering.Rejection{Field: "id", Problem: steering.ProblemUnknown}},
		"a list with an action of a later epoch":              {waiting, listed(waiting, action("a3", 7)), steering.Rejection{Field: "actions[0].epoch", Problem: steering.ProblemOldEpoch}},
		"a list with a nameless action":                       {waiting, listed(waiting, action("a3", 1), action("", 1)), steering.Rejection{Field: "actions[1].id", Problem: steering.ProblemMissing}},
	} {
		t.Run(name+" is refused and changes nothing", func(t *testing.T) {
			next, err := row.state.Apply(row.event)
			if diff := cmp.Diff(row.want, rejection(t, err)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(row.state, next); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Proves R-2.
func TestAMalformedReconciliationIsRefusedByFieldAndChangesNothing(t *testing.T) {
	first, second := input(steering.TypePlan, "in-1"), input(steering.TypeScope, "in-2")
	stop := input(steering.TypeSafety, "stop")
	stop.Constraints.Activity = steering.ActivitySuspend
	s := must(t, held(t, first), steered(second), steered(stop), steered(input(steering.TypeContext, "runbook")))
	good := answer("in-1", steering.StatusApplied).Reconciliation
	for name, row := range map[string]struct {
		change func(*steering.Reconciliation)
		want   steering.Rejection
	}{
		"no input ID":                     {func(r *steering.Reconciliation) { r.InputID = "" }, steering.Rejection{Field: "inputId", Problem: steering.ProblemMissing}},
		"an input of someone else":        {func(r *steering.Reconciliation) { r.InputID = "in-9" }, steering.Rejection{Field: "inputId", Problem: steering.ProblemUnknown}},
		"an input out of order":           {func(r *steering.Reconciliation) { r.InputID = "in-2" }, steering.Rejection{Field: "inputId", Problem: steering.ProblemOutOfOrder, InputID: "in-1"}},
		"Context, which asks for nothing": {func(r *steering.Reconciliation) { r.InputID = "runbook" }, steering.Rejection{Field: "inputId", Problem: steering.ProblemNotOpen}},
		"a suspension":                    {func(r *steering.Reconciliation) { r.InputID = "stop" }, steering.Rejection{Field: "inputId", Problem: steering.ProblemSuspension}},
		"no status":                       {func(r *steering.Reconciliation) { r.Status = "" }, steering.Rejection{Field: "status", Problem: steering.ProblemMissing}},
		"a status of its own":             {func(r *steering.Reconciliation) { r.Status = "done" }, steering.Rejection{Field: "status", Problem: steering.ProblemInvalid}},
		"no list of changes":              {func(r *steering.Reconciliation) { r.ChangedConstraints = nil }, steering.Rejection{Field: "changedConstraints", Problem: steering.ProblemMissing}},
		"17 changes":                      {func(r *steering.Reconciliation) { r.ChangedConstraints = make([]string, 17) }, steering.Rejection{Field: "changedConstraints", Problem: steering.ProblemTooLong}},
		"a blank change":                  {func(r *steering.Reconciliation) { r.ChangedConstraints = []string{"x", " "} }, steering.Rejection{Field: "changedConstraints[1]", Problem: steering.ProblemMissing}},
		"a change of 257 bytes":           {func(r *steering.Reconciliation) { r.ChangedConstraints = []string{string(make([]byte, 257))} }, steering.Rejection{Field: "changedConstraints[0]", Problem: steering.ProblemTooLong}},
		"no next action":                  {func(r *steering.Reconciliation) { r.RevisedNextAction = "" }, steering.Rejection{Field: "revisedNextAction", Problem: steering.ProblemMissing}},
		"a next action of bad UTF-8":      {func(r *steering.Reconciliation) { r.RevisedNextAction = "\xff" }, steering.Rejection{Field: "revisedNextAction", Problem: steering.ProblemInvalid}},
		"a next action of 513 bytes":      {func(r *steering.Reconciliation) { r.RevisedNextAction = string(make([]byte, 513)) }, steering.Rejection{Field: "revisedNextAction", Problem: steering.ProblemTooLong}},
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			row.change(&bad)
			next, err := s.Apply(steering.Reconciled{Reconciliation: bad, Time: after(5)})
			if diff := cmp.Diff(row.want, rejection(t, err)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(s, next); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Proves R-2.
func TestInputsAreAnsweredInOrder(t *testing.T) {
	s := held(t, input(steering.TypePlan, "in-1"))
	s = must(t, s, steered(input(steering.TypeScope, "in-2")))
	s = must(t, s, listed(s))

	s = must(t, s, answer("in-1", steering.StatusNeedsClarification))
	if diff := cmp.Diff(view{Epoch: 3, Hold: steering.HoldHeld, ID: "in-1"}, see(s)); diff != "" {
		t.Errorf("needs_clarification must keep the hold: %s", diff)
	}
	if _, err := s.Apply(answer("in-2", steering.StatusApplied)); rejection(t, err).Problem != steering.ProblemOutOfOrder {
		t.Errorf("in-2 was answered before in-1: %v", err)
	}
	s = must(t, s, answer("in-1", steering.StatusApplied))
	if diff := cmp.Diff(view{Epoch: 3, Hold: steering.HoldHeld, ID: "in-2"}, see(s)); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Apply(answer("in-1", steering.StatusApplied)); rejection(t, err).Problem != steering.ProblemNotOpen {
		t.Errorf("in-1 was answered twice: %v", err)
	}
	s = must(t, s, answer("in-2", steering.StatusNotApplicable))
	if diff := cmp.Diff(view{Epoch: 3, Hold: steering.HoldNone}, see(s)); diff != "" {
		t.Error(diff)
	}
	if open := s.Open(); open != nil {
		t.Errorf("answered inputs are still in the record: %v", open)
	}
}

// Proves.
func TestAnInputSupersedesOnlyWhatItNames(t *testing.T) {
	s := held(t, input(steering.TypePlan, "in-1"))
	s = must(t, s, steered(input(steering.TypePlan, "in-2")))
	if open := s.Open(); len(open) != 2 {
		t.Errorf("a newer plan silently superseded an older one: %v", open)
	}
	third := input(steering.TypePlan, "in-3")
	third.Supersedes = []string{"in-1", "never-seen"}
	third.Time = after(9)
	s = must(t, s, steered(third))
	var ids []string
	for _, entry := range s.Open() {
		ids = append(ids, entry.ID)
	}
	if diff := cmp.Diff([]string{"in-2", "in-3"}, ids); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Apply(answer("in-1", steering.StatusApplied)); rejection(t, err).Problem != steering.ProblemNotOpen {
		t.Errorf("a superseded input was answered: %v", err)
	}
	other := input(steering.TypeScope, "in-4")
	other.Supersedes = []string{"in-2"}
	_, err := s.Apply(steered(other))
	if diff := cmp.Diff(steering.Rejection{Field: "supersedes[0]", Problem: steering.ProblemNotAllowed}, rejection(t, err)); diff != "" {
		t.Error(diff)
	}
}

// Proves R-6.
func TestWhatEndsAnInput(t *testing.T) {
	forbid := steering.Constraints{Forbid: []steering.Selector{{Resources: []string{"statefulsets"}}}}
	call := steering.Call{Operation: write(policy.VerbDelete, "statefulsets", "db")}
	ending := func() steering.Input {
		in := input(steering.TypePlan, "in-1")
		in.Constraints, in.Expiration = forbid, after(100)
		return in
	}
	t.Run("withdrawing ends hold and constraint, and the epoch stays", func(t *testing.T) {
		s := must(t, held(t, ending()), steering.Withdrawn{ID: "in-1", Time: after(9)})
		if diff := cmp.Diff(view{Epoch: 2, Hold: steering.HoldNone}, see(s)); diff != "" {
			t.Error(diff)
		}
		if got := s.Answer(call).Outcome; got != steering.OutcomeProceed {
			t.Errorf("the write is %s", got)
		}
	})
	t.Run("withdrawing before the boundary ends the hold at once", func(t *testing.T) {
		s := must(t, steering.State{}, steered(ending()), steering.Withdrawn{ID: "in-1", Time: after(9)})
		if diff := cmp.Diff(view{Epoch: 1, Hold: steering.HoldNone}, see(s)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("withdrawing a newer input leaves the older one's hold", func(t *testing.T) {
		s := must(t, held(t, ending()), steered(input(steering.TypePlan, "in-2")), steering.Withdrawn{ID: "in-2", Time: after(9)})
		if hold := s.Hold(); hold.State != steering.HoldHeld || hold.Input.ID != "in-1" || !hold.BoundaryTime.Equal(after(9)) {
			t.Errorf("%+v", hold)
		}
	})
	t.Run("the boundary of an input that stays is not lost when a newer one is withdrawn", func(t *testing.T) {
		s := must(t, steering.State{}, steered(ending()), steered(input(steering.TypePlan, "in-2")),
			steering.Withdrawn{ID: "in-2", Time: after(9)}, answer("in-1", steering.StatusApplied))
		if got := s.Hold().State; got != steering.HoldWaitingForBoundary {
			t.Errorf("hold is %s", got)
		}
	})
	t.Run("an unanswered input that expires holds on and constrains no more", func(t *testing.T) {
		s := must(t, held(t, ending()), steering.Expired{ID: "in-1", Time: after(100)})
		if got := s.Answer(call); got.Outcome != steering.OutcomeHeld || got.Input.ID != "in-1" {
			t.Errorf("%+v", got)
		}
		s = must(t, s, answer("in-1", steering.StatusApplied))
		if got := s.Answer(call).Outcome; got != steering.OutcomeProceed || len(s.Inputs) != 0 {
			t.Errorf("%s with %d inputs in force", got, len(s.Inputs))
		}
	})
	t.Run("an answered input that expires is forgotten", func(t *testing.T) {
		s := must(t, held(t, ending()), answer("in-1", steering.StatusApplied))
		if got := s.Answer(call).Outcome; got != steering.OutcomeConstrained {
			t.Errorf("before: %s", got)
		}
		if s = must(t, s, steering.Expired{ID: "in-1", Time: after(100)}); len(s.Inputs) != 0 {
			t.Errorf("still in force: %v", s.Inputs)
		}
	})
	t.Run("an expired input that is superseded is forgotten", func(t *testing.T) {
		next := input(steering.TypePlan, "in-2")
		next.Supersedes = []string{"in-1"}
		s := must(t, held(t, ending()), steering.Expired{ID: "in-1", Time: after(100)}, steered(next))
		if len(s.Inputs) != 1 || s.Inputs[0].ID != "in-2" {
			t.Errorf("%v", s.Inputs)
		}
	})
	t.Run("a superseded input keeps its constraints until it is withdrawn", func(t *testing.T) {
		next := input(steering.TypePlan, "in-2")
		next.Supersedes = []string{"in-1"}
		s := must(t, held(t, ending()), steered(next))
		if got := s.Answer(call); got.Outcome != steering.OutcomeConstrained || got.Input.ID != "in-1" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a suspension ends by withdrawal only", func(t *testing.T) {
		stop := input(steering.TypeSafety, "stop")
		stop.Constraints.Activity, stop.Expiration = steering.ActivitySuspend, after(100)
		next := input(steering.TypeSafety, "next")
		next.Supersedes = []string{"stop"}
		s := held(t, stop)
		if _, err := s.Apply(steering.Expired{ID: "stop", Time: after(100)}); rejection(t, err).Problem != steering.ProblemSuspension {
			t.Errorf("it expired: %v", err)
		}
		s = must(t, s, steered(next), answer("next", steering.StatusApplied))
		s = must(t, s, listed(s))
		if hold := s.Hold(); !hold.Suspended || hold.Input.ID != "stop" {
			t.Errorf("superseding it resumed the session: %+v", hold)
		}
		s = must(t, s, steering.Withdrawn{ID: "stop", Time: after(200)})
		if got := s.Hold().State; got != steering.HoldNone {
			t.Errorf("hold is %s", got)
		}
	})
	for name, event := range map[string]steering.Event{
		"withdrawing what was never there": steering.Withdrawn{ID: "in-9", Time: after(9)},
		"expiring what was never there":    steering.Expired{ID: "in-9", Time: after(9)},
		"expiring before the time":         steering.Expired{ID: "in-1", Time: after(99)},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			if _, err := held(t, ending()).Apply(event); rejection(t, err).Field == "" {
				t.Error("the field is not named")
			}
		})
	}
}

// Proves R-2.
func TestAStateSurvivesBeingWrittenDown(t *testing.T) {
	full := input(steering.TypeScope, "in-1")
	full.Expiration = after(1000)
	full.Constraints = steering.Constraints{
		ForbidCapabilities: []policy.Capability{policy.CapabilityPublishExternal},
		Forbid:             []steering.Selector{{Groups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []policy.Verb{policy.VerbDelete}}},
		NarrowTo:           []steering.Selector{{Groups: []string{"apps"}, Resources: []string{"deployments"}, Names: []string{"web"}}},
		StrictScope:        steering.ScopeActivate,
		Budgets:            steering.Budgets{MaxMutations: count(10), MaxChildSessions: count(0)},
	}
	running := must(t, steering.State{Epoch: 1, ListedEpoch: 1}, steering.ActionStarted{Action: action("a1", 1, "v1:x")})
	s := must(t, running, steered(full), steered(input(steering.TypeContext, "runbook")), answer("in-1", steering.StatusNeedsClarification))
	for name, state := range map[string]steering.State{"a state in the middle of a boundary": s, "the state of a held session": must(t, held(t, full)), "no state": {}} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(state)
			if err != nil {
				t.Fatal(err)
			}
			var read steering.State
			if err := json.Unmarshal(text, &read); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(state, read); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(state.Hold(), read.Hold(), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("an input that is delivered again changes nothing", func(t *testing.T) {
		next, err := s.Apply(steered(full))
		if diff := cmp.Diff(steering.Rejection{Field: "id", Problem: steering.ProblemDuplicate}, rejection(t, err)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(s, next); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("an input that expired before it arrived is refused", func(t *testing.T) {
		_, err := steering.State{}.Apply(steering.Steered{Input: full, Time: after(1000)})
		if diff := cmp.Diff(steering.Rejection{Field: "expiration", Problem: steering.ProblemExpired}, rejection(t, err)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the 65th input is refused, a suspension never", func(t *testing.T) {
		s := steering.State{}
		for i := range steering.MaxInputs {
			s = must(t, s, steered(input(steering.TypeContext, fmt.Sprintf("in-%d", i))))
		}
		_, err := s.Apply(steered(input(steering.TypePlan, "one-more")))
		if diff := cmp.Diff(steering.Rejection{Field: "id", Problem: steering.ProblemTooMany}, rejection(t, err)); diff != "" {
			t.Error(diff)
		}
		stop := input(steering.TypeSafety, "stop")
		stop.Constraints.Activity = steering.ActivitySuspend
		if hold := must(t, s, steered(stop)).Hold(); !hold.Suspended {
			t.Errorf("%+v", hold)
		}
	})
}
