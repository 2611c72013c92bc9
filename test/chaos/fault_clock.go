package main

import (
	"context"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

func clockAhead() *row {
	return clockWrong("clock-ahead", "Clock of the manager ten minutes ahead", "10m", "ahead of")
}

func clockBehind() *row {
	return clockWrong("clock-behind", "Clock of the manager ten minutes behind", "-10m", "behind")
}

// clockWrong starts the replicas again with a wrong clock, and after the fault with the right one.
func clockWrong(name, title, offset, how string) *row {
	return &row{
		name: name, title: title,
		auto: "refused while they start, then allowed", build: env.Build{Clock: true},
		done:     "Both replicas are started again with a wall clock that is ten minutes " + how + " the API server's, for everything in the process; after the fault with the right one. They do not verify the API server's certificate, which here is younger than the skew.",
		expected: "AUTO is refused for the seconds of the restart and allowed after it. Nothing expires early that was approved a moment ago.",
		begin:    func(ctx context.Context, s *scene) error { return s.restartWith(ctx, env.ClockOffset+"="+offset) },
		end:      func(ctx context.Context, s *scene) error { return s.restartWith(ctx, env.ClockOffset+"=0s") },
		hold:     2 * holdFor,
	}
}

// restartWith kills the replicas and starts new ones in their place with a variable.
func (s *scene) restartWith(ctx context.Context, variable string) error {
	if err := s.takeDown((*env.Manager).Kill); err != nil {
		return err
	}
	s.row.variables = []string{variable}
	if err := s.newManagers(ctx); err != nil {
		return err
	}
	return s.startManagers(ctx)
}
