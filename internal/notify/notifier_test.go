package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"

	"stepbeyond.dev/stepbeyond/internal/managerconfig"
)

// question is a Subject in memory.
type question struct {
	id, group string

	mu       sync.Mutex
	answered bool
	// unreadable and unmarkable are how many more calls fail.
	unreadable, unmarkable int
	told                   []time.Time
}

func (q *question) ID() string    { return q.id }
func (q *question) Group() string { return q.group }

func (q *question) answer() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.answered = true
}

func (q *question) Look(context.Context, string) (Item, bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.unreadable > 0 {
		q.unreadable--
		return Item{}, false, errors.New("no API server")
	}
	return Item{Question: &Question{Name: q.id}}, !q.answered && len(q.told) == 0, nil
}

func (q *question) Told(_ context.Context, _ string, at time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.unmarkable > 0 {
		q.unmarkable--
		return errors.New("no API server")
	}
	q.told = append(q.told, at)
	return nil
}

var errRefused = errors.New("refused")

// world is a notifier with one endpoint in a bubble of testing/synctest.
type world struct {
	*Notifier
	t     *testing.T
	start time.Time

	mu sync.Mutex
	// fails is how many more deliveries fail.
	fails int
	why   error
	// sent are the messages: when since the start, and what.
	sent []string
}

func start(t *testing.T, window int32, most int) *world {
	w := &world{t: t, start: time.Now()}
	config := &managerconfig.ManagerConfig{Notifications: []managerconfig.Notification{{
		Name: "bot", Type: managerconfig.SignedHTTP, Events: managerconfig.Events(), MergeWindowSeconds: &window,
	}}}
	w.Notifier = New(config, Secrets{}, NewMetrics(), time.Now)
	w.endpoints[0].most = most
	w.endpoints[0].send = func(_ context.Context, m *message) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.fails > 0 {
			w.fails--
			return w.why
		}
		var names []string
		for _, item := range m.items {
			names = append(names, item.Question.Name)
		}
		text := fmt.Sprintf("%s %s: %s", time.Since(w.start).Round(time.Second), m.subject, strings.Join(names, " "))
		if m.more > 0 {
			text += fmt.Sprintf(" and %d more", m.more)
		}
		w.sent = append(w.sent, text)
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { _ = w.Start(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

func (w *world) tell(q *question) bool { return w.Tell("bot", managerconfig.GrantPending, q) }

func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// failing has the next deliveries fail.
func (w *world) failing(times int, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fails, w.why = times, why
}

func (w *world) left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fails
}

func (w *world) expect(sent ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff(sent, w.sent); diff != "" {
		w.t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func (w *world) value(metric interface{ Write(*dto.Metric) error }) float64 {
	w.t.Helper()
	var out dto.Metric
	if err := metric.Write(&out); err != nil {
		w.t.Fatal(err)
	}
	return out.GetCounter().GetValue() + out.GetGauge().GetValue()
}

func TestASessionMakesOneMessagePerWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 120, 25)
		w.tell(&question{id: "a", group: "s"})
		w.tell(&question{id: "b", group: "s"})
		w.after(time.Second)
		w.tell(&question{id: "c", group: "s"})
		w.tell(&question{id: "x", group: "other"})
		w.after(10 * time.Second)
		w.expect("2s s: a b c", "3s other: x")
		w.tell(&question{id: "d", group: "s"})
		w.after(time.Minute)
		w.tell(&question{id: "e", group: "s"})
		w.after(5 * time.Minute)
		w.expect("2s s: a b c", "3s other: x", "2m2s s: d e")
		w.tell(&question{id: "f", group: "s"}) // the window is over: nobody waits for it
		w.after(time.Minute)
		w.expect("2s s: a b c", "3s other: x", "2m2s s: d e", "6m13s s: f")
	})
}

func TestWithoutAWindowEveryQuestionIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 0, 25)
		w.tell(&question{id: "a", group: "s"})
		w.after(time.Second)
		w.tell(&question{id: "b", group: "s"})
		w.after(time.Second)
		w.expect("0s s: a", "1s s: b")
	})
}

func TestWhatAMessageDoesNotHoldComesWithTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 60, 3)
		for i := range 7 {
			w.tell(&question{id: fmt.Sprintf("q%d", i), group: "s"})
		}
		w.after(10 * time.Minute)
		w.expect("2s s: q0 q1 q2 and 4 more", "1m2s s: q3 q4 q5 and 1 more", "2m2s s: q6")
	})
}

func TestAQuestionThatIsToldTwiceIsQueuedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 60, 25)
		q := &question{id: "a", group: "s"}
		w.tell(q)
		w.tell(&question{id: "a", group: "s"})
		w.after(5 * time.Minute)
		w.tell(q) // from an old cache: the mark says that it was told
		w.after(5 * time.Minute)
		w.expect("2s s: a")
	})
}

func TestWhatIsAnsweredBeforeItIsToldIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 60, 25)
		a, b := &question{id: "a", group: "s"}, &question{id: "b", group: "s"}
		w.tell(a)
		w.tell(b)
		a.answer()
		w.after(5 * time.Minute)
		w.expect("2s s: b")
		if n := w.endpoints[0].queue.waits(); n != 0 {
			t.Errorf("%d notices wait", n)
		}
	})
}

func TestADeliveryIsTriedAgainWithLongerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 0, 25)
		w.failing(12, errRefused)
		q := &question{id: "a", group: "s"}
		w.tell(q)
		w.after(900 * time.Millisecond)
		if w.left() != 11 {
			t.Errorf("%d tries within a second, want the first alone", 12-w.left())
		}
		w.after(59 * time.Second)
		if tries := 12 - w.left(); tries < 4 || tries > 7 {
			t.Errorf("%d tries within a minute, want 4 to 7", tries)
		}
		w.after(2 * time.Hour)
		if len(w.sent) != 1 || len(q.told) != 1 {
			t.Errorf("messages %q, told %v, want one", w.sent, q.told)
		}
		if n := w.value(w.metrics.Failed.WithLabelValues("bot", "GrantPending")); n != 12 {
			t.Errorf("%v failures are counted, want 12", n)
		}
		if n := w.value(w.metrics.Sent.WithLabelValues("bot", "GrantPending")); n != 1 {
			t.Errorf("%v messages are counted, want 1", n)
		}
	})
}

func TestWaitsGrowToABoundAndDiffer(t *testing.T) {
	for failures := 1; failures < 100; failures++ {
		usual := longestWait
		if failures < 9 {
			usual = min(longestWait, firstWait<<(failures-1))
		}
		seen := map[time.Duration]bool{}
		for range 20 {
			wait := backOff(failures)
			if wait < usual/2 || wait >= usual*3/2 {
				t.Fatalf("wait %s after %d failures, want %s more or less by half", wait, failures, usual)
			}
			seen[wait] = true
		}
		if len(seen) < 2 {
			t.Errorf("all waits after %d failures are equal", failures)
		}
	}
}

func TestAnEndpointThatAsksForAWaitGetsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 0, 25)
		w.failing(1, &refusal{status: "429", wait: 30 * time.Minute})
		w.tell(&question{id: "a", group: "s"})
		w.after(time.Hour)
		w.expect("30m0s s: a")
	})
}

// One endpoint's trouble with one session's message holds up nobody else's.
func TestAMessageThatFailsHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 0, 25)
		w.failing(1, errRefused)
		w.tell(&question{id: "a", group: "s"})
		w.after(time.Millisecond)
		w.tell(&question{id: "x", group: "other"})
		w.after(time.Millisecond)
		w.expect("0s other: x")
		w.after(time.Minute)
		if !slices.ContainsFunc(w.sent, func(s string) bool { return strings.HasSuffix(s, "s: a") }) {
			t.Errorf("messages %q, want the first one too", w.sent)
		}
	})
}

func TestAMarkThatFailsIsWrittenLaterAndNothingIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 0, 25)
		q := &question{id: "a", group: "s", unmarkable: 3}
		w.tell(q)
		w.after(10 * time.Minute)
		w.expect("0s s: a")
		if len(q.told) != 1 || !q.told[0].Equal(w.start) {
			t.Errorf("marked as told at %v, want once, at the time of sending", q.told)
		}
	})
}

func TestAQuestionThatCannotBeReadIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 0, 25)
		q := &question{id: "a", group: "s", unreadable: 2}
		w.tell(q)
		w.after(10 * time.Minute)
		if len(w.sent) != 1 || len(q.told) != 1 {
			t.Errorf("messages %q, told %v, want one", w.sent, q.told)
		}
	})
}

func TestAFullQueueSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 3600, 1)
		w.failing(1<<30, errRefused)
		for i := range maxQueued {
			if !w.tell(&question{id: fmt.Sprint(i), group: "s"}) {
				t.Fatalf("no room for question %d", i)
			}
		}
		if w.tell(&question{id: "more", group: "t"}) {
			t.Error("there was room for one more than the bound")
		}
		if !w.tell(&question{id: "7", group: "s"}) {
			t.Error("one that waits already was refused")
		}
		if n := w.value(w.metrics.Dropped.WithLabelValues("bot", "GrantPending")); n != 1 {
			t.Errorf("%v drops are counted, want 1", n)
		}
		if n := w.value(w.metrics.Queued.WithLabelValues("bot")); n != maxQueued {
			t.Errorf("%v notices are counted to wait, want %d", n, maxQueued)
		}
	})
}

func TestWhatWaitsADayIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 0, 25)
		w.failing(1<<30, errRefused)
		w.tell(&question{id: "a", group: "s"})
		w.after(25 * time.Hour)
		if n := w.endpoints[0].queue.waits(); n != 0 {
			t.Errorf("%d notices wait after a day", n)
		}
		if n := w.value(w.metrics.Dropped.WithLabelValues("bot", "GrantPending")); n != 1 {
			t.Errorf("%v drops are counted, want 1", n)
		}
	})
}

// Telling never waits for an endpoint, which is what keeps deliveries away from decisions.
func TestTellingReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 0, 25)
		release := make(chan struct{})
		send := w.endpoints[0].send
		w.endpoints[0].send = func(ctx context.Context, m *message) error { <-release; return send(ctx, m) }
		w.tell(&question{id: "a", group: "s"})
		synctest.Wait()
		began := time.Now()
		w.tell(&question{id: "b", group: "s"})
		if took := time.Since(began); took != 0 {
			t.Errorf("telling took %s", took)
		}
		close(release)
		w.after(time.Second)
		w.expect("0s s: a", "0s s: b")
	})
}
