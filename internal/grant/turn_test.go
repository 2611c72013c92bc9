package grant

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func TestASessionOpensOneQuestionAtATime(t *testing.T) {
	var (
		sessions turns
		all      sync.WaitGroup
		opened   = map[string]*int{"a": new(int), "b": new(int)} // guarded by the turns alone, as the race detector sees
	)
	for range 50 {
		for _, session := range []string{"a", "b"} {
			count := opened[session]
			all.Go(func() {
				done, err := sessions.take(t.Context(), session)
				if err != nil {
					t.Error(err)
					return
				}
				defer done()
				*count++
			})
		}
	}
	all.Wait()
	if a, b := *opened["a"], *opened["b"]; a != 50 || b != 50 {
		t.Errorf("%d and %d turns, want 50 of each session", a, b)
	}
	if len(sessions.taken) != 0 {
		t.Errorf("%d turns are left", len(sessions.taken))
	}
}

func TestWhoeverWaitsForATurnGivesUpWithItsRequest(t *testing.T) {
	var sessions turns
	done, err := sessions.take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sessions.take(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	other, err := sessions.take(ctx, "b")
	if err != nil {
		t.Errorf("another session waits too: %v", err)
	} else {
		other()
	}
	done()
	again, err := sessions.take(ctx, "a")
	if err != nil {
		t.Fatalf("after the turn: %v", err)
	}
	again()
}
