package main

import (
	"context"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

func replicasKilled() *row {
	return &row{
		name: "replicas-killed", title: "All replicas killed",
		auto:     "refused",
		done:     "Both replicas are killed with SIGKILL at the same time and started again after the fault, as the kubelet does.",
		expected: "AUTO and ASK are refused, fail closed; FORBIDDEN has the floor's answer.",
		begin: func(_ context.Context, s *scene) error {
			return s.takeDown((*env.Manager).Kill)
		},
		end: func(ctx context.Context, s *scene) error { return s.startManagers(ctx) },
	}
}
