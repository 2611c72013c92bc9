package main

import (
	"context"
	"syscall"
	"time"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

const (
	// etcd stands still for most of each period, which makes every request wait for it.
	etcdStands = 180 * time.Millisecond
	etcdRuns   = 20 * time.Millisecond
)

func etcdSlow() *row {
	return &row{
		name: "etcd-slow", title: "etcd slow",
		auto: "allowed, or refused where a replica runs out of time", compared: true,
		done:     "etcd is stopped with SIGSTOP for 180 ms of every 200 ms, for 10 s.",
		expected: "Everything is slow for everybody. Where a replica cannot decide within its 2 s it refuses.",
		hold:     time.Second,
		begin: func(ctx context.Context, s *scene) error {
			for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
				for _, step := range []struct {
					signal syscall.Signal
					wait   time.Duration
				}{{syscall.SIGSTOP, etcdStands}, {syscall.SIGCONT, etcdRuns}} {
					if err := s.env.Signal(env.Etcd, step.signal); err != nil {
						return err
					}
					if err := pause(ctx, step.wait); err != nil {
						return err
					}
				}
			}
			return nil
		},
		end: settled,
	}
}
