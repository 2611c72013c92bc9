package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"stepbeyond.dev/stepbeyond/internal/grant"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

func leaderChange() *row {
	return &row{
		name: "leader-change", title: "Leader change during a reservation",
		auto: "allowed, but for what the dead replica held", build: env.Build{Tags: []string{"faults"}},
		done:     "The agent's approved requests are held in the replicas where their use is reserved and not answered; then the replica that leads is killed. It is started again at once, as the kubelet does.",
		expected: "A request that the dead replica held is refused and its use settled by proof; AUTO goes on through the other replica, but for what the dead one held.",
		begin:    killWhileReserved,
	}
}

func (s *scene) orderFile(target string) string {
	return filepath.Join(s.faults, string(grant.StepReserved)+"."+target)
}

// killWhileReserved waits until a use is reserved, kills the leader and lets the other replica go on.
func killWhileReserved(ctx context.Context, s *scene) error {
	leader, err := s.leader(ctx)
	if err != nil {
		return err
	}
	targets := s.grants[:triedMeanwhile]
	for _, a := range targets {
		if err := os.WriteFile(s.orderFile(a.service), []byte("wait"), 0o600); err != nil {
			return fmt.Errorf("order: %w", err)
		}
	}
	if err := eventually(ctx, s.reserved); err != nil {
		return err
	}
	if err := leader.Kill(); err != nil {
		return err
	}
	for _, a := range targets {
		if err := os.Remove(s.orderFile(a.service)); err != nil {
			return fmt.Errorf("order: %w", err)
		}
	}
	return nil
}

// reserved tells whether a request waits with its use reserved.
func (s *scene) reserved() error {
	hits, err := os.ReadFile(filepath.Join(s.faults, string(grant.StepReserved)+".hits"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("hits: %w", err)
	}
	if !strings.Contains(string(hits), "waited ") {
		return errors.New("no use is reserved")
	}
	return nil
}
