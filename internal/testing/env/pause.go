package env

import (
	"fmt"
	"syscall"
)

// Pause stops the process where it is with SIGSTOP: connections to it are accepted and never answered. Resume ends that;
// Kill also works on a paused process, and Stop waits in vain before it kills.
func (m *Manager) Pause() error { return m.deliver(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (m *Manager) Resume() error { return m.deliver(syscall.SIGCONT) }

func (m *Manager) deliver(sig syscall.Signal) error {
	if m.process == nil {
		return errNotStarted
	}
	if err := m.process.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal %s: %w", m.name, err)
	}
	return nil
}
