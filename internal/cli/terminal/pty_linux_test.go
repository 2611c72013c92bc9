package terminal_test

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
)

// openTerminal opens a terminal that nobody sits at.
func openTerminal(t *testing.T) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return tty
}

// Proves K-4.
func TestColoursShowOnATerminalUnlessNobodyWantsThem(t *testing.T) {
	tty := openTerminal(t)
	for _, tt := range []struct{ name, noColor, term, want string }{
		{"a terminal", "", "xterm", "\x1b[31mtext\x1b[0m"},
		{"NO_COLOR is set", "1", "xterm", "text"},
		{"a terminal without colours", "", "dumb", "text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("NO_COLOR", tt.noColor)
			t.Setenv("TERM", tt.term)
			if got := terminal.For(tty).Text(terminal.Red, "text"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	if got := terminal.For(tty).Text(terminal.Plain, "text"); got != "text" {
		t.Errorf("plain text is painted: %q", got)
	}
}
