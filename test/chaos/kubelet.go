package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// kubelet starts a replica again that ended by itself, unless the fault keeps the replicas down.
type kubelet struct {
	mu      sync.Mutex // of starts
	down    bool
	stop    context.CancelFunc
	ended   sync.WaitGroup
	failure error
}

// looksEvery is the least that a kubelet waits before it starts a container again.
const looksEvery = time.Second

func (s *scene) startKubelet(ctx context.Context) {
	ctx, s.kubelet.stop = context.WithCancel(ctx)
	s.kubelet.ended.Go(func() {
		ticker := time.NewTicker(looksEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			s.kubelet.mu.Lock()
			if !s.kubelet.down {
				s.kubelet.failure = errors.Join(s.kubelet.failure, s.startEnded())
			}
			s.kubelet.mu.Unlock()
		}
	})
}

func (s *scene) stopKubelet() error {
	if s.kubelet.stop == nil {
		return nil
	}
	s.kubelet.stop()
	s.kubelet.ended.Wait()
	return s.kubelet.failure
}

// takeDown ends every replica; none is started again before startManagers.
func (s *scene) takeDown(end func(*env.Manager) error) error {
	s.kubelet.mu.Lock()
	defer s.kubelet.mu.Unlock()
	s.kubelet.down = true
	return s.eachManager(end)
}

// startManagers starts the replicas that do not run, and waits until all are ready.
func (s *scene) startManagers(ctx context.Context) error {
	if err := s.raise(); err != nil {
		return err
	}
	for _, m := range s.managers {
		if err := m.WaitReady(ctx, readyFor); err != nil {
			return err
		}
	}
	return nil
}

// raise starts the replicas that do not run, and keeps them running.
func (s *scene) raise() error {
	s.kubelet.mu.Lock()
	defer s.kubelet.mu.Unlock()
	s.kubelet.down = false
	return s.startEnded()
}

func (s *scene) startEnded() error {
	for i, m := range s.managers {
		if m.Running() {
			continue
		}
		s.starts[i] = 0
		if info, err := os.Stat(m.Logs()); err == nil {
			s.starts[i] = info.Size()
		}
		if err := m.Start(); err != nil {
			return fmt.Errorf("start a replica: %w", err)
		}
	}
	return nil
}
