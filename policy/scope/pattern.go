package scope

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// words is a set of words by their numbers: those that match with or without diacritics, and those that match exactly.
// The value is the lexicon's spelling, which findings record.
type words struct {
	plain, exact map[int32]string
}

func (w words) spelling(k token) (string, bool) {
	if s, ok := w.exact[k.exact]; ok {
		return s, true
	}
	s, ok := w.plain[k.plain]
	return s, ok
}

func (w words) has(k token) bool {
	_, ok := w.spelling(k)
	return ok
}

// slot is one place of a pattern. A slot without words is any word.
type slot struct {
	words    words
	any      bool
	optional bool
}

// pattern is a compiled phrase. It begins with a word, and is found by any word that it can begin with.
type pattern struct {
	slots []slot
	// atEnd: the match ends its clause.
	atEnd bool
}

// match returns the tokens that the longest match beginning at the token covers, 0 for none. It runs all alternatives
// side by side, one bit per slot, so its cost is bounded by the slots whatever the text.
func (p pattern) match(tokens []token, at int, across gap) int {
	states, length := p.reach(0), 0
	for n := 0; states != 0; n++ {
		if states>>len(p.slots)&1 == 1 && (!p.atEnd || endsClause(tokens, at+n)) {
			length = n
		}
		if at+n >= len(tokens) || n > 0 && tokens[at+n].gap > across {
			break
		}
		var next uint32
		for s := range p.slots {
			if states>>s&1 == 1 && (p.slots[s].any || p.slots[s].words.has(tokens[at+n])) {
				next |= p.reach(s + 1)
			}
		}
		states = next
	}
	return length
}

// reach is the slot and those behind it that optional slots lead to.
func (p pattern) reach(s int) uint32 {
	states := uint32(1) << s
	for ; s < len(p.slots) && p.slots[s].optional; s++ {
		states |= 1 << (s + 1)
	}
	return states
}

// openings are the slots that a match can begin with.
func (p pattern) openings() []slot {
	for i, s := range p.slots {
		if !s.optional {
			return p.slots[:i+1]
		}
	}
	return p.slots
}

func endsClause(tokens []token, at int) bool { return at >= len(tokens) || tokens[at].gap >= gapComma }

// spell is the matched phrase in the lexicon's words. Words that no slot names are not repeated.
func (p pattern) spell(tokens []token) string {
	var spelled []string
	for _, k := range tokens {
		word := "…"
		for _, s := range p.slots {
			if w, ok := s.words.spelling(k); ok {
				word = w
				break
			}
		}
		if word != "…" || spelled[len(spelled)-1] != "…" {
			spelled = append(spelled, word)
		}
	}
	return strings.Join(spelled, " ")
}

// compiler numbers the words of all lexicons.
type compiler struct {
	vocabulary map[string]int32
	folder     folder
	// Of the lexicon that is compiled now: its sets, the elements compiled so far by their notation, and the number of words in
	// them and in its groups.
	sets     map[string][]string
	elements map[string][][]slot
	size     int
}

func (c *compiler) number(key string) int32 {
	if _, ok := c.vocabulary[key]; !ok {
		c.vocabulary[key] = int32(len(c.vocabulary) + 1)
	}
	return c.vocabulary[key]
}

// words compiles a list of single words.
func (c *compiler) words(list []string) (words, error) {
	w := words{plain: map[int32]string{}, exact: map[int32]string{}}
	if c.size += len(list); c.size > MaxWords {
		return words{}, fmt.Errorf("more than %d words", MaxWords)
	}
	for _, word := range slices.Sorted(slices.Values(list)) {
		spelling, isExact := strings.CutPrefix(word, "=")
		letters := normalize(spelling)
		tokens, _ := tokenize(letters, make([]cover, len(letters)), nil)
		if len(tokens) != 1 || tokens[0].start != 0 || tokens[0].end != len(spelling) {
			return words{}, fmt.Errorf("%q is not one word", word)
		}
		exact, plain := c.folder.keys(key(letters))
		if isExact {
			w.exact[c.number(exact)] = spelling
		} else {
			w.plain[c.number(plain)] = spelling
		}
	}
	return w, nil
}

