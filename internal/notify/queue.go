package notify

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"stepbeyond.dev/stepbeyond/internal/managerconfig"
)

const (
	// maxQueued notices wait for one endpoint. They hold names alone: what is told is read when it is told.
	maxQueued = 1000
	// gatherFor is how long the first notice of a group waits for others: an agent asks several questions at once.
	gatherFor = 2 * time.Second
	// keepFor is how long a notice waits for its endpoint. A grant that is still open then comes again.
	keepFor = 24 * time.Hour
	// The wait after the n-th failure of a group is firstWait times 2 to the n-1, at most longestWait, more or less by half.
	firstWait   = 2 * time.Second
	longestWait = 5 * time.Minute
)

// waiting is one notice of a queue.
type waiting struct {
	subject Subject
	since   time.Time
	// sent is set once the endpoint took it and its subject does not know that yet.
	sent time.Time
}

type groupKey struct {
	event managerconfig.Event
	group string
}

// group is what one message tells at most.
type group struct {
	groupKey
	waiting []*waiting
	// due is when it is told, or tried again.
	due time.Time
	// last is when the group's last message went out; zero for none.
	last     time.Time
	failures int
}

// queue is what waits for one endpoint. Its methods may be called concurrently; a group that next gave is changed only by
// whoever got it, through the queue.
type queue struct {
	window time.Duration
	now    func() time.Time
	// changed receives after each add.
	changed chan struct{}

	mu     sync.Mutex
	groups map[groupKey]*group
	length int
}

func newQueue(window time.Duration, now func() time.Time) *queue {
	return &queue{window: window, now: now, changed: make(chan struct{}, 1), groups: map[groupKey]*group{}}
}

// add queues a subject unless it waits already. It is false when there is no room.
func (q *queue) add(event managerconfig.Event, subject Subject) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	key := groupKey{event, subject.Group()}
	g := q.groups[key]
	if g != nil && slices.ContainsFunc(g.waiting, func(w *waiting) bool { return w.subject.ID() == subject.ID() }) {
		return true
	}
	if q.length >= maxQueued {
		return false
	}
	if g == nil {
		g = &group{groupKey: key}
		q.groups[key] = g
	}
	if len(g.waiting) == 0 {
		g.due = later(now.Add(min(gatherFor, q.window)), g.last.Add(q.window))
	}
	g.waiting = append(g.waiting, &waiting{subject: subject, since: now})
	q.length++
	select {
	case q.changed <- struct{}{}:
	default:
	}
	return true
}

// next is a copy of the group that is due first, and how long until then; ok is false when nothing waits. Groups that wait
// for nothing are forgotten once their window is over.
func (q *queue) next() (g group, wait time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	var first *group
	for key, g := range q.groups {
		switch {
		case len(g.waiting) == 0 && now.Sub(g.last) >= q.window:
			delete(q.groups, key)
		case len(g.waiting) > 0 && (first == nil || g.due.Before(first.due)):
			first = g
		}
	}
	if first == nil {
		return group{}, 0, false
	}
	g = *first
	g.waiting = slices.Clone(first.waiting)
	return g, max(0, first.due.Sub(now)), true
}

// done takes what needs nothing any more out of a group, and says when the rest is looked at again: with a failure after a
// wait that grows, which is at least atLeast; else after the window.
func (q *queue) done(key groupKey, finished []*waiting, sent, failed bool, atLeast time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	g := q.groups[key]
	if g == nil {
		return
	}
	before := len(g.waiting)
	g.waiting = slices.DeleteFunc(g.waiting, func(w *waiting) bool { return slices.Contains(finished, w) })
	q.length -= before - len(g.waiting)
	now := q.now()
	if sent {
		g.last = now
	}
	if failed {
		g.failures++
		g.due = now.Add(max(atLeast, backOff(g.failures)))
		return
	}
	g.failures = 0
	g.due = later(now, g.last.Add(q.window))
}

// backOff keeps endpoints that were down from being called by everybody at once.
func backOff(failures int) time.Duration {
	wait := longestWait
	if failures < 16 {
		wait = min(longestWait, firstWait<<(failures-1))
	}
	return wait/2 + rand.N(wait)
}

func (q *queue) waits() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.length
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// oldestFirst is the order in which a message tells.
func oldestFirst(a, b *waiting) int {
	return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.subject.ID(), b.subject.ID()))
}
