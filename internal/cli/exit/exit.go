// Package exit holds the exit codes of kubectl stepbeyond, which scripts may rely on.
package exit

import "errors"

// Exit codes.
const (
	// OK: it is done, or was so already.
	OK = 0
	// Failed: it was refused, or something went wrong; nothing was done unless the output says so.
	Failed = 1
	// Usage: the command line, or a file that it names, is wrong; the API server was asked for nothing.
	Usage = 2
	// Changed: what the command was about changed in between; look again.
	Changed = 3
	// TimedOut: it was asked for, and --timeout was over before it was seen to be in force.
	TimedOut = 4
)

type coded struct {
	error
	code int
}

func (c coded) Unwrap() error { return c.error }

// With gives an error the exit code that the process ends with.
func With(code int, err error) error { return coded{err, code} }

// Code is the exit code of an error: OK for nil, Failed for one that has none.
func Code(err error) int {
	var c coded
	switch {
	case err == nil:
		return OK
	case errors.As(err, &c):
		return c.code
	default:
		return Failed
	}
}
