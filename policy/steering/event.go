package steering

import (
	"fmt"
	"slices"
	"time"
)

// Event is one of Steered, InFlightListed, ActionStarted, LeaseRenewed, ActionSettled, LeaseEnded, Reconciled,
// Withdrawn and Expired.
type Event interface {
	apply(next *State) error
	at() time.Time
}

// Apply gives the State after the event. When the event cannot be, the State is returned as it was, with a *[Rejection].
func (s State) Apply(event Event) (State, error) {
	next := s
	next.Inputs, next.InFlight = slices.Clone(s.Inputs), slices.Clone(s.InFlight)
	if err := event.apply(&next); err != nil {
		return s, err
	}
	switch next.Hold().State {
	case HoldHeld:
		if next.BoundaryTime.IsZero() {
			next.BoundaryTime = event.at()
		}
	default:
		next.BoundaryTime = time.Time{}
	}
	return next, nil
}

// Steered brings a new input. One that the session knows already is rejected as a Duplicate, so that delivering an
// input again after a restart is harmless.
type Steered struct {
	Input Input
	Time  time.Time
}

func (e Steered) at() time.Time { return e.Time }

func (e Steered) apply(next *State) error {
	in := e.Input
	if err := in.Validate(); err != nil {
		return err
	}
	switch {
	case next.find(in.ID) >= 0:
		return reject("id", ProblemDuplicate)
	case !in.Expiration.IsZero() && !e.Time.Before(in.Expiration):
		return reject("expiration", ProblemExpired)
	case !in.Suspends() && next.counted() >= MaxInputs:
		return reject("id", ProblemTooMany)
	}
	if err := next.supersede(&in); err != nil {
		return err
	}
	entry := Entry{Input: in}
	if in.Type.ChangesAuthority() {
		next.Epoch++
		entry.Epoch = next.Epoch
	}
	next.Inputs = append(next.Inputs, entry)
	return nil
}

// counted are the inputs that take room.
func (s *State) counted() int {
	n := 0
	for i := range s.Inputs {
		if !s.Inputs[i].Suspends() {
			n++
		}
	}
	return n
}

func (s *State) supersede(in *Input) error {
	for i, id := range in.Supersedes {
		at := s.find(id)
		if at < 0 {
			continue
		}
		if s.Inputs[at].Type != in.Type {
			return reject(fmt.Sprintf("supersedes[%d]", i), ProblemNotAllowed)
		}
		s.Inputs[at].SupersededBy = in.ID
		s.forget(at)
	}
	return nil
}

// InFlightListed completes what is known to be in flight: the caller raised the epoch first and then read, live and
// from every replica, what had been allowed under an older one. Only then can the boundary be reached. A list that was
// made before the newest epoch is rejected, because it may miss an action.
type InFlightListed struct {
	Epoch   int64
	Actions []Action
	Time    time.Time
}

func (e InFlightListed) at() time.Time { return e.Time }

func (e InFlightListed) apply(next *State) error {
	if e.Epoch != next.Epoch {
		return reject("epoch", ProblemOldEpoch)
	}
	for i := range e.Actions {
		field := fmt.Sprintf("actions[%d]", i)
		if err := e.Actions[i].check(field); err != nil {
			return err
		}
		if e.Actions[i].Epoch > next.Epoch {
			return reject(field+".epoch", ProblemOldEpoch)
		}
		if next.findAction(e.Actions[i].ID) < 0 {
			next.InFlight = append(next.InFlight, e.Actions[i])
		}
	}
	next.ListedEpoch = e.Epoch
	return nil
}

// ActionStarted reports that an atomic action begins. It is rejected under a hold, also while the boundary is awaited:
// what had not started belongs to the old plan.
type ActionStarted struct {
	Action Action
}

func (e ActionStarted) at() time.Time { return e.Action.StartTime }

