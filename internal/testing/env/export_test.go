package env

import (
	"context"
	"testing"
)

// Await lets the tests of the package wait as the package does.
func Await(t *testing.T, done func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := poll(ctx, nil, func(context.Context) error { return done() }); err != nil {
		t.Fatal(err)
	}
}
