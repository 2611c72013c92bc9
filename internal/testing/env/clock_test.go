package env

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestAProgramBuiltWithTheOverlayHasTheWrongTimeAndRightIntervals(t *testing.T) {
	dir := t.TempDir()
	overlay, err := clockOverlay(filepath.Join(dir, "clock"))
	if err != nil {
		t.Fatal(err)
	}
	const program = `package main

import "time"

func main() {
	began := time.Now()
	if time.Since(began) > time.Minute {
		panic("an interval is wrong")
	}
	println(began.Unix())
}
`
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", overlay, "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for offset, want := range map[string]time.Duration{"": 0, "10m": 10 * time.Minute, "-10m": -10 * time.Minute} {
		cmd := exec.Command(binary)
		cmd.Env = append(os.Environ(), ClockOffset+"="+offset)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := time.Until(time.Unix(got, 0)) - want; wrong.Abs() > time.Minute {
			t.Errorf("offset %q: the clock is wrong by %s, want %s", offset, wrong+want, want)
		}
	}
}
