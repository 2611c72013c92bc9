package manager

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestClientAuthenticationThatCannotWorkIsRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.crt")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		flags []string
		want  string
	}{
		{"none", nil, ""},
		{"names without an authority", []string{"--client-names=a"}, "client-names: needs client-ca-file"},
		{"a file that is not there", []string{"--client-ca-file=" + empty + ".not"}, "client-ca-file: open"},
		{"a file without a certificate", []string{"--client-ca-file=" + empty}, "client-ca-file: " + empty + " holds no PEM certificate"},
		{"an empty name", []string{"--client-names=a,"}, `for flag -client-names: a name is empty`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var options Options
			flags := flag.NewFlagSet("", flag.ContinueOnError)
			flags.SetOutput(io.Discard)
			options.Bind(flags)
			err := flags.Parse(tt.flags)
			if err == nil {
				_, err = options.clientAuthentication()
			}
			if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
