package scope_test

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbeyond.dev/stepbeyond/policy/scope"
)

func FuzzDetect(f *testing.F) {
	for _, piece := range slices.Concat(lines(limiting), lines(notLimiting), broadenings, marks) {
		f.Add(piece)
	}
	for _, unit := range hostile {
		f.Add(strings.Repeat(unit, 40))
	}
	d := detector(f)
	f.Fuzz(func(t *testing.T, text string) {
		checkFindings(t, d, text)
		active := scope.State{Active: true}
		if got := scope.Next(active, scope.Message{Source: scope.SourceTool, Findings: d.Detect(text)}); got != active {
			t.Fatalf("%q from a tool changed the state to %+v", text, got)
		}
	})
}

// hostile are units whose repetition tempts a matcher into looking again and again.
var hostile = []string{
	"only ", "only", "don't touch ", "leave the rest ", "you can now also change ", "nie nie reszty ", "reszty ", "hands off a ", "'a ", "\"a ", "“a ", "`a ``b ", "```\n", "> ", "(only ", ")",
	"\u0301", "e\u0301\u0301", "\u200b", "a ", "я", "?", "\n", "\n ", "only\n", "-", "a-", "only-", "not only ", "/", "«", "\xff", "strict scope ", "ﷺ",
}

// The work is linear: sixteen times the text costs about sixteen times as much, and 256 times where every word looks at every
// other. The cost of a text is the least processor time of several runs, without garbage collection, so that a busy machine
// makes no difference.
func TestTheCostOfHostileTextGrowsWithItsLength(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("compares the processor time that long texts cost one thread")
	}
	d := detector(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const small, factor, bound = 1 << 13, 16, 80
	cost := func(text string, runs int) time.Duration {
		least := time.Duration(1<<63 - 1)
		for range runs {
			start := threadTime(t)
			d.Detect(text)
			least = min(least, threadTime(t)-start)
		}
		runtime.GC()
		return least
	}
	for _, unit := range hostile {
		short := cost(strings.Repeat(unit, small/len(unit)), 8)
		long := cost(strings.Repeat(unit, factor*(small/len(unit))), 3)
		if long > bound*short {
			t.Errorf("%q: %d times the text costs %d times as much, at most %d", unit, factor, long/short, bound)
		}
	}
}

// threadTime is the processor time that this thread has used.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Nano())
}

func TestAnInstructionOfOneMebibyteIsRead(t *testing.T) {
	d := detector(t)
	for _, unit := range []string{"only ", "'a ", "leave the rest "} {
		checkFindings(t, d, strings.Repeat(unit, 1<<20/len(unit)))
	}
	text := strings.Repeat("restart web and look at it. ", 1<<20/28) + "Nothing else."
	findings := d.Detect(text)
	if len(findings) != 1 || findings[0].Kind != scope.KindLimit || text[findings[0].Start:findings[0].End] != "Nothing else" {
		t.Errorf("findings at the end of a long text: %+v", findings)
	}
}
