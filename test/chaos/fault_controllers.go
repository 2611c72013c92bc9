package main

import (
	"context"
	"syscall"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

func controllerManagerGone() *row {
	return &row{
		name: "controller-manager-gone", title: "kube-controller-manager gone",
		auto:     "allowed",
		done:     "kube-controller-manager is killed and started again after the fault.",
		expected: "Nothing of ours needs it: AUTO is allowed.",
		begin: func(ctx context.Context, s *scene) error {
			return s.env.End(ctx, env.ControllerManager, syscall.SIGKILL)
		},
		end: func(ctx context.Context, s *scene) error { return s.env.Restart(ctx, env.ControllerManager) },
	}
}
