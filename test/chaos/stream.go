package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// probe is one request and its answer.
type probe struct {
	sent, answered time.Time
	answer
	// before tells that the answer is the one that was given before the fault.
	before bool
}

// stream is one kind of request that is sent all the time.
type stream struct {
	mu     sync.Mutex
	probes []probe
}

// patience is how long a client waits for an answer: longer than an API server waits for a webhook and for etcd.
const patience = 15 * time.Second

// send sends requests with each of a number of workers once per period, until the context ends. Requests of one worker
// do not overlap; as tells whether an answer is the one of a healthy cluster.
func (s *stream) send(ctx context.Context, all *sync.WaitGroup, workers int, period time.Duration, request func(context.Context, int) error, as func(answer) bool) {
	for worker := range workers {
		all.Go(func() {
			select { // spread the workers over the period
			case <-ctx.Done():
			case <-time.After(period * time.Duration(worker) / time.Duration(workers)):
			}
			ticker := time.NewTicker(period)
			defer ticker.Stop()
			for ctx.Err() == nil {
				s.once(ctx, func(ctx context.Context) error { return request(ctx, worker) }, as)
				select {
				case <-ctx.Done():
				case <-ticker.C:
				}
			}
		})
	}
}

// once sends one request, and lets it end when the stream ends meanwhile.
func (s *stream) once(ctx context.Context, request func(context.Context) error, as func(answer) bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	p := probe{sent: time.Now()}
	p.answer = understand(request(ctx))
	p.answered = time.Now()
	p.before = as(p.answer)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probes = append(s.probes, p)
}

// between gives the probes that were sent after the first and before the second time, in the order of sending.
func (s *stream) between(from, to time.Time) []probe {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []probe
	for _, p := range s.probes {
		if p.sent.After(from) && p.sent.Before(to) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b probe) int { return a.sent.Compare(b.sent) })
	return found
}

// steady is how many answers in a row make a cluster healthy again.
const steady = 5

// recovered gives when the first of the answers was there that are all as before, at least steady of them; the given time
// when no answer since then was another.
func (s *stream) recovered(since time.Time) (time.Time, bool) {
	all := s.between(since, time.Now())
	n := 0
	for n < len(all) && all[len(all)-1-n].before {
		n++
	}
	if n < steady {
		return time.Time{}, false
	}
	if n == len(all) {
		return since, true
	}
	return all[len(all)-n].answered, true
}

// medianOf the times of the answers that were successes; 0 of none.
func medianOf(probes ...[]probe) time.Duration {
	var took []time.Duration
	for _, p := range slices.Concat(probes...) {
		if p.passed() {
			took = append(took, p.answered.Sub(p.sent))
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)/2]
}
