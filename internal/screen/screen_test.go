package screen

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Text that an agent wrote is shown as it is, whatever its characters would do to a terminal.
func TestALineShowsEveryCharacterAndObeysNone(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		max        int
		want       string
	}{
		{"plain text", `PVC is full; recreating it with 40Gi.`, 80, `PVC is full; recreating it with 40Gi.`},
		{"letters of other languages", "Zażółć, 面, прод, naïve", 80, "Zażółć, 面, прод, naïve"},
		{"nothing", "", 80, ""},
		{"line ends and tabs", "one\ntwo\r\nthree\tfour", 80, `one\ntwo\r\nthree\tfour`},
		{"a terminal escape", "\x1b[2K\x1b[1Aapproved", 80, `\x1b[2K\x1b[1Aapproved`},
		{"a bell and a backspace", "a\a\b\x7fb", 80, `a\x07\x08\x7fb`},
		{"a C1 control", "a\u009b2Jb", 80, `a\u009b2Jb`},
		{"a right-to-left override", "safe \u202egnp.exe", 80, `safe \u202egnp.exe`},
		{"isolates and marks of direction", "\u2066a\u2069\u200f\u061c", 80, `\u2066a\u2069\u200f\u061c`},
		{"zero width", "pro\u200bd\u200d\u2060\ufeff", 80, `pro\u200bd\u200d\u2060\ufeff`},
		{"line and paragraph separators", "a\u2028b\u2029c", 80, `a\u2028b\u2029c`},
		{"other spaces", "a\u00a0b\u3000c\u2003d", 80, `a\u00a0b\u3000c\u2003d`},
		{"letters that are seen as nothing", "a\u3164\u115f\uffa0\u2800b", 80, `a\u3164\u115f\uffa0\u2800b`},
		{"variation selectors and tags", "a\ufe0f\U000e0100\U000e0041b", 80, `a\ufe0f\U000e0100\U000e0041b`},
		{"private and unassigned characters", "\ue000\U0010fffd\u0378", 80, `\ue000\U0010fffd\u0378`},
		{"a tower of marks", "a" + strings.Repeat("\u0301", 6), 80, "a" + strings.Repeat("\u0301", 4) + `\u0301\u0301`},
		{"bytes that are no text", "a\xff\xc0b\xe2\x80", 80, `a\xff\xc0b\xe2\x80`},
		{"the mark of such bytes", "a\ufffdb", 80, `a\ufffdb`},
		{"what is written as an escape", `C:\u202e`, 80, `C:\\u202e`},
		{"just long enough", "0123456789abcdef", 16, "0123456789abcdef"},
		{"too long", "0123456789abcdefg", 16, "012... (14 more)"},
		{"too long, with an escape where it is cut", "0\u202e123456789abcdefg", 20, `0\u202e... (16 more)`},
		{"an escape that does not fit any more", "01\u202e123456789abcdefg", 20, `01... (17 more)`},
		{"no room for words", "0123456789", 5, "..."},
		{"hardly any room", "0123456789", 2, ".."},
		{"no room", "0123456789", 0, ""},
		{"less than none", "0123456789", -1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Line(tt.text, tt.max)); diff != "" {
				t.Errorf("Line(%q, %d) (-want +got):\n%s", tt.text, tt.max, diff)
			}
		})
	}
}

// What is shown can be read back: nothing is lost and no two texts look alike.
func TestALineIsBoundedPrintableAndTellsTextsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Runes of all kinds, and bytes that are none.
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		max := rapid.IntRange(-1, 64).Draw(t, "max")
		line := Line(text, max)
		if n := utf8.RuneCountInString(line); n > max && n > 0 {
			t.Errorf("Line(%q, %d) = %q has %d characters", text, max, line, n)
		}
		for _, r := range line {
			if !unicode.IsPrint(r) || unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zl, unicode.Zp) {
				t.Errorf("Line(%q, %d) = %q holds %U", text, max, line, r)
			}
		}
		whole := Line(text, 16*len(text)+1)
		if back, err := strconv.Unquote(`"` + strings.ReplaceAll(whole, `"`, `\"`) + `"`); err != nil || back != text {
			t.Errorf("Line(%q) = %q reads back as %q, %v", text, whole, back, err)
		}
	})
}
