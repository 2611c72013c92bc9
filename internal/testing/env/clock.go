package env

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"os"
	"path/filepath"
	"strings"
)

// ClockOffset is the variable of a process built with Build.Clock that says by how much its wall clock is wrong: a
// duration of whole seconds, negative for a clock that is behind. Unset = the clock is right.
const ClockOffset = "CLOCK_OFFSET"

const (
	rightClock = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	wrongClock = rightClock + "\tsec += clockOffset\n"
	readOffset = `package time

import "syscall"

var clockOffset = offsetOf("` + ClockOffset + `")

func offsetOf(name string) int64 {
	text, _ := syscall.Getenv(name)
	offset, _ := ParseDuration(text)
	return int64(offset / Second)
}
`
)

// clockOverlay writes an overlay of the standard library in which time.Now is wrong, and returns the flag for go build.
// It changes every use of the wall clock in the process: certificates, leases, tokens, our own; intervals stay right.
func clockOverlay(dir string) (flag string, err error) {
	std, err := build.Import("time", "", build.FindOnly)
	if err != nil {
		return "", fmt.Errorf("package time: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(std.Dir, "time.go"))
	if err != nil {
		return "", fmt.Errorf("package time: %w", err)
	}
	changed := strings.Replace(string(text), rightClock, wrongClock, 1)
	if changed == string(text) {
		return "", errors.New("package time: Now does not read as expected; this version of Go needs another overlay")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("clock overlay: %w", err)
	}
	now, offset, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "offset.go"), filepath.Join(dir, "overlay.json")
	index, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(std.Dir, "time.go"): now, filepath.Join(std.Dir, "clock_offset.go"): offset,
	}})
	if err != nil {
		return "", fmt.Errorf("clock overlay: %w", err)
	}
	for path, text := range map[string]string{now: changed, offset: readOffset, overlay: string(index)} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return "", fmt.Errorf("clock overlay: %w", err)
		}
	}
	return "-overlay=" + overlay, nil
}
