package scope

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// letter is one code point of the normalised text with the bytes of the original that it came from.
type letter struct {
	r          rune
	start, end int
}

// normalize brings the text to NFKC and drops default-ignorable code points, so that a word cannot be hidden by
// full-width or mathematical letters, soft hyphens or zero-width joiners. Invalid bytes become U+FFFD and separate words.
func normalize(text string) []letter {
	letters := make([]letter, 0, len(text))
	var segments norm.Iter
	segments.InitString(norm.NFKC, text)
	for !segments.Done() {
		start := segments.Pos()
		segment := string(segments.Next())
		end := segments.Pos()
		unchanged := segment == text[start:end]
		for at, r := range segment {
			if ignorable(r) {
				continue
			}
			l := letter{r: r, start: start, end: end}
			if last := len(letters) - 1; r == '\n' && last >= 0 && letters[last].r == '\r' {
				// One line end, not a blank line.
				letters = letters[:last]
			}
			if unchanged {
				l.start = start + at
				l.end = l.start + runeLength(segment[at:])
			}
			letters = append(letters, l)
		}
	}
	return letters
}

// runeLength is 1 for an invalid byte, as the range over a string counts it.
func runeLength(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}

// ignorable is Default_Ignorable_Code_Point of Unicode (DerivedCoreProperties.txt), from the properties that it is
// derived from.
func ignorable(r rune) bool {
	if r < 0xAD {
		return false
	}
	if unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
		return true
	}
	return unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) &&
		(r < 0xFFF9 || r > 0xFFFB) && (r < 0x13430 || r > 0x13440)
}

// folder turns words into keys. It is not safe for concurrent use, as a caser is not.
type folder struct{ caser cases.Caser }

func newFolder() folder { return folder{caser: cases.Fold()} }

// keys of a word: case-folded, and the same without diacritics. Text typed without Polish letters meets the lexicon
// by the second.
func (f folder) keys(word string) (exact, plain string) {
	if isASCII(word) {
		lower := strings.ToLower(word)
		return lower, lower
	}
	exact = norm.NFKC.String(f.caser.String(word))
	return exact, withoutDiacritics(exact)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// withoutDiacritics drops combining marks after decomposition. The stroke of l is part of the letter in Unicode and
// has no decomposition.
func withoutDiacritics(s string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(s) {
		switch {
		case unicode.Is(unicode.M, r):
		case r == 'ł' || r == 'Ł':
			b.WriteByte('l')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// confusable are the scripts with letters that look like Latin ones. Scripts that are written together with Latin as
// a matter of course (Han, Kana, Hangul) are not among them, as in the highly restrictive profile of UTS #39.
var confusable = []*unicode.RangeTable{
	unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Georgian,
	unicode.Lisu, unicode.Deseret, unicode.Glagolitic,
}

// mixedScript says that a word draws letters from more than one of the confusable scripts, so that what it looks like
// is not what it is. A short word with the Greek letter of a unit ("50μs", "kΩ") is a unit.
func mixedScript(word string) bool {
	if isASCII(word) {
		return false
	}
	seen, letters, unit := -1, 0, false
	mixed := false
	for _, r := range word {
		if !unicode.IsLetter(r) {
			continue
		}
		letters++
		unit = unit || r == 'μ' || r == 'Ω'
		for script, table := range confusable {
			if unicode.Is(table, r) {
				mixed = mixed || (seen >= 0 && seen != script)
				seen = script
				break
			}
		}
	}
	return mixed && (!unit || letters > 3)
}
