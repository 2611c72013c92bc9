package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stopTimeout is how long a process may take to end after SIGTERM before SIGKILL.
const stopTimeout = 20 * time.Second

// process is one child that writes to a log file and is known to the reaper.
type process struct {
	name   string
	cmd    *exec.Cmd
	reaper *reaper
	log    string
	done   chan struct{} // closed when the process has ended
	err    error         // how it ended; read it after done
}

// startProcess starts binary with env (each NAME=value) beside the own environment. Output is appended to the file log,
// so that a restarted process keeps its history.
func startProcess(r *reaper, name, log string, env []string, binary string, args ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", name, err)
	}
	defer out.Close()
	p := &process{name: name, cmd: exec.Command(binary, args...), reaper: r, log: log, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	noted := r.add(name, p.cmd.Process.Pid)
	go func() {
		defer close(p.done)
		p.err = errors.Join(p.cmd.Wait(), r.forget(name))
	}()
	if noted != nil {
		return nil, errors.Join(noted, p.kill())
	}
	return p, nil
}

// kill ends the process at once, as a crash would, and waits for its end.
func (p *process) kill() error { return p.signal(syscall.SIGKILL) }

// stop asks the process to end and kills it after stopTimeout.
func (p *process) stop() error {
	timer := time.AfterFunc(stopTimeout, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	return p.signal(syscall.SIGTERM)
}

func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

// await calls ready until it answers nil. The error of a process that ended, or did not become ready within the
// timeout, carries the last lines of its log.
func (p *process) await(ctx context.Context, timeout time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := poll(ctx, p.done, ready)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s is not ready: %w; end of %s:\n%s", p.name, err, filepath.Base(p.log), tail(p.log, 4096))
}

// pollInterval is short against the start of a control plane, which takes seconds.
const pollInterval = 100 * time.Millisecond

var errEnded = errors.New("the process has ended")

// poll calls ready until it answers nil, ended is closed (nil = never) or the context is done.
func poll(ctx context.Context, ended <-chan struct{}, ready func(context.Context) error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errors.Join(errEnded, err)
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// tail returns at most the last n bytes of a file, or why they cannot be read.
func tail(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-n):])
}
