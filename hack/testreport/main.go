// Testreport reads the events of `go test -json` from standard input and prints what a person wants to follow: one line
// per package when it ends, the output of what failed, the packages that take long, and one line of counts at the end.
// It exits 1 when a test or a package failed and when no test ran.
package main

import (
	"fmt"
	"os"
	"time"
)

// heartbeat is how often packages that are still running are named, so that a quiet terminal is never a stuck one.
const heartbeat = 30 * time.Second

func main() {
	r := newReport(os.Stdout)
	if err := r.follow(os.Stdin, time.Tick(heartbeat)); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if !r.finish() {
		os.Exit(1)
	}
}
