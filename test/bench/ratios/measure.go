package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"time"
)

// contender is one thing that is measured, in its own process.
type contender struct {
	key
	calibration
	// perRun is the CPU time of one run in the slice that a quarter of all slices are faster than: what disturbs a slice only
	// adds to it.
	perRun time.Duration

	command *exec.Cmd
	orders  io.WriteCloser
	results *bufio.Reader
}

// group is what takes turns. Groups are measured one after the other, which bounds the memory.
type group []*contender

// start starts the contenders' processes, one after the other. The caller stops what was started, also after an error.
func (g *group) start(list []key, slice time.Duration) error {
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	for _, k := range list {
		c := &contender{key: k, command: exec.Command(executable, "-contender", k.String(), "-slice", slice.String())}
		if err := c.start(); err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
		*g = append(*g, c)
		if _, err := fmt.Fscanln(c.results, &c.runs, &c.allocations, &c.bytes); err != nil {
			return fmt.Errorf("%s: read the calibration: %w", k, err)
		}
	}
	return nil
}

func (c *contender) start() error {
	c.command.Stderr = os.Stderr
	orders, err := c.command.StdinPipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	results, err := c.command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	c.orders, c.results = orders, bufio.NewReader(results)
	if err := c.command.Start(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return nil
}

// stop ends the processes, which end when nothing more is asked of them.
func (g group) stop() error {
	var failures []error
	for _, c := range g {
		if err := errors.Join(c.orders.Close(), c.command.Wait()); err != nil {
			failures = append(failures, fmt.Errorf("%s: end: %w", c.key, err))
		}
	}
	return errors.Join(failures...)
}

// measure lets the contenders take turns. The order of each round is drawn, so that none always follows the same one.
func (g group) measure(rounds int) error {
	times := make([][]time.Duration, len(g))
	for range rounds {
		for _, i := range rand.Perm(len(g)) {
			c := g[i]
			used, err := c.slice()
			if err != nil {
				return fmt.Errorf("%s: %w", c.key, err)
			}
			times[i] = append(times[i], used/time.Duration(c.runs))
		}
	}
	for i, c := range g {
		slices.Sort(times[i])
		c.perRun = times[i][len(times[i])/4]
	}
	return nil
}

func (c *contender) slice() (time.Duration, error) {
	if _, err := fmt.Fprintln(c.orders, c.runs); err != nil {
		return 0, fmt.Errorf("order a slice: %w", err)
	}
	var nanoseconds int64
	if _, err := fmt.Fscanln(c.results, &nanoseconds); err != nil {
		return 0, fmt.Errorf("read what the slice cost: %w", err)
	}
	return time.Duration(nanoseconds), nil
}
