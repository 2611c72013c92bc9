package main

import (
	"errors"
	"slices"
	"testing"
)

// output sends the demo's lines to the log of a test.
type output struct{ t *testing.T }

func (o output) Write(text []byte) (int, error) {
	o.t.Logf("%s", text)
	return len(text), nil
}

// Proves C-1, C-2, C-5, C-6, G-2, G-3, G-4, G-5, G-7, K-2, K-6, F-1, B-2.
func TestTheStoryGoesAsWanted(t *testing.T) {
	rows := 0
	err := run(t.Context(), options{out: output{t}, onRow: func(got row, differences []string) {
		rows++
		t.Run(got.Step, func(t *testing.T) {
			for _, difference := range differences {
				t.Error(difference)
			}
		})
	}})
	if differs := (*differsError)(nil); err != nil && !errors.As(err, &differs) {
		t.Fatal(err)
	}
	if rows == 0 {
		t.Error("the story has no rows")
	}
}

func TestTheStoryNoticesWhatIsBroken(t *testing.T) {
	for mutation, want := range map[mutation][]string{
		mutateRBAC:  {"self-approve"},
		mutateFloor: {"self-approve"},
		mutateCAS:   {"race"},
	} {
		t.Run(string(mutation), func(t *testing.T) {
			err := run(t.Context(), options{out: output{t}, mutation: mutation})
			differs := (*differsError)(nil)
			if !errors.As(err, &differs) {
				t.Fatalf("no row noticed: %v", err)
			}
			if !slices.Equal(differs.rows, want) {
				t.Errorf("noticed by %v, want %v", differs.rows, want)
			}
		})
	}
}
