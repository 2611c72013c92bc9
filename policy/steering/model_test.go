package steering_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/steering"
)

// The model runs the protocol around a State step by step, in every order: two grants of epoch 1 that two replicas use,
// a tool call, a person who steers twice, the controller that looks for what is in flight, and the agent who answers.

// step is where a use of a grant stands.
type step string

const (
	approved step = "approved" // usable when the replica decided
	decided  step = "decided"  // the engine said Granted, from a state that may be old by now
	reserved step = "reserved" // the use is written
	reread   step = "reread"   // the epoch was read again after that and still fits
	allowed  step = "allowed"  // answered: the effect happens at any moment
	settled  step = "settled"  // the effect has happened
	closed   step = "closed"   // refused
)

// world is one state of the model; it is copied by value and keyed by its JSON.
type world struct {
	State steering.State
	Uses  [2]step
	// Call is the tool call: approved, allowed or settled.
	Call step
	// Steered counts the inputs that have arrived.
	Steered int
	// Listing is the list that the controller has read and not yet written; nil when it has read none.
	Listing []string
	// ListingEpoch is the epoch that it was read under; 0 when there is none.
	ListingEpoch int64
	Asked        bool
}

// protocol can be broken on purpose, to show that the check notices.
type protocol struct {
	skipReread, skipList, listBeforeRaise bool
}

func (w world) inFlight() []string {
	var ids []string
	for i, use := range w.Uses {
		if use == reserved || use == reread || use == allowed {
			ids = append(ids, fmt.Sprintf("use-%d", i))
		}
	}
	return ids
}

// apply is w after an event that the state accepts; ok is false for one that it rejects.
func (w world) apply(event steering.Event) (world, bool) {
	next, err := w.State.Apply(event)
	w.State = next
	return w, err == nil
}

// settle reports the end of a use to the state, when the state knows of it.
func (w world) settle(i int, to step) world {
	w.Uses[i] = to
	w, _ = w.apply(steering.ActionSettled{ID: fmt.Sprintf("use-%d", i), Time: start})
	return w
}

func (p protocol) next(w world) []world {
	var all []world
	for i := range w.Uses {
		all = append(all, p.use(w, i)...)
	}
	all = append(all, toolCall(w)...)
	all = append(all, p.control(w)...)
	return append(all, agent(w)...)
}

// use moves one use of a grant that was approved under epoch 1.
func (p protocol) use(w world, i int) []world {
	fits := w.State.Epoch == 1 && w.State.Answer(steering.Call{Operation: write(policy.VerbDelete, "jobs", "j")}).Outcome == steering.OutcomeProceed
	switch w.Uses[i] {
	case approved:
		if !fits {
			w.Uses[i] = closed
			return []world{w}
		}
		w.Uses[i] = decided
	case decided:
		w.Uses[i] = reserved
	case reserved:
		if !fits && !p.skipReread {
			return []world{w.settle(i, closed)}
		}
		w.Uses[i] = reread
	case reread:
		w.Uses[i] = allowed
	case allowed:
		w = w.settle(i, settled)
	default:
		return nil
	}
	return []world{w}
}

func toolCall(w world) []world {
	switch w.Call {
	case approved:
		started, ok := w.apply(steering.ActionStarted{Action: action("call", w.State.Epoch)})
		if !ok {
			return nil
		}
		started.Call = allowed
		return []world{started}
	case allowed:
		done, _ := w.apply(steering.ActionSettled{ID: "call", Time: start})
		done.Call = settled
		return []world{done}
	default:
		return nil
	}
}

// control is the person who steers and the controller that lists what is in flight: two steps, a read and a write.
func (p protocol) control(w world) []world {
	var all []world
	if w.Steered < 2 {
		in := input([]steering.InputType{steering.TypePlan, steering.TypeSafety}[w.Steered], fmt.Sprintf("in-%d", w.Steered))
		next, _ := w.apply(steered(in))
		next.Steered++
		all = append(all, next)
	}
	if w.ListingEpoch == 0 && w.State.ListedEpoch < w.State.Epoch+p.ahead() {
		next := w
		next.Listing, next.ListingEpoch = w.inFlight(), w.State.Epoch+p.ahead()
		if p.skipList {
			next.Listing = nil
		}
		all = append(all, next)
	}
	if w.ListingEpoch > 0 {
		var actions []steering.Action
		for _, id := range w.Listing {
			actions = append(actions, action(id, 1))
		}
		next, _ := w.apply(steering.InFlightListed{Epoch: w.ListingEpoch, Actions: actions, Time: start})
		next.Listing, next.ListingEpoch = nil, 0
		if p.listBeforeRaise && next.State.ListedEpoch < w.ListingEpoch {
			next.ListingEpoch = w.ListingEpoch
		}
		all = append(all, next)
	}
	// A lease outlasts every request, so it ends only for what is over: here, what settled between read and write.
	for i, use := range w.Uses {
		if use == settled || use == closed {
			if next, ok := w.apply(steering.LeaseEnded{ID: fmt.Sprintf("use-%d", i), Time: after(30)}); ok {
				all = append(all, next)
			}
		}
	}
	return all
}

