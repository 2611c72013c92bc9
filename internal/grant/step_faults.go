//go:build faults

package grant

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// exitCode is that of a process that was killed.
const exitCode = 137

// pass makes the manager fail at a step for the target of a grant, as the tests of the protocol want it. In the folder
// FAULTS_DIR a file STEP.TARGET says how: "exit" ends the process once, "wait" holds every request there until the file
// is gone. What came by, and what happened there, is a line of STEP.hits: "passed", "exited" or "waited", and the target.
func pass(step Step, g *v1alpha1.PermissionGrant) {
	dir, target := os.Getenv("FAULTS_DIR"), g.Spec.Request.Operation.Target.Name
	if dir == "" {
		return
	}
	file, hits := filepath.Join(dir, string(step)+"."+target), filepath.Join(dir, string(step)+".hits")
	switch order, err := os.ReadFile(file); {
	case errors.Is(err, fs.ErrNotExist):
		note(hits, "passed", target)
	case err != nil:
		panic(err)
	case string(order) == "exit":
		// Whoever removes the order is the one that fails; another replica goes on.
		if os.Remove(file) == nil {
			note(hits, "exited", target)
			os.Exit(exitCode)
		}
	default:
		note(hits, "waited", target)
		for err == nil {
			time.Sleep(5 * time.Millisecond)
			_, err = os.Stat(file)
		}
	}
}

func note(file, what, target string) {
	hits, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer hits.Close()
	if _, err := hits.WriteString(what + " " + target + "\n"); err != nil {
		panic(err)
	}
}
