package steering

import (
	"slices"
	"time"
)

// State is everything that steering has done to one session. The zero value is a session in epoch 0 that nobody has
// steered. It is a value: Apply never changes the State that it is called on.
type State struct {
	// Epoch never falls. Grants of an older epoch are superseded (requirement R-5).
	Epoch int64 `json:"epoch"`
	// Inputs are in force, in the order in which they arrived. An answered one stays, because its constraints do; it
	// leaves when it is withdrawn, or has expired with nothing left to answer.
	Inputs []Entry `json:"inputs,omitempty"`
	// InFlight are the atomic actions that have started and not settled.
	InFlight []Action `json:"inFlight,omitempty"`
	// ListedEpoch is the newest epoch for which everything in flight is known; see InFlightListed.
	ListedEpoch int64 `json:"listedEpoch"`
	// BoundaryTime is when the hold in force became Held; zero otherwise.
	BoundaryTime time.Time `json:"boundaryTime,omitzero"`
}

// Entry is an input and what became of it.
type Entry struct {
	Input
	// Epoch that the input started; 0 for Context.
	Epoch int64 `json:"epoch"`
	// Answer of the agent; empty while there is none.
	Answer Reconciliation `json:"answer,omitzero"`
	// SupersededBy is the input that took this one's place, so that it needs no answer. Its constraints stay: giving
	// back what was taken is a withdrawal, and a person says so.
	SupersededBy string `json:"supersededBy,omitempty"`
	// Expired inputs constrain nothing any more.
	Expired bool `json:"expired,omitempty"`
}

// MaxLease bounds every atomic action from its start or last renewal. One admitted request settles within 49 s (the API
// server's fixed 34 s and 15 s of grace), a leased tool call renews, a batch fixes its deadline when it starts.
const MaxLease = 60 * time.Second

// Action is one atomic action: one admitted request, one leased tool call, or one batch.
type Action struct {
	// ID is 1 to 253 printable ASCII bytes without spaces.
	ID string `json:"id"`
	// Epoch in which the action was allowed to start.
	Epoch     int64     `json:"epoch"`
	StartTime time.Time `json:"startTime"`
	// LeaseUntil is when the action counts as ended though nobody reported it: after StartTime, at most MaxLease.
	LeaseUntil time.Time `json:"leaseUntil"`
	// Members are the digests of the operations that belong to the action, fixed when it starts; at most 256. Empty
	// means that no later operation belongs to it.
	Members []string `json:"members,omitempty"`
}

// HoldState is what the session's status shows.
type HoldState string

const (
	// HoldNone: writes go on.
	HoldNone HoldState = "None"
	// HoldWaitingForBoundary: what has started completes, and nothing new of the old plan starts.
	HoldWaitingForBoundary HoldState = "WaitingForBoundary"
	// HoldHeld: nothing of the old plan is running any more.
	HoldHeld HoldState = "Held"
)

// Hold is steering state, never a failure (requirement R-3).
type Hold struct {
	State HoldState
	// Input that the hold comes from: the first suspension, else the first input to be answered, else the newest one
	// whose boundary is not reached. nil with HoldNone.
	Input *Input
	// Suspended: there is nothing to answer; the hold ends when the input is withdrawn.
	Suspended bool
	// WaitingFor are the IDs of the older actions in flight, in the order in which they became known; empty while they are
	// still being listed.
	WaitingFor []string
	// BoundaryTime is when the boundary was reached; zero before.
	BoundaryTime time.Time
}

// Hold tells whether writes wait, and for what.
func (s State) Hold() Hold {
	entry := s.holding()
	if entry == nil {
		return Hold{State: HoldNone}
	}
	hold := Hold{State: HoldHeld, Input: &entry.Input, Suspended: entry.Suspends(), BoundaryTime: s.BoundaryTime}
	awaiting := s.awaiting()
	if awaiting == nil {
		return hold
	}
	hold.State, hold.BoundaryTime = HoldWaitingForBoundary, time.Time{}
	for i := range s.InFlight {
		if s.InFlight[i].Epoch < awaiting.Epoch {
			hold.WaitingFor = append(hold.WaitingFor, s.InFlight[i].ID)
		}
	}
	return hold
}

// holding is the entry that a held write is told about; nil when nothing holds.
func (s State) holding() *Entry {
	for i := range s.Inputs {
		if s.Inputs[i].Suspends() {
			return &s.Inputs[i]
		}
	}
	for i := range s.Inputs {
		if s.Inputs[i].open() {
			return &s.Inputs[i]
		}
	}
	// A quick answer does not let the new plan run beside the old one's last action.
	return s.awaiting()
}

// awaiting is the newest entry whose boundary is not reached: what was in flight when it arrived is not known yet, or
// has not settled.
func (s State) awaiting() *Entry {
	for i := len(s.Inputs) - 1; i >= 0; i-- {
		entry := &s.Inputs[i]
		if entry.Epoch > s.ListedEpoch || slices.ContainsFunc(s.InFlight, func(a Action) bool { return a.Epoch < entry.Epoch }) {
			return entry
		}
	}
	return nil
}

// Open are the inputs of the protected record in the order in which they arrived: those still to be answered,
// suspensions, and Context that is still current (requirements ).
func (s State) Open() []Entry {
	var open []Entry
	for i := range s.Inputs {
		entry := &s.Inputs[i]
		if entry.open() || entry.Suspends() || entry.Type == TypeContext && entry.SupersededBy == "" {
			open = append(open, *entry)
		}
	}
	return open
}

// open entries wait for an answer of the agent.
func (e *Entry) open() bool {
	return e.Type.ChangesAuthority() && !e.Suspends() && e.SupersededBy == "" && !e.Answer.Status.closes()
}

func (s *State) find(id string) int {
	return slices.IndexFunc(s.Inputs, func(e Entry) bool { return e.ID == id })
}

func (s *State) findAction(id string) int {
	return slices.IndexFunc(s.InFlight, func(a Action) bool { return a.ID == id })
}
