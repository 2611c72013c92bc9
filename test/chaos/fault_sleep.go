package main

import (
	"context"
	"syscall"
	"time"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

func webhookSleeps() *row {
	return &row{
		name: "webhook-sleeps", title: "Webhook sleeps 9 s",
		auto: "refused", hold: 9 * time.Second,
		done:     "Both replicas are stopped with SIGSTOP for 9 s: they take connections and answer nothing.",
		expected: "Each governed write waits 3 s for its stamp and 3 s for the decision, and is refused, fail closed; nobody else waits.",
		begin: func(_ context.Context, s *scene) error {
			return s.eachManager(func(m *env.Manager) error { return m.Signal(syscall.SIGSTOP) })
		},
		end: func(_ context.Context, s *scene) error {
			return s.eachManager(func(m *env.Manager) error { return m.Signal(syscall.SIGCONT) })
		},
	}
}
