package prose

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/internal/cli/table"
)

func TestTextIsBrokenAtSpacesAndNothingOfItIsLost(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		width      int
		want       []string
	}{
		{"short text is one line", "a b", 10, []string{"a b"}},
		{"a line is as long as it may be", "aa bb cc", 5, []string{"aa bb", "cc"}},
		{"a long word stays whole", "a bbbbbbbb c", 4, []string{"a", "bbbbbbbb", "c"}},
		{"letters count and not bytes", "ąą ęę", 5, []string{"ąą ęę"}},
		{"nothing is one empty line", "", 5, []string{""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Wrap(tt.text, tt.width)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrittenTextFitsTheWidthAndStandsBelowItsBeginning(t *testing.T) {
	b := &strings.Builder{}
	Write(b, "attention     ", strings.Repeat("word ", 60))
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) < 3 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines {
		if utf8.RuneCountInString(line) > table.Width || i > 0 && !strings.HasPrefix(line, strings.Repeat(" ", 14)+"word") {
			t.Errorf("line %d: %q", i, line)
		}
	}
}

func TestTextThatCannotBeSeenIsEscapedAndAllOtherStaysAsItIs(t *testing.T) {
	for text, want := range map[string]string{
		`want the text "a\d+", got 'ąćż'`: `want the text "a\d+", got 'ąćż'`,
		"a\x1b[2Kb\\":                     `a\x1b[2Kb\\`,
		"a\u202eb":                        `a\u202eb`,
		"a\nb":                            `a\nb`,
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestANumberHasItsNoun(t *testing.T) {
	for n, want := range map[int]string{0: "0 rules", 1: "1 rule", 2: "2 rules"} {
		if got := Count(n, "rule", "rules"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
