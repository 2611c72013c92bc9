package protocol_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

const (
	writers = 50
	// stormFor is how long the others write at most; each of them once at least. It ebbs: each pauses a quarter longer
	// after each write, so that the agent meets every strength of it.
	stormFor = 20 * time.Second
)

// Whoever writes what the approval does not bind makes the API server send the agent's change again and again, each time
// on a newer version. The one approval must be enough for it, however long that takes.
//
// Proves G-5.
func TestAStormOfWritersCostsTheApprovalNothing(t *testing.T) {
	for _, name := range []string{"patch", "put"} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, familyOf(t, name).in("storm"))
			s.approve(t)
			writes, answers := s.storm(t)
			effects := s.count(t)
			if effects == 0 {
				s.persist(t)
			}
			end := s.verify(t)
			outcomes := outcomesOf(s.home.grant(t, s.grant))
			spent := slices.DeleteFunc(slices.Clone(outcomes), func(o v1alpha1.UseOutcome) bool { return o == v1alpha1.UseReleased })
			if end.effects != 1 || !slices.Equal(spent, []v1alpha1.UseOutcome{v1alpha1.UseConsumed}) {
				t.Errorf("%d effects, want one; uses %v, want one Consumed and all others Released: %s", end.effects, outcomes, describe(s.home.grant(t, s.grant)))
			}
			t.Logf("%s: %d writes of %d others; effects in the storm %d, in all %d; uses %s; answers in the storm: %s",
				name, writes, writers, effects, end.effects, end.outcomes, tally(answers))
			s.clear(t)
		})
	}
}

// storm has others write the status as fast as they can, and then ever more slowly, while the agent sends its request
// until it succeeds, or the storm is over. It gives the writes of the others, and the agent's answers.
func (s *scene) storm(t *testing.T) (writes int64, answers map[string]int) {
	t.Helper()
	elsewhere, err := newActor("admin", second.At(plane.Admin()))
	if err != nil {
		t.Fatal(err)
	}
	var (
		all  sync.WaitGroup
		done atomic.Int64
		over atomic.Bool
		end  = time.Now().Add(stormFor)
	)
	for i := range writers {
		writer := []*actor{admin, elsewhere}[i%2]
		all.Go(func() {
			var pause time.Duration
			for n := 0; n == 0 || !over.Load(); n++ {
				status := []string{"True", "False", "Unknown"}[(i+n)%3]
				if err := writer.Status().Patch(t.Context(), s.target(), conditionPatch(status)); err == nil {
					done.Add(1)
				}
				time.Sleep(pause)
				pause += pause/4 + time.Millisecond
			}
		})
	}
	answers = map[string]int{}
	for try := 0; time.Now().Before(end); try++ {
		got := s.try(t, try%2)
		if got.succeeded() {
			answers["success"]++
			break
		}
		answers[got.word]++
	}
	over.Store(true)
	all.Wait()
	if done.Load() == 0 {
		t.Error("nobody wrote")
	}
	return done.Load(), answers
}
