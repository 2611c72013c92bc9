package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// contender is one thing that is measured.
type contender struct {
	key
	run func() error
	// perRun is the median CPU time of one run; allocations are those of one run.
	perRun      time.Duration
	allocations uint64
	bytes       uint64
}

// measure lets the contenders take turns.
func measure(contenders group, rounds int, slice time.Duration) error {
	runs := make([]int, len(contenders))
	times := make([][]time.Duration, len(contenders))
	for i, c := range contenders {
		var err error
		if runs[i], err = c.runsIn(slice); err != nil {
			return fmt.Errorf("%s of %s under %d rules: %w", c.what, c.engine, c.rules, err)
		}
	}
	for range rounds {
		for i, c := range contenders {
			used, err := c.slice(runs[i])
			if err != nil {
				return fmt.Errorf("%s of %s under %d rules: %w", c.what, c.engine, c.rules, err)
			}
			times[i] = append(times[i], used/time.Duration(runs[i]))
		}
	}
	for i, c := range contenders {
		slices.Sort(times[i])
		c.perRun = times[i][len(times[i])/2]
	}
	return nil
}

// runsIn finds how many runs take about as long as one slice, and counts what they allocate.
func (c *contender) runsIn(slice time.Duration) (int, error) {
	for n := 1; ; n *= 2 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		used, err := c.slice(n)
		if err != nil {
			return 0, err
		}
		runtime.ReadMemStats(&after)
		c.allocations, c.bytes = (after.Mallocs-before.Mallocs)/uint64(n), (after.TotalAlloc-before.TotalAlloc)/uint64(n)
		if used >= slice/2 {
			return n, nil
		}
	}
}

// slice is what n runs cost without garbage collection: its cycles fall on whoever runs when the heap of all engines
// together is full, at the same place of each round. This favours those that allocate most.
func (c *contender) slice(n int) (time.Duration, error) {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before, err := cpuTime()
	if err != nil {
		return 0, err
	}
	for range n {
		if err := c.run(); err != nil {
			return 0, err
		}
	}
	after, err := cpuTime()
	return after - before, err
}

// cpuTime is what this process has used.
func cpuTime() (time.Duration, error) {
	// The clock counts nanoseconds; what getrusage gives may count ticks.
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(used.Nano()), nil
}
