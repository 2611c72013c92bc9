package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// event is one line of `go test -json`, as documented by `go doc test2json`; build-output and build-fail name the
// package in ImportPath.
type event struct {
	Time       time.Time
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

// name identifies one test of one package; test is empty for the package itself.
type name struct{ pkg, test string }

type report struct {
	out     io.Writer
	output  map[name][]string
	running map[string]time.Time
	blamed  map[string]bool // packages in which a test has failed
	failed  []name

	passes, skips int
}

func newReport(out io.Writer) *report {
	return &report{
		out:     out,
		output:  map[name][]string{},
		running: map[string]time.Time{},
		blamed:  map[string]bool{},
	}
}

// follow consumes events until the input ends. On every tick it names the packages still running.
func (r *report) follow(in io.Reader, tick <-chan time.Time) error {
	lines := make(chan string)
	failed := make(chan error, 1)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, 16<<20)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
		failed <- scanner.Err()
	}()
	for {
		select {
		case line, open := <-lines:
			if !open {
				return <-failed
			}
			r.line(line)
		case now := <-tick:
			r.stillRunning(now)
		}
	}
}

// line takes one line of input. What is no event, a message of the go command itself, is passed on.
func (r *report) line(line string) {
	var e event
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		fmt.Fprintln(r.out, line)
		return
	}
	if e.Package == "" {
		e.Package = e.ImportPath
	}
	key := name{e.Package, e.Test}
	switch e.Action {
	case "start":
		r.running[e.Package] = e.Time
	case "output", "build-output":
		r.output[key] = append(r.output[key], e.Output)
	case "pass", "skip":
		r.pass(key, e.Action)
	case "fail":
		r.fail(key)
	case "build-fail":
		r.print(r.take(key))
	}
}

func (r *report) pass(key name, action string) {
	output := r.take(key)
	switch {
	case key.test == "":
		delete(r.running, key.pkg)
		r.print(slices.DeleteFunc(output, func(line string) bool { return !strings.HasPrefix(line, "ok ") }))
	case action == "skip":
		r.skips++
	default:
		r.passes++
	}
}

// fail prints what the test or package said. A package counts as one failure of its own only when none of its tests
// failed: it did not build, or it ended outside a test.
func (r *report) fail(key name) {
	output := r.take(key)
	if key.test != "" {
		r.blamed[key.pkg] = true
		r.failed = append(r.failed, key)
	} else {
		delete(r.running, key.pkg)
		if !r.blamed[key.pkg] {
			r.failed = append(r.failed, key)
		}
	}
	r.print(slices.DeleteFunc(output, func(line string) bool { return strings.HasPrefix(line, "=== ") }))
}

func (r *report) take(key name) []string {
	output := r.output[key]
	delete(r.output, key)
	return output
}

func (r *report) print(lines []string) {
	for _, line := range lines {
		fmt.Fprint(r.out, line)
	}
}

func (r *report) stillRunning(now time.Time) {
	var names []string
	for pkg, since := range r.running {
		names = append(names, fmt.Sprintf("%s (%d s)", pkg, int(now.Sub(since).Seconds())))
	}
	if len(names) > 0 {
		slices.Sort(names)
		fmt.Fprintln(r.out, "...    still running:", strings.Join(names, ", "))
	}
}

// finish prints the failures again, where they are found, then the counts, and says whether tests ran and all passed.
func (r *report) finish() bool {
	for _, key := range r.failed {
		fmt.Fprintln(r.out, "FAILED", strings.TrimSpace(key.pkg+" "+key.test))
	}
	if r.passes+len(r.failed) == 0 {
		fmt.Fprintln(r.out, "no test ran")
	}
	counts := fmt.Sprintf("%d passed, %d failed", r.passes, len(r.failed))
	if r.skips > 0 {
		counts += fmt.Sprintf(", %d skipped", r.skips)
	}
	fmt.Fprintln(r.out, counts)
	return r.passes > 0 && len(r.failed) == 0
}
