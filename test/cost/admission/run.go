package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// options of a run.
type options struct{ rounds, writes, bystander int }

var errOptions = errors.New("rounds, writes and bystander must be at least 1")

// run tells whether all promises are kept.
func run(ctx context.Context, o options) (kept bool, err error) {
	if min(o.rounds, o.writes, o.bystander) < 1 {
		return false, errOptions
	}
	began := time.Now()
	progress := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%5.0f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	f, err := newField(ctx, progress)
	if err != nil {
		return false, errors.Join(err, f.stop())
	}
	defer func() { err = errors.Join(err, f.stop()) }()

	governed, err := f.reviewsSince(ctx, reviews{})
	if err != nil {
		return false, err
	}
	found, err := measure(ctx, f.contenders, o, progress)
	if err != nil {
		return false, err
	}
	if governed, err = f.reviewsSince(ctx, governed); err != nil {
		return false, err
	}
	if err := governed.areAuto((o.rounds + warmUps) * o.writes); err != nil {
		return false, err
	}
	called, err := f.bystanderCalls(ctx, o.bystander, progress)
	if err != nil {
		return false, err
	}
	fmt.Printf("\nblocks of each contender and operation: %d, of %d writes each, by %d clients\n\n", o.rounds, o.writes, clients)
	if err := printTable(os.Stdout, found); err != nil {
		return false, err
	}
	kept = printPromises(os.Stdout, found)
	return printBystander(os.Stdout, o.bystander, called) && kept, nil
}
