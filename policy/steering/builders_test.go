package steering_test

import (
	"errors"
	"testing"
	"time"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/steering"
)

var start = time.Date(2026, 11, 30, 18, 52, 0, 0, time.UTC)

// after is seconds after the start of every test's story.
func after(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func input(kind steering.InputType, id string) steering.Input {
	return steering.Input{ID: id, Type: kind, Author: "ben@acme.example", Time: start, Message: "Expand the volume in place."}
}

func steered(in steering.Input) steering.Steered {
	return steering.Steered{Input: in, Time: in.Time}
}

// listed is the answer of a look at everything in flight, at the epoch that s has.
func listed(s steering.State, actions ...steering.Action) steering.InFlightListed {
	return steering.InFlightListed{Epoch: s.Epoch, Actions: actions, Time: after(1)}
}

func action(id string, epoch int64, members ...string) steering.Action {
	return steering.Action{ID: id, Epoch: epoch, StartTime: start, LeaseUntil: after(30), Members: members}
}

func answer(id string, status steering.Status) steering.Reconciled {
	return steering.Reconciled{Time: after(5), Reconciliation: steering.Reconciliation{
		InputID: id, Status: status, ChangedConstraints: []string{}, RevisedNextAction: "Patch the claim to 40Gi.",
	}}
}

func must(t testing.TB, s steering.State, events ...steering.Event) steering.State {
	t.Helper()
	for _, event := range events {
		next, err := s.Apply(event)
		if err != nil {
			t.Fatalf("%T: %v", event, err)
		}
		s = next
	}
	return s
}

// held steers a fresh session with in and reaches the boundary.
func held(t testing.TB, in steering.Input) steering.State {
	t.Helper()
	s := must(t, steering.State{Epoch: 1, ListedEpoch: 1}, steered(in))
	return must(t, s, listed(s))
}

func rejection(t testing.TB, err error) steering.Rejection {
	t.Helper()
	var r *steering.Rejection
	if !errors.As(err, &r) {
		t.Fatalf("want a rejection, got %v", err)
	}
	return *r
}

func write(verb policy.Verb, resource, name string) *policy.Operation {
	return &policy.Operation{
		Capability: policy.CapabilityExecuteLocal, Stage: policy.StageExecute, Verb: verb, Digest: "v1:" + resource + "/" + name,
		Target:     policy.Target{Group: "apps", Version: "v1", Resource: resource, Namespace: "checkout", Name: name},
		Kubernetes: &policy.KubernetesRequest{},
	}
}

func count(n int32) *int32 { return &n }
