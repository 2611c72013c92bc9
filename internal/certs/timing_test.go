package certs_test

import (
	"flag"
	"io"
	"strings"
	"testing"

	"stepbeyond.dev/stepbeyond/internal/certs"
)

func TestTimingThatCannotWorkIsRefused(t *testing.T) {
	for _, tt := range []struct{ name, flags, want string }{
		{"the default", "", ""},
		{"a leaf as old as the authority", "--certificate-lifetime=2400h --authority-lifetime=2400h", ""},
		{"a leaf that outlives the authority", "--certificate-lifetime=9000h", "certificate-lifetime: 9000h0m0s is longer than authority-lifetime, 8760h0m0s"},
		{"a rotation as late as the end", "--rotate-every=8760h", "rotate-every: 8760h0m0s is not less than authority-lifetime, 8760h0m0s"},
		{"an overlap that is no full one", "--rotation-overlap=59s", "rotation-overlap: 59s is less than rotation-settle, 1m0s"},
		{"no wait at all", "--rotation-settle=0s", "rotation-settle: 0s is not positive"},
		{"no poll", "--rotation-poll=-1s", "rotation-poll: -1s is not positive"},
		{"no overlap", "--rotation-overlap=0s", "rotation-overlap: 0s is not positive"},
		{"no life", "--authority-lifetime=0s", "authority-lifetime: 0s is not positive"},
		{"no life of a leaf", "--certificate-lifetime=0s", "certificate-lifetime: 0s is not positive"},
		{"always due", "--rotate-every=0s", "rotate-every: 0s is not positive"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			timing := certs.DefaultTiming()
			flags := flag.NewFlagSet("", flag.ContinueOnError)
			flags.SetOutput(io.Discard)
			timing.Bind(flags)
			if err := flags.Parse(strings.Fields(tt.flags)); err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := timing.Validate(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
