package main

import (
	"context"
	"syscall"
	"time"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

const (
	apiServerRestarts = 20
	// betweenRestarts lets everybody come back to work, so that each restart hits work.
	betweenRestarts = time.Second
)

func apiServerRestarted() *row {
	return &row{
		name: "apiserver-restarts", title: "API server restarted 20 times",
		auto: "allowed", compared: true,
		done:     "kube-apiserver is killed with SIGKILL and started again 20 times, with a second of work in between.",
		expected: "Whenever it answers, it enforces: its webhook configuration and policies are there before it serves. AUTO is allowed when replicas answer.",
		hold:     time.Second,
		begin: func(ctx context.Context, s *scene) error {
			for range apiServerRestarts {
				if err := s.env.End(ctx, env.KubeAPIServer, syscall.SIGKILL); err != nil {
					return err
				}
				if err := s.env.Restart(ctx, env.KubeAPIServer); err != nil {
					return err
				}
				if err := pause(ctx, betweenRestarts); err != nil {
					return err
				}
			}
			return nil
		},
		end: settled,
	}
}
