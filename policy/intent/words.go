package intent

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// negation is the word that signs of negation are read as.
const negation = "not"

// words are what two texts are compared by: case folded, compatibility forms unified, invisible characters and
// punctuation gone. Signs that change what a text says are words of their own: "replicas > 3" is not "replicas < 3",
// "!=" is not "=", "-5" is not "5".
func words(text string) []string {
	visible := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, text)
	// Folding can undo the normal form, so it is restored.
	runes := []rune(norm.NFKC.String(cases.Fold().String(norm.NFKC.String(visible))))
	var found []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			found = append(found, string(word))
			word = word[:0]
		}
	}
	for i, r := range runes {
		switch {
		case inWord(r):
			word = append(word, r)
		case (r == '\'' || r == '’') && len(word) > 0 && inWord(at(runes, i+1)):
			// "don't" is one word.
		default:
			end()
			if sign := signAt(runes, i); sign != "" {
				found = append(found, sign)
			}
		}
	}
	end()
	return found
}

func inWord(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.N) }

// at gives a space beyond the ends.
func at(runes []rune, i int) rune {
	if i < 0 || i >= len(runes) {
		return ' '
	}
	return runes[i]
}

// signAt is the word that the sign at i is read as; empty for punctuation.
func signAt(runes []rune, i int) string {
	before, r, after := at(runes, i-1), runes[i], at(runes, i+1)
	switch {
	case r == '!' && (after == '=' || (inWord(after) && !inWord(before))):
		return negation
	case r == '−' || (r == '-' && unicode.IsNumber(after) && !inWord(before)):
		return "-"
	case strings.ContainsRune("%&*#@", r), unicode.In(r, unicode.Sm, unicode.Sc, unicode.So):
		return string(r)
	default:
		return ""
	}
}
