package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// reviews that the manager answered for others than the canary.
type reviews struct {
	// enforce and origin are those of the two entries that look at writes of any kind.
	enforce, origin int
	// auto are those of enforce that the agent was free to do.
	auto int
}

// reviewsSince counts the reviews after earlier ones, once nothing is under way any more.
func (f *field) reviewsSince(ctx context.Context, earlier reviews) (reviews, error) {
	last, err := f.reviews(ctx)
	if err != nil {
		return last, err
	}
	err = eventually(ctx, func() error {
		time.Sleep(500 * time.Millisecond)
		now, err := f.reviews(ctx)
		if err != nil {
			return err
		}
		if now != last {
			last = now
			return errors.New("the manager is still asked")
		}
		return nil
	})
	return reviews{enforce: last.enforce - earlier.enforce, origin: last.origin - earlier.origin, auto: last.auto - earlier.auto}, err
}

func (f *field) reviews(ctx context.Context) (r reviews, err error) {
	const name = "stepbeyond_admission_reviews_total"
	for _, counter := range []struct {
		to     *int
		labels map[string]string
	}{
		{&r.enforce, map[string]string{"entry": "enforce"}},
		{&r.origin, map[string]string{"entry": "origin"}},
		{&r.auto, map[string]string{"entry": "enforce", "class": "AUTO", "verdict": "Allow"}},
	} {
		n, err := f.ours.Manager.Counter(ctx, name, counter.labels)
		if err != nil {
			return r, err
		}
		*counter.to = int(n)
	}
	enforced, stamped, err := canaryReviews(f.ours.Env)
	r.enforce, r.origin = r.enforce-enforced, r.origin-stamped
	return r, err
}

// canaryReviews counts, by what the API server recorded, the calls of both entries that the canary caused.
func canaryReviews(plane *env.Env) (enforced, stamped int, err error) {
	events, err := plane.AuditSince(0, canary)
	if err != nil {
		return 0, 0, err
	}
	for _, event := range events {
		for key, value := range event.Annotations {
			switch {
			case key == enforcement.EntryEnforce+"/decision":
				enforced++
			case strings.HasPrefix(key, "mutation.webhook.admission.k8s.io/") && strings.Contains(value, enforcement.EntryOrigin):
				stamped++
			}
		}
	}
	return enforced, stamped, nil
}

// areAuto is an error unless the governed contender was decided AUTO in each of its writes, n of each operation, and
// stamped in each create.
func (r reviews) areAuto(n int) error {
	want := reviews{enforce: n * len(operations), origin: n, auto: n * len(operations)}
	if r != want {
		return fmt.Errorf("the manager answered %+v for the governed caller, want %+v: the comparison is broken", r, want)
	}
	return nil
}

// bystanderCalls has the bystander write, nobody else but the canary being governed meanwhile, and counts the calls of
// the manager.
func (f *field) bystanderCalls(ctx context.Context, writes int, progress func(string, ...any)) (int, error) {
	before, err := f.reviewsSince(ctx, reviews{})
	if err != nil {
		return 0, err
	}
	const most = 5000 // objects at a time
	for _, c := range f.contenders {
		if c.name != bystander {
			continue
		}
		for left := writes; left > 0; {
			n := min(most, (left+len(operations)-1)/len(operations))
			progress("%d of %d writes of the bystander", writes-left, writes)
			for _, do := range operations {
				if err := c.writers.write(ctx, do, n); err != nil {
					return 0, fmt.Errorf("%s: %w", c.name, err)
				}
				left -= n
			}
		}
	}
	calls, err := f.reviewsSince(ctx, before)
	return calls.enforce + calls.origin, err
}