func (e ActionStarted) apply(next *State) error {
	if err := e.Action.check("action"); err != nil {
		return err
	}
	if entry := next.holding(); entry != nil {
		return &Rejection{Field: "action", Problem: ProblemHeld, InputID: entry.ID}
	}
	switch {
	case e.Action.Epoch != next.Epoch:
		return reject("action.epoch", ProblemOldEpoch)
	case next.findAction(e.Action.ID) >= 0:
		return reject("action.id", ProblemDuplicate)
	}
	next.InFlight = append(next.InFlight, e.Action)
	return nil
}

// maxMembers bounds a batch.
const maxMembers = 256

func (a *Action) check(field string) error {
	if err := checkName(field+".id", a.ID); err != nil {
		return err
	}
	if len(a.Members) > maxMembers {
		return reject(field+".members", ProblemTooLong)
	}
	return checkLease(field+".leaseUntil", a.StartTime, a.LeaseUntil)
}

// LeaseRenewed prolongs an action. Nothing is prolonged under a hold, or the boundary might never come.
type LeaseRenewed struct {
	ID    string
	Until time.Time
	Time  time.Time
}

func (e LeaseRenewed) at() time.Time { return e.Time }

func (e LeaseRenewed) apply(next *State) error {
	i := next.findAction(e.ID)
	if i < 0 {
		return reject("id", ProblemUnknown)
	}
	if entry := next.holding(); entry != nil {
		return &Rejection{Field: "id", Problem: ProblemHeld, InputID: entry.ID}
	}
	if err := checkLease("until", e.Time, e.Until); err != nil {
		return err
	}
	next.InFlight[i].LeaseUntil = e.Until
	return nil
}

// ActionSettled reports that an action has ended, whatever its outcome.
type ActionSettled struct {
	ID   string
	Time time.Time
}

func (e ActionSettled) at() time.Time { return e.Time }

func (e ActionSettled) apply(next *State) error {
	i := next.findAction(e.ID)
	if i < 0 {
		return reject("id", ProblemUnknown)
	}
	next.InFlight = slices.Delete(next.InFlight, i, i+1)
	return nil
}

// LeaseEnded counts an action as ended that nobody settled. It is rejected before the lease's end.
type LeaseEnded struct {
	ID   string
	Time time.Time
}

func (e LeaseEnded) at() time.Time { return e.Time }

func (e LeaseEnded) apply(next *State) error {
	i := next.findAction(e.ID)
	if i >= 0 && e.Time.Before(next.InFlight[i].LeaseUntil) {
		return reject("time", ProblemTooEarly)
	}
	return ActionSettled(e).apply(next)
}

// Withdrawn takes an input back, with its constraints and its suspension. A person says so. The epoch stays: what was
// approved under the older plan is not approved again by this.
type Withdrawn struct {
	ID   string
	Time time.Time
}

func (e Withdrawn) at() time.Time { return e.Time }

func (e Withdrawn) apply(next *State) error {
	i := next.find(e.ID)
	if i < 0 {
		return reject("id", ProblemUnknown)
	}
	next.Inputs = slices.Delete(next.Inputs, i, i+1)
	return nil
}

// Expired ends the constraints of an input at its expiration. An input that was not answered stays open and holds; a
// suspension stays (it ends by withdrawal only).
type Expired struct {
	ID   string
	Time time.Time
}

func (e Expired) at() time.Time { return e.Time }

func (e Expired) apply(next *State) error {
	i := next.find(e.ID)
	if i < 0 {
		return reject("id", ProblemUnknown)
	}
	entry := &next.Inputs[i]
	switch {
	case entry.Expiration.IsZero() || e.Time.Before(entry.Expiration):
		return reject("time", ProblemTooEarly)
	case entry.Suspends():
		return reject("id", ProblemSuspension)
	}
	entry.Expired = true
	next.forget(i)
	return nil
}

// forget drops an entry that neither constrains nor waits.
func (s *State) forget(i int) {
	if entry := &s.Inputs[i]; entry.Expired && !entry.open() {
		s.Inputs = slices.Delete(s.Inputs, i, i+1)
	}
}
