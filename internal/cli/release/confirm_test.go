package release

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAPromptEndsWithTheCommand(t *testing.T) {
	silent, _ := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := readLine(ctx, silent); !errors.Is(err, context.Canceled) {
		t.Errorf("error of an interrupted prompt: %v", err)
	}
	for text, want := range map[string]string{"prod \n": "prod", "prod": "prod", "": "", "prod\nmore\n": "prod"} {
		if got, err := readLine(t.Context(), strings.NewReader(text)); got != want || err != nil {
			t.Errorf("%q is read as %q, %v; want %q", text, got, err, want)
		}
	}
}
