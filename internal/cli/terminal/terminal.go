// Package terminal knows whether a person reads and types: colours, and questions that somebody can answer.
package terminal

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Is tells whether a stream is a terminal.
func Is(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Paint colours text, or leaves it as it is. The zero value leaves it.
type Paint struct{ on bool }

// For is the paint for an output: colours only on a terminal that knows them, and not where the environment variable
// NO_COLOR is set (no-color.org).
func For(out io.Writer) Paint {
	return Paint{on: Is(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Style is how a piece of text stands out.
type Style string

// Styles. Colour says nothing that the words do not say.
const (
	Plain Style = ""
	Bold  Style = "1"
	Faint Style = "2"
	Red   Style = "31"
	Green Style = "32"
	Amber Style = "33"
)

// Text gives s in a style.
func (p Paint) Text(style Style, s string) string {
	if !p.on || style == Plain || s == "" {
		return s
	}
	return "\x1b[" + string(style) + "m" + s + "\x1b[0m"
}

// ReadLine reads one line without its spaces. It ends with the context too, because a terminal does not. The end of the
// input ends the line.
func ReadLine(ctx context.Context, in io.Reader) (string, error) {
	type result struct {
		line string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		read <- result{strings.TrimSpace(line), err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case r := <-read:
		return r.line, r.err
	}
}
