package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/test/bench"
)

var (
	errWrongClass = errors.New("the class is not the expected one")
	errNoEngine   = errors.New("there is no such engine")
)

// contend is the life of one contender's process: it writes how many runs fill a slice and what one allocates, and then,
// for each number that it reads, the nanoseconds of CPU time that so many runs took.
func contend(name string, slice time.Duration, orders io.Reader, results io.Writer) error {
	k, err := parseKey(name)
	if err != nil {
		return err
	}
	run, err := runner(k)
	if err != nil {
		return fmt.Errorf("make %s: %w", k, err)
	}
	first, err := calibrate(run, slice)
	if err != nil {
		return fmt.Errorf("run %s: %w", k, err)
	}
	if _, err := fmt.Fprintln(results, first.runs, first.allocations, first.bytes); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	for {
		var n int
		if _, err := fmt.Fscanln(orders, &n); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read how many runs: %w", err)
		}
		used, err := timed(run, n)
		if err != nil {
			return fmt.Errorf("run %s: %w", k, err)
		}
		if _, err := fmt.Fprintln(results, used.Nanoseconds()); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
}

// runner gives the contender's answer once per call; an answer of another class than the path's is an error.
func runner(k key) (func() error, error) {
	class, err := classes(k)
	if err != nil {
		return nil, err
	}
	return func() error {
		got, err := class()
		if err == nil && got != k.path {
			err = errWrongClass
		}
		return err
	}, nil
}

func classes(k key) (func() (policy.Class, error), error) {
	if k.what == rules {
		p, request := bench.NewPolicy(k.rules, k.path)
		for _, engine := range bench.Engines() {
			if engine.Name == k.engine {
				class, err := engine.New(p)
				return func() (policy.Class, error) { return class(&request) }, err
			}
		}
		return nil, errNoEngine
	}
	request, err := bench.Deployment(bench.DeploymentName(k.path))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	for _, engine := range bench.KubeEngines() {
		if engine.Name == k.engine {
			class, err := engine.New(bench.NewKubePolicy(k.rules))
			return func() (policy.Class, error) { return class(&request) }, err
		}
	}
	return nil, errNoEngine
}

// calibration is how many runs take about as long as one slice, and what one of them allocates.
type calibration struct {
	runs        int
	allocations uint64
	bytes       uint64
}

func calibrate(run func() error, slice time.Duration) (calibration, error) {
	for n := 1; ; n *= 2 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		used, err := timed(run, n)
		if err != nil {
			return calibration{}, err
		}
		runtime.ReadMemStats(&after)
		if used >= slice/2 {
			return calibration{
				runs: n, allocations: (after.Mallocs - before.Mallocs) / uint64(n), bytes: (after.TotalAlloc - before.TotalAlloc) / uint64(n),
			}, nil
		}
	}
}

// timed is what n runs cost the process, garbage collection included.
func timed(run func() error, n int) (time.Duration, error) {
	before, err := cpuTime()
	if err != nil {
		return 0, err
	}
	for range n {
		if err := run(); err != nil {
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
