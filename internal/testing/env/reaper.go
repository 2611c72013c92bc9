package env

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// reaper kills every process of an environment when the process that owns the environment is gone, whatever ended
// it: a panic, the deadline of "go test", SIGKILL. It is a shell that waits for the end of a pipe only the owner
// holds open, and then kills the process IDs that it finds in a folder. Stopping in order (API server, then etcd)
// needs the owner alive; the reaper only makes sure that nothing stays.
type reaper struct {
	dir  string // one file per live process, named for it and holding its ID
	pipe io.Closer
	cmd  *exec.Cmd
}

const reaperScript = `
trap '' INT TERM HUP
read -r _
for f in "$1"/*; do
  [ -f "$f" ] && kill -KILL "$(cat "$f")" 2>/dev/null
done
[ -z "$2" ] || rm -rf "$2"
`

// startReaper watches dir, and removes the folder remove afterwards; empty = nothing is removed.
func startReaper(dir, remove string) (*reaper, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("folder of process IDs: %w", err)
	}
	cmd := exec.Command("/bin/sh", "-c", reaperScript, "reaper", dir, remove)
	// A group of its own: Ctrl-C in a terminal signals the whole group of the owner.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("reaper: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("reaper: %w", err)
	}
	return &reaper{dir: dir, pipe: pipe, cmd: cmd}, nil
}

// add names a live process.
func (r *reaper) add(name string, pid int) error {
	if err := os.WriteFile(r.file(name), []byte(strconv.Itoa(pid)), 0o600); err != nil {
		return fmt.Errorf("process ID of %s: %w", name, err)
	}
	return nil
}

// forget takes a process out that has ended, before the system gives its ID to another one.
func (r *reaper) forget(name string) error {
	if err := os.Remove(r.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("process ID of %s: %w", name, err)
	}
	return nil
}

func (r *reaper) file(name string) string { return filepath.Join(r.dir, name) }

// stop lets the reaper kill what is left, and waits until it has.
func (r *reaper) stop() error {
	if err := r.pipe.Close(); err != nil {
		return fmt.Errorf("reaper: %w", err)
	}
	if err := r.cmd.Wait(); err != nil {
		return fmt.Errorf("reaper: %w", err)
	}
	return nil
}

// argumentsSuffix follows the name of a script that wrap wrote, in the name of the file that holds its arguments.
const argumentsSuffix = ".args"

// wrap writes a script that notes its process ID for the reaper and its arguments, one a line, and becomes the binary.
// envtest starts etcd and kube-apiserver itself and tells neither.
func (r *reaper) wrap(name, binary, script string) error {
	// envtest also calls the binary with --help, to learn its flags.
	text := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --help ] || { echo $$ > %q; printf '%%s\\n' \"$@\" > %q; }\nexec %q \"$@\"\n",
		r.file(name), script+argumentsSuffix, binary)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		return fmt.Errorf("wrapper of %s: %w", name, err)
	}
	return nil
}
