package tool

import (
	"strings"
	"unicode"
)

// maxWords bounds the words of one text; what comes later is not looked at, and a name that is longer is no pure read.
const maxWords = 64

// ownName is the tool's own name without its server: what follows the last "/", ":" or "__".
func ownName(name string) string {
	if i := strings.LastIndex(name, "__"); i >= 0 {
		name = name[i+2:]
	}
	return name[strings.LastIndexAny(name, "/:")+1:]
}

// words splits camelCase, snake_case, kebab-case and plain text into lower-case words. Digits stand alone.
func words(text string) []string {
	var found []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			found = append(found, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	runes := []rune(text)
	for i, r := range runes {
		if len(found) > maxWords {
			break
		}
		switch {
		case unicode.IsLetter(r) || unicode.IsMark(r):
			if unicode.IsUpper(r) && i > 0 {
				lower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
				// A capital begins a word behind a small letter ("sendMail") and before one in a row of capitals ("HTTPGet").
				if unicode.IsLower(runes[i-1]) || lower && unicode.IsUpper(runes[i-1]) {
					flush()
				}
			}
			word = append(word, r)
		default:
			flush()
		}
	}
	flush()
	return found
}

// firstSentence are the words of a description up to its first full stop or line break. What follows tells how to use the
// tool and speaks of other tools.
func firstSentence(description string) []string {
	text := strings.TrimSpace(description)
	for _, end := range []string{"\n", ". "} {
		text, _, _ = strings.Cut(text, end)
	}
	return words(text)
}

// set is a group of words in their base form.
type set map[string]bool

func setOf(text string) set {
	s := set{}
	for _, word := range strings.Fields(text) {
		s[word] = true
	}
	return s
}

// has knows the word itself, its third person and its plural.
func (s set) has(word string) bool {
	if s[word] {
		return true
	}
	base, ok := strings.CutSuffix(word, "s")
	if !ok {
		return false
	}
	if s[base] {
		return true
	}
	if base, ok = strings.CutSuffix(base, "e"); !ok {
		return false
	}
	if stem, ok := strings.CutSuffix(base, "i"); ok {
		return s[stem+"y"]
	}
	for _, hiss := range []string{"s", "x", "z", "o", "ch", "sh"} {
		if strings.HasSuffix(base, hiss) {
			return s[base]
		}
	}
	return false
}
