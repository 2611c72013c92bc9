package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Build says which manager is built.
type Build struct {
	// Race builds with the race detector, which needs a C compiler and makes the process about five times slower.
	Race bool
	// Tags are Go build tags, for example mutate_cas.
	Tags []string
	// Clock builds a manager whose wall clock the variable ClockOffset makes wrong.
	Clock bool
}

// buildManager builds ./cmd/manager into bin/testing of the repository, where an unchanged binary is not linked again,
// and copies it into the environment, so that a build for another environment cannot change it under a running process.
func (e *Env) buildManager(ctx context.Context, build Build) (string, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return "", err
	}
	name := strings.Join(append([]string{"manager"}, build.Tags...), "-")
	args := []string{"build"}
	if build.Race {
		name, args = name+"-race", append(args, "-race")
	}
	if build.Clock {
		name += "-clock"
	}
	shared := filepath.Join(root, "bin", "testing", name)
	args = append(args, "-tags="+strings.Join(build.Tags, ","), "-o", shared)
	if err := os.MkdirAll(filepath.Dir(shared), 0o755); err != nil {
		return "", fmt.Errorf("folder of the manager: %w", err)
	}
	unlock, err := lock(shared + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if build.Clock {
		overlay, err := clockOverlay(filepath.Join(root, "bin", "testing", "clock"))
		if err != nil {
			return "", err
		}
		args = append(args, overlay)
	}
	args = append(args, "./cmd/manager")
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	own := e.path("bin", name)
	return own, copyFile(own, shared)
}

// lock waits for the only right to build into a path, among all processes of the machine.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("build lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("build lock: %w", err)
	}
	return func() { _ = file.Close() }, nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy manager: %w", err)
	}
	defer in.Close()
	// A running process keeps its binary, which cannot be written.
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("copy manager: %w", err)
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o700)
	if err != nil {
		return fmt.Errorf("copy manager: %w", err)
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return fmt.Errorf("copy manager: %w", err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("copy manager: %w", err)
	}
	return nil
}
