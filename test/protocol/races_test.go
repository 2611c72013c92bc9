package protocol_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
	"stepbeyond.dev/stepbeyond/policy"
)

const (
	// crowd of attempts in the first round of each family, few in the others, all at the same moment.
	crowd = 50
	few   = 8
	// atOnce is how many rounds of one family run at the same time.
	atOnce = 4
)

// rounds of each family: RACE_ROUNDS, or 5.
func rounds(t *testing.T) int64 {
	t.Helper()
	text, set := os.LookupEnv("RACE_ROUNDS")
	if !set {
		return 5
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("RACE_ROUNDS=%q is not a positive number", text)
	}
	return int64(n)
}

// Every family of effects, over two replicas and two API servers. Effects are counted from the watch and compared with
// the audit logs.
//
// Proves G-5.
func TestRaceForTheOneUseOfAGrantHasOneEffect(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			r := &races{family: f, effects: map[string]int{}, outcomes: map[string]int{}, answers: map[string]int{}}
			since := marks(t)
			t.Run("rounds", func(t *testing.T) {
				var next atomic.Int64
				for range atOnce {
					t.Run("", func(t *testing.T) {
						t.Parallel()
						for n := next.Add(1); n <= rounds(t); n = next.Add(1) {
							r.play(t, n)
						}
					})
				}
			})
			r.compare(t, since)
			t.Logf("%-7s %d rounds, %d effects; uses: %s; answers: %s", f.name, len(r.effects), r.sum(), tally(r.outcomes), tally(r.answers))
		})
	}
}

// races are the rounds of one family.
type races struct {
	*family
	mu       sync.Mutex
	effects  map[string]int // by target
	outcomes map[string]int
	answers  map[string]int
}

func (r *races) sum() (sum int) {
	for _, n := range r.effects {
		sum += n
	}
	return sum
}

func (r *races) play(t *testing.T, n int64) {
	attempts := few
	if n == 1 {
		attempts = crowd
	}
	s := newScene(t, r.family)
	s.approve(t)
	answers := s.contend(t, attempts)
	if s.count(t) == 0 {
		s.persist(t) // an approval that had no effect yet must not be lost
	}
	end := s.verify(t)
	if end.effects == 0 && !strings.Contains(end.outcomes, string(v1alpha1.UseUnknown)) {
		t.Errorf("%s %s: no effect, and the use does not show why: %s", r.name, s.name, end.outcomes)
	}
	s.clear(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.effects[s.name] = end.effects
	r.outcomes[end.outcomes]++
	for word, n := range answers {
		r.answers[word] += n
	}
}

// contend sends all attempts at the same moment, alternately to both API servers, and counts the answers.
func (s *scene) contend(t *testing.T, attempts int) map[string]int {
	t.Helper()
	answers := map[string]int{}
	var (
		start = make(chan struct{})
		mu    sync.Mutex
		all   sync.WaitGroup
	)
	for i := range attempts {
		all.Go(func() {
			<-start
			got := s.try(t, i%2)
			mu.Lock()
			defer mu.Unlock()
			if got.succeeded() {
				got.word = "success"
			}
			answers[got.word]++
		})
	}
	close(start)
	all.Wait()
	return answers
}

// servers are where audit logs are read.
func servers() []interface {
	AuditMark() (env.AuditMark, error)
	AuditSince(env.AuditMark, string) ([]auditv1.Event, error)
} {
	return []interface {
		AuditMark() (env.AuditMark, error)
		AuditSince(env.AuditMark, string) ([]auditv1.Event, error)
	}{plane, second}
}

func marks(t *testing.T) []env.AuditMark {
	t.Helper()
	var since []env.AuditMark
	for _, server := range servers() {
		mark, err := server.AuditMark()
		if err != nil {
			t.Fatal(err)
		}
		since = append(since, mark)
	}
	return since
}

const enforcer = "enforce.stepbeyond.dev"

// compare counts the requests of the agent that succeeded under a grant, by the audit logs of both API servers.
func (r *races) compare(t *testing.T, since []env.AuditMark) {
	t.Helper()
	granted := map[string]int{}
	for i, server := range servers() {
		events, err := server.AuditSince(since[i], at(t, r.home).agents[0].username)
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events {
			if event.ResponseStatus.Code < 300 && event.Annotations[enforcer+"/reason"] == string(policy.ReasonGranted) {
				granted[event.ObjectRef.Name]++
			}
		}
	}
	for name, effects := range r.effects {
		n := granted[name]
		if found := r.again && effects == 1 && n > 1; n != effects && !found {
			t.Errorf("%s %s: the audit logs have %d granted requests that succeeded, the watch %d effects", r.name, name, n, effects)
		}
	}
}

func tally(counts map[string]int) string {
	var parts []string
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[word], word))
	}
	return strings.Join(parts, ", ")
}
