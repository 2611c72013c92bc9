package main

import (
	"context"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

func scaledToZero() *row {
	return &row{
		name: "scaled-to-zero", title: "Scaled to zero",
		auto:     "refused",
		done:     "Both replicas are stopped in order with SIGTERM, one after the other, and started again after the fault.",
		expected: "As with killed replicas: nothing is given up in an orderly end.",
		begin: func(_ context.Context, s *scene) error {
			return s.takeDown((*env.Manager).Stop)
		},
		end:    func(ctx context.Context, s *scene) error { return s.startManagers(ctx) },
		person: "scale up",
	}
}
