package scope

import (
	"strings"
	"unicode"
)

// hideIdentifiers hides URLs, paths, flags, assignments, addresses, file and host names and snake_case names: words
// between spaces that carry a sign which prose does not have inside a word. Emphasis around a word ("_only_",
// "**only**") is not such a sign.
func hideIdentifiers(text []letter, hidden []cover) {
	for from := 0; from < len(text); {
		if hidden[from] != shown || unicode.IsSpace(text[from].r) {
			from++
			continue
		}
		to := from
		for to < len(text) && hidden[to] == shown && !unicode.IsSpace(text[to].r) {
			to++
		}
		if isIdentifier(text[from:to]) {
			mark(hidden, trim(text, span{from, to}, "([{\"'“„*", ".,;:!?)]}>\"'”’*"), hiddenInline)
		}
		from = to
	}
}

func trim(text []letter, s span, before, after string) span {
	for s.from < s.to && strings.ContainsRune(before, text[s.from].r) {
		s.from++
	}
	for s.from < s.to && strings.ContainsRune(after, text[s.to-1].r) {
		s.to--
	}
	return s
}

func isIdentifier(chunk []letter) bool {
	s := trim(chunk, span{0, len(chunk)}, "([{\"'“„*", ".,;:!?)]}>\"'”’*")
	core := chunk[s.from:s.to]
	if opensIdentifier(core) {
		return true
	}
	s = trim(core, span{0, len(core)}, "_~#", "_~%")
	core = core[s.from:s.to]
	for i, l := range core {
		switch l.r {
		case '/', '\\', '_', '=', '@', '#', '$', '%', '&', '<', '>', '|', '{', '}', '^', '[':
			return true
		case '.':
			if wordAt(core, i-1) && wordAt(core, i+1) && !unicode.IsUpper(core[i+1].r) {
				return true
			}
		case ':':
			if i+1 < len(core) && core[i+1].r == ':' {
				return true
			}
		}
	}
	return false
}

// opensIdentifier: a flag, a path, a variable, a mention or a placeholder is known by its first sign.
func opensIdentifier(core []letter) bool {
	if len(core) < 2 {
		return false
	}
	switch core[0].r {
	case '/', '\\', '$', '@', '<':
		return true
	case '-':
		return core[1].r == '-' && wordAt(core, 2) || unicode.IsLetter(core[1].r)
	case '~', '.':
		return strings.ContainsRune("/.", core[1].r) && (wordAt(core, 2) || len(core) > 2 && core[2].r == '/') || core[0].r == '.' && wordAt(core, 1)
	}
	return false
}