// ahead makes the broken controller list for the epoch that is still to be raised.
func (p protocol) ahead() int64 {
	if p.listBeforeRaise {
		return 1
	}
	return 0
}

func agent(w world) []world {
	var all []world
	for i := range w.Steered {
		for _, status := range []steering.Status{steering.StatusApplied, steering.StatusNeedsClarification} {
			if status == steering.StatusNeedsClarification && w.Asked {
				continue
			}
			if next, ok := w.apply(answer(fmt.Sprintf("in-%d", i), status)); ok {
				next.Asked = w.Asked || status == steering.StatusNeedsClarification
				all = append(all, next)
			}
		}
	}
	return all
}

// violation says what is wrong with w; empty when nothing is.
func violation(before, w world) string {
	// "After the boundary" is every moment in which the hold is Held, or is over and a newer plan runs.
	passed := w.State.Epoch > 1 && w.State.Hold().State != steering.HoldWaitingForBoundary
	for i, use := range w.Uses {
		if passed && (use == reread || use == allowed) {
			return fmt.Sprintf("use %d of epoch 1 can still take effect in epoch %d, hold %s", i, w.State.Epoch, w.State.Hold().State)
		}
	}
	if w.State.Hold().State == steering.HoldHeld && w.Call == allowed {
		return "a tool call runs though the boundary is reached"
	}
	if before.Call == approved && w.Call == allowed && before.State.Hold().State != steering.HoldNone {
		return "a tool call started under a hold"
	}
	if w.State.Epoch < before.State.Epoch {
		return "the epoch fell"
	}
	return ""
}

type explored struct {
	states, transitions, depth int
	ended                      map[string]int
	violation                  string
}

// explore visits every state that can be reached in at most depth steps, breadth first.
func (p protocol) explore(t *testing.T, depth int) explored {
	first := world{State: steering.State{Epoch: 1, ListedEpoch: 1}, Uses: [2]step{approved, approved}, Call: approved}
	seen, found := map[string]bool{}, explored{ended: map[string]int{}}
	level := []world{first}
	for len(level) > 0 && found.depth < depth {
		var next []world
		for _, w := range level {
			successors := p.next(w)
			if len(successors) == 0 {
				found.ended[fmt.Sprintf("%s/%s", w.Uses[0], w.Uses[1])]++
			}
			for _, after := range successors {
				found.transitions++
				if v := violation(w, after); v != "" {
					found.violation = v
					return found
				}
				key, err := json.Marshal(after)
				if err != nil {
					t.Fatal(err)
				}
				if !seen[string(key)] {
					seen[string(key)] = true
					next = append(next, after)
				}
			}
		}
		found.depth++
		level = next
	}
	if len(level) > 0 {
		t.Errorf("%d states are left at depth %d", len(level), depth)
	}
	found.states = len(seen) + 1
	return found
}

// Proves.
func TestNoInterleavingLetsAnOldGrantThroughAfterTheBoundary(t *testing.T) {
	t.Run("every interleaving of the whole protocol", func(t *testing.T) {
		found := protocol{}.explore(t, 40)
		if found.violation != "" {
			t.Fatal(found.violation)
		}
		t.Logf("%d states, %d transitions, all of them, at most %d steps deep; ends: %v", found.states, found.transitions, found.depth, found.ended)
		for _, end := range []string{"settled/settled", "settled/closed", "closed/settled", "closed/closed"} {
			if found.ended[end] == 0 {
				t.Errorf("no interleaving ends %s: the model does not reach what it is about", end)
			}
		}
	})
	for name, broken := range map[string]protocol{
		"without reading the epoch again":          {skipReread: true},
		"without listing what is in flight":        {skipList: true},
		"with a list made before the epoch raised": {listBeforeRaise: true},
	} {
		t.Run(name+" the check finds an old grant that passes", func(t *testing.T) {
			found := broken.explore(t, 40)
			if found.violation == "" {
				t.Errorf("no violation in %d states", found.states)
			}
			t.Logf("found after %d steps: %s", found.depth+1, found.violation)
		})
	}
}

func TestTheModelCopiesItsWorlds(t *testing.T) {
	w := world{State: steering.State{Epoch: 1, ListedEpoch: 1}, Uses: [2]step{approved, approved}, Call: approved}
	before, _ := json.Marshal(w)
	for _, next := range (protocol{}).next(w) {
		(protocol{}).next(next)
	}
	if now, _ := json.Marshal(w); !slices.Equal(before, now) {
		t.Errorf("a step changed the world it started from: %s, was %s", now, before)
	}
}
