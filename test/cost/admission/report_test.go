package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// like are three rounds in which every contender takes as long for a write as the first says of it; of the second round
// all take twice as long, because the machine was busy.
func like(walls map[string]time.Duration) costs {
	found := costs{}
	for name, wall := range walls {
		found[name] = map[operation][]cost{}
		for _, do := range operations {
			found[name][do] = []cost{{wall: wall}, {wall: 2 * wall}, {wall: wall}}
		}
	}
	return found
}

func kept() map[string]time.Duration {
	return map[string]time.Duration{none: 600, bare: 1000, governed: 1100, excluded: 610, bystander: 620}
}

func TestAPromiseIsKeptOrSaidToBeMissed(t *testing.T) {
	tests := []struct {
		name   string
		change func(costs)
		want   string // "" when all are kept
	}{
		{name: "all are kept", change: func(costs) {}},
		{name: "creates are too dear", want: "MISSED  governed/bare, create: 0.769", change: func(c costs) { slow(c, governed, create, 1300) }},
		{name: "updates are too dear", want: "MISSED  governed/bare, update: 0.870", change: func(c costs) { slow(c, governed, update, 1150) }},
		{name: "deletes are too dear", want: "MISSED  governed/bare, delete: 0.870", change: func(c costs) { slow(c, governed, remove, 1150) }},
		{name: "creates with two calls may cost more than the rest", change: func(c costs) { slow(c, governed, create, 1240) }},
		{name: "a bystander pays", want: "MISSED  bystander/excluded, all: 0.930", change: func(c costs) {
			for _, do := range operations {
				slow(c, bystander, do, 656)
			}
		}},
		{name: "the bare webhook costs next to nothing", want: "BROKEN COMPARISON  bare/none, all: 0.800", change: func(c costs) {
			for _, do := range operations {
				slow(c, none, do, 800)
			}
		}},
		{name: "the bare webhook is all that costs", want: "BROKEN COMPARISON  bare/none, all: 0.400", change: func(c costs) {
			for _, do := range operations {
				slow(c, none, do, 400)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found := like(kept())
			tt.change(found)
			var out bytes.Buffer
			if got := printPromises(&out, found); got != (tt.want == "") {
				t.Errorf("kept = %v", got)
			}
			if !strings.Contains(out.String(), tt.want) {
				t.Errorf("got:\n%swant a line with %q", out.String(), tt.want)
			}
		})
	}
}

// slow sets how long the writes of one kind took.
func slow(found costs, name string, do operation, wall time.Duration) {
	found[name][do] = []cost{{wall: wall}, {wall: 2 * wall}, {wall: wall}}
}

func TestOneCallForABystanderIsTooMany(t *testing.T) {
	for calls, want := range map[int]bool{0: true, 1: false} {
		var out bytes.Buffer
		if got := printBystander(&out, 100, calls); got != want {
			t.Errorf("kept = %v for %d calls", got, calls)
		}
	}
}

func TestAnAgentThatWasNotAutoBreaksTheComparison(t *testing.T) {
	tests := []struct {
		name string
		seen reviews
		ok   bool
	}{
		{"every write was AUTO and every create stamped", reviews{enforce: 30, auto: 30, origin: 10}, true},
		{"a write was asked", reviews{enforce: 30, auto: 29, origin: 10}, false},
		{"a write was not reviewed", reviews{enforce: 29, auto: 29, origin: 10}, false},
		{"an update was stamped again", reviews{enforce: 30, auto: 30, origin: 11}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.seen.areAuto(10); (err == nil) != tt.ok {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestTheTableHasARowForEachContenderAndOperation(t *testing.T) {
	var out bytes.Buffer
	if err := printTable(&out, like(kept())); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(out.String(), "\n"), 2+5*len(operations); got != want {
		t.Errorf("%d lines, want %d:\n%s", got, want, out.String())
	}
}
