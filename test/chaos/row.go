package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// row is one fault: what is done to a cluster, and what the design says of it.
type row struct {
	// name for -rows; title in the table.
	name, title string
	// done and expected are sentences for the document.
	done, expected string
	// auto is what the design says of AUTO while the fault lasts.
	auto string

	// begin brings the fault. It returns when the cluster has it, or when a fault that lasts no time is over.
	begin func(context.Context, *scene) error
	// end is what brings the cluster back from outside: the kubelet that starts a process, or a person. Omitted, nothing
	// does, and the recovery is counted from the beginning.
	end func(context.Context, *scene) error
	// person says what a person has to do; empty for a cluster that recovers by itself.
	person string
	// hold is how long the fault lasts; omitted, holdFor.
	hold time.Duration

	// compared tells that the fault hurts everybody: it is measured without the configuration too.
	compared bool
	// exposed says why nothing can refuse between a deletion and its repair; empty where something has to.
	exposed string
	// asksAgain tells that the fault destroys what approvals are made of: the agent asks again.
	asksAgain bool

	// writers are how many workers of the agent write once per second; 0 is agentWorkers.
	writers int
	// prepare changes the healthy cluster before anything is measured.
	prepare func(context.Context, *scene) error
	// await waits for the moment of a fault that comes by itself.
	await           func(context.Context, *scene) error
	build           env.Build
	args, variables []string
}

const (
	holdFor      = 8 * time.Second
	calmFor      = 3 * time.Second // after the start of a cluster, before anything is compared with it
	baselineFor  = 4 * time.Second
	recoverAtMax = 3 * time.Minute
)

// measure brings the fault over a cluster of its own.
func (r *row) measure(ctx context.Context, progress func(string)) (m *measured, err error) {
	m, err = r.run(ctx, false, progress)
	if err != nil || !r.compared {
		return m, err
	}
	progress("the same without Step Beyond")
	bare, err := r.run(ctx, true, progress)
	if err != nil {
		return nil, err
	}
	m.Bare = &bare.Bystander
	return m, nil
}

func (r *row) run(ctx context.Context, bare bool, progress func(string)) (_ *measured, err error) {
	progress("start a cluster")
	s, err := newScene(ctx, r, bare)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if r.prepare != nil && !bare {
		progress("prepare")
		if err := r.prepare(ctx, s); err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
	}
	c := &callers{}
	c.start(ctx, s)
	defer c.end()
	if err := pause(ctx, calmFor); err != nil {
		return nil, err
	}
	w := window{baseline: time.Now()}
	if err := pause(ctx, baselineFor); err != nil {
		return nil, err
	}
	if r.await != nil && !bare {
		if err := r.await(ctx, s); err != nil {
			return nil, fmt.Errorf("wait for the fault: %w", err)
		}
	}
	progress("the fault")
	w.begin = time.Now()
	meanwhile, stopMeanwhile := context.WithCancel(ctx)
	defer stopMeanwhile()
	if r.exposed != "" {
		stopMeanwhile() // what passes there is no use of a grant
	}
	tried := s.tryMeanwhile(meanwhile)
	if err := r.bring(ctx, s, &w); err != nil {
		return nil, fmt.Errorf("fault: %w", err)
	}
	progress("recovery")
	w.await(ctx, c, bare)
	stopMeanwhile()
	<-tried
	m := &measured{Row: r.name}
	if !bare {
		progress("grants")
		m.Grants = s.useGrants(ctx)
	}
	c.end()
	m.read(c, w, bare)
	return m, nil
}

// bring has the fault begin, last and end.
func (r *row) bring(ctx context.Context, s *scene, w *window) error {
	if err := r.begin(ctx, s); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	hold := r.hold
	if hold == 0 {
		hold = holdFor
	}
	if err := pause(ctx, hold-time.Since(w.begin)); err != nil {
		return err
	}
	w.end, w.healing = time.Now(), w.begin
	if r.end == nil {
		return nil
	}
	w.healing = w.end
	if err := r.end(ctx, s); err != nil {
		return fmt.Errorf("end: %w", err)
	}
	return nil
}

// window holds the times of a row: the measurement begins, the fault begins and ends, the recovery begins and is over.
type window struct {
	baseline, begin, end, healing, recovered time.Time
	ok                                       bool
}

// await waits until all answers are as before, as many in a row.
func (w *window) await(ctx context.Context, c *callers, bare bool) {
	streams := []*stream{&c.leases, &c.writes}
	if !bare {
		streams = append(streams, &c.forbidden, &c.ask, &c.auto)
	}
	for end := time.Now().Add(recoverAtMax); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		w.ok, w.recovered = true, w.healing
		for _, s := range streams {
			at, ok := s.recovered(w.healing)
			w.ok = w.ok && ok
			w.recovered = slices.MaxFunc([]time.Time{w.recovered, at}, time.Time.Compare)
		}
		if w.ok {
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// settled ends a fault that is over when begin returns.
func settled(context.Context, *scene) error { return nil }