// key is the word that the tokenizer would read from the letters.
func key(letters []letter) string {
	var b strings.Builder
	for _, l := range letters {
		if !isApostrophe(l.r) {
			b.WriteRune(l.r)
		}
	}
	return b.String()
}

// gapWords is how many words ".." may stand for.
const gapWords = 3

// maxVariants bounds the patterns that choices of several words write one pattern out to.
const maxVariants = 64

// patterns compiles the notation that Lexicon.Phrases documents: one pattern, and one more for every choice of several words.
func (c *compiler) patterns(source string) ([]pattern, error) {
	variants := []pattern{{}}
	for _, element := range strings.Fields(source) {
		if variants[0].atEnd {
			return nil, fmt.Errorf("pattern %q: $ is not last", source)
		}
		choices, err := c.element(element)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", source, err)
		}
		if len(variants)*len(choices) > maxVariants {
			return nil, fmt.Errorf("pattern %q: choices of several words make more than %d patterns", source, maxVariants)
		}
		var longer []pattern
		for _, v := range variants {
			for _, choice := range choices {
				longer = append(longer, pattern{slots: slices.Concat(v.slots, choice), atEnd: element == "$"})
			}
		}
		variants = longer
	}
	for _, v := range variants {
		if err := v.validate(); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", source, err)
		}
	}
	return variants, nil
}

func (p pattern) validate() error {
	openings := p.openings()
	switch {
	case len(openings) == 0 || openings[len(openings)-1].optional:
		return errors.New("every element may be absent")
	case slices.ContainsFunc(openings, func(s slot) bool { return s.any }) || p.slots[len(p.slots)-1].any:
		return errors.New("it begins or ends with a gap")
	case len(p.slots) > MaxPatternSlots:
		return fmt.Errorf("%d places, at most %d (a gap is %d)", len(p.slots), MaxPatternSlots, gapWords)
	}
	return nil
}

// element compiles one element to the slots of each of its choices.
func (c *compiler) element(element string) ([][]slot, error) {
	switch element {
	case "$":
		return [][]slot{nil}, nil
	case "..":
		return [][]slot{slices.Repeat([]slot{{any: true, optional: true}}, gapWords)}, nil
	}
	if choices, ok := c.elements[element]; ok {
		return choices, nil
	}
	list, optional, err := c.choices(element)
	if err != nil {
		return nil, err
	}
	var single []string
	var choices [][]slot
	for _, choice := range list {
		sequence := strings.Fields(choice)
		if len(sequence) < 2 {
			single = append(single, choice)
			continue
		}
		if optional {
			return nil, fmt.Errorf("%s: a choice of several words may not be absent", element)
		}
		slots := make([]slot, len(sequence))
		for i, word := range sequence {
			if slots[i].words, err = c.words([]string{word}); err != nil {
				return nil, err
			}
		}
		choices = append(choices, slots)
	}
	if len(single) > 0 {
		w, err := c.words(single)
		if err != nil {
			return nil, err
		}
		choices = append(choices, []slot{{words: w, optional: optional}})
	}
	c.elements[element] = choices
	return choices, nil
}

// choices of an element, its sets written out.
func (c *compiler) choices(element string) (list []string, optional bool, err error) {
	element, optional = strings.CutSuffix(element, "?")
	for choice := range strings.SplitSeq(element, "|") {
		name, isSet := strings.CutPrefix(choice, "<")
		if !isSet {
			list = append(list, choice)
			continue
		}
		set, known := c.sets[strings.TrimSuffix(name, ">")]
		if !known {
			return nil, false, fmt.Errorf("%s is not one of the lexicon's sets", choice)
		}
		list = append(list, set...)
	}
	return list, optional, nil
}
