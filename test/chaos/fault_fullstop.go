package main

import (
	"context"
	"syscall"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

func fullStop() *row {
	return &row{
		name: "full-stop", title: "Full stop and start, no operator running",
		auto: "refused while no replica runs", compared: true,
		done:     "The replicas, kube-controller-manager, kube-apiserver and etcd are stopped in order; etcd, kube-apiserver and kube-controller-manager are started. The replicas are started after the fault.",
		expected: "The control plane comes up without us, for everybody but agents: AUTO and ASK are refused, fail closed.",
		begin:    stopAndStart,
		end:      func(ctx context.Context, s *scene) error { return s.startManagers(ctx) },
	}
}

func stopAndStart(ctx context.Context, s *scene) error {
	if err := s.takeDown((*env.Manager).Stop); err != nil {
		return err
	}
	for _, c := range []env.Component{env.ControllerManager, env.KubeAPIServer, env.Etcd} {
		if err := s.env.End(ctx, c, syscall.SIGTERM); err != nil {
			return err
		}
	}
	for _, c := range []env.Component{env.Etcd, env.KubeAPIServer, env.ControllerManager} {
		if err := s.env.Restart(ctx, c); err != nil {
			return err
		}
	}
	return pause(ctx, holdFor)
}
