// Package screen makes text that somebody else wrote safe to show: one line, bounded, where every character is seen and
// stands where it is read. An approver must not be told a lie by the letters themselves.
package screen

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarks bounds how many combining marks follow one another. No language needs more; towers of them cover other lines.
const maxMarks = 4

// blank characters are seen as nothing although they count as letters or symbols.
var blank = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x2800, Hi: 0x2800, Stride: 1}}}

// Line gives s in one line of at most max characters (Unicode code points; 0 or less gives none). Control, format,
// bidirectional, zero-width, invisible and unassigned characters, spaces other than the plain one, and bytes that are no
// UTF-8 are escaped as in Go, and so is the backslash: two texts that differ never look alike, unless they are cut. Text
// that is too long ends in how many of its characters are missing; an escape is never cut through. Letters of all
// languages stay as they are, also those that look like others.
func Line(s string, max int) string {
	if max <= 0 {
		return ""
	}
	shown, rest := head(s, max)
	if rest == "" {
		return shown
	}
	// Cut text misses fewer characters than it has, so the mark for all of them leaves room enough.
	room := max - len(mark(s))
	if room <= 0 {
		return strings.Repeat(".", min(max, 3))
	}
	shown, rest = head(s, room)
	return shown + mark(rest)
}

func mark(missing string) string {
	return fmt.Sprintf("... (%d more)", utf8.RuneCountInString(missing))
}

// head spells as much of s as fits into max characters, and gives the rest.
func head(s string, max int) (shown, rest string) {
	var b strings.Builder
	marks, used := 0, 0
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		piece := spell(s[:size], r, marks)
		used += utf8.RuneCountInString(piece)
		if used > max {
			break
		}
		b.WriteString(piece)
		s = s[size:]
	}
	return b.String(), s
}

func spell(raw string, r rune, marks int) string {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		return fmt.Sprintf(`\x%02x`, raw[0])
	case r == '\\':
		return `\\`
	case seen(r) && marks <= maxMarks:
		return raw
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < utf8.RuneSelf:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	default:
		return fmt.Sprintf(`\U%08x`, r)
	}
}

// seen tells that a character has a form of its own and moves no other.
func seen(r rune) bool {
	return unicode.IsPrint(r) && r != utf8.RuneError &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, blank)
}
