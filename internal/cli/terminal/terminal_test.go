package terminal_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
)

func TestAPromptEndsWithTheCommand(t *testing.T) {
	silent, _ := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := terminal.ReadLine(ctx, silent); !errors.Is(err, context.Canceled) {
		t.Errorf("error of an interrupted prompt: %v", err)
	}
	for text, want := range map[string]string{"prod \n": "prod", "prod": "prod", "": "", "prod\nmore\n": "prod"} {
		if got, err := terminal.ReadLine(t.Context(), strings.NewReader(text)); got != want || err != nil {
			t.Errorf("%q is read as %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestNothingButATerminalIsPainted(t *testing.T) {
	var out strings.Builder
	if got := terminal.For(&out).Text(terminal.Red, "text"); got != "text" || terminal.Is(&out) {
		t.Errorf("painted: %q", got)
	}
}
