package corpora

import (
	"errors"
	"fmt"
	"io/fs"

	"stepbeyond.dev/stepbeyond/policy"
)

// measure gives the rows of one set.
type measure func(fs.FS, *judge) ([]*Row, error)

// Measure gives the rows of all sets that the folder has, in a fixed order, by the engine alone. Sets that it lacks have
// no row. It errs when a file cannot be read.
func Measure(data fs.FS) ([]Row, error) {
	j, err := newJudge()
	if err != nil {
		return nil, err
	}
	return rowsOf(data, j, injecagent, mcpTools, tau2, traceCalls, kyverno, podSecurity, gatekeeper, rbac, traceWrites, loops, scopeWords)
}

// Writer writes objects as a governed agent through the admission of a real API server.
type Writer interface {
	// Write creates the object, or changes it where changed is true, and returns the class that was given. Class 0 means
	// that the API server refused the write by itself: the kind or a field does not exist there.
	Write(object map[string]any, changed bool) (policy.Class, error)
}

// MeasureAdmission gives the rows of the sets of manifests through admission. What the API server refuses by itself is no
// entry of any row but the last, which counts it.
func MeasureAdmission(data fs.FS, writer Writer) ([]Row, error) {
	refused, written := 0, 0
	var failed error
	j := &judge{admitted: func(w write) policy.Class {
		class, err := writer.Write(w.object, w.old != nil)
		if err != nil && failed == nil {
			failed = fmt.Errorf("write %v %v: %w", w.object["kind"], field(w.object, "name"), err)
		}
		written++
		if class == 0 {
			refused++
		}
		return class
	}}
	rows, err := rowsOf(data, j, kyverno, podSecurity, gatekeeper, rbac, traceWrites)
	if err != nil || failed != nil {
		return nil, errors.Join(err, failed)
	}
	last := newRow(j.through("writes that the API server refuses by itself"), "all of these", 1)
	last.N, last.Bad = written, refused
	return append(rows, *last), nil
}

func rowsOf(data fs.FS, j *judge, measures ...measure) ([]Row, error) {
	var rows []Row
	for _, measure := range measures {
		measured, err := measure(data, j)
		if err != nil {
			return nil, err
		}
		for _, row := range measured {
			if row.N > 0 {
				rows = append(rows, *row)
			}
		}
	}
	return rows, nil
}
