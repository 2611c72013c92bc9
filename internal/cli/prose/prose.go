// Package prose writes sentences that fit a terminal.
package prose

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"stepbeyond.dev/stepbeyond/internal/cli/table"
	"stepbeyond.dev/stepbeyond/internal/screen"
)

// Count is a number with its noun.
func Count[N ~int | ~int32 | ~int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Write writes text behind head, in lines of at most table.Width columns that are broken at spaces; those after the first
// begin below the text. A longer word stays whole. Text that is not safe to show is escaped.
func Write(w io.Writer, head, text string) {
	margin := strings.Repeat(" ", utf8.RuneCountInString(head))
	for _, line := range Wrap(Visible(text), table.Width-len(margin)) {
		fmt.Fprintln(w, strings.TrimRight(head+line, " "))
		head = margin
	}
}

// maxShown bounds text that had to be escaped, in characters.
const maxShown = 4096

// Visible is text whose every character is seen and stands where it is read: as it is, or escaped by package screen when it
// holds one that is not.
func Visible(text string) string {
	for _, r := range text {
		if r == '\\' {
			continue // is escaped only where something else is
		}
		if s := string(r); screen.Line(s, len(`\U00000000`)) != s {
			return screen.Line(text, maxShown)
		}
	}
	return text
}

// Wrap breaks text at spaces into lines of at most width characters; a longer word is a line of its own. Empty text is one
// empty line.
func Wrap(text string, width int) []string {
	lines := []string{""}
	for word := range strings.SplitSeq(text, " ") {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
