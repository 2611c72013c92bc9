package env

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the processor time that a live process of the environment has used since its start. The name is
// kube-apiserver, etcd, kube-controller-manager, or that of a manager or of a further API server.
func (e *Env) CPU(name string) (time.Duration, error) {
	pid, err := e.pid(name)
	if err != nil {
		return 0, err
	}
	return CPUOf(pid)
}

// CPUOf is the processor time that a live process of this machine has used since its start, in all of its threads.
func CPUOf(pid int) (time.Duration, error) {
	// The process CPU clock of another process, as clock_getcpuclockid makes its name; it counts nanoseconds where
	// /proc counts ticks.
	const scheduled = 2
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &used); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return time.Duration(used.Nano()), nil
}

// RSS is how many bytes of memory a live process of the environment has resident. Names are those of CPU.
func (e *Env) RSS(name string) (int64, error) {
	pid, err := e.pid(name)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("memory of %s: %w", name, err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if amount, found := strings.CutPrefix(lines.Text(), "VmRSS:"); found {
			kibibytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(amount, "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("memory of %s: %w", name, err)
			}
			return kibibytes << 10, nil
		}
	}
	return 0, fmt.Errorf("memory of %s: %w", name, errNoRSS)
}

var errNoRSS = errors.New("the system does not say how much is resident")

// pid is the process ID that the reaper noted.
func (e *Env) pid(name string) (int, error) {
	text, err := os.ReadFile(e.reaper.file(name))
	if err != nil {
		return 0, fmt.Errorf("process ID of %s: %w", name, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("process ID of %s: %w", name, err)
	}
	return pid, nil
}

// APIServerCounter is the sum of a counter of the first API server over all series that carry the given labels; a series
// that does not exist counts as 0.
func (e *Env) APIServerCounter(ctx context.Context, name string, labels map[string]string) (float64, error) {
	text, err := e.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("metrics of the API server: %w", err)
	}
	return sumIn(bytes.NewReader(text), name, labels)
}
