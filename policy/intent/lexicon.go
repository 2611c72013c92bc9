package intent

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

//go:embed lexicon/*.json
var lexicons embed.FS

// LatestLexicon is the newest version that this binary embeds.
const LatestLexicon = "v1"

// Lexicon says which words do not tell two texts apart. It is immutable and safe for concurrent use.
type Lexicon struct {
	version   string
	articles  map[string]bool
	negations map[string]bool
	// phrases by their first word, longest first.
	phrases map[string][]phrase
}

// phrase is one member of a group of synonyms and what the group is read as.
type phrase struct{ words, canonical []string }

// LoadLexicon reads one embedded version. The error names an unknown version.
func LoadLexicon(version string) (*Lexicon, error) {
	source, err := lexicons.ReadFile("lexicon/" + version + ".json")
	if err != nil {
		return nil, fmt.Errorf("lexicon version %q is not embedded in this binary: %w", version, err)
	}
	lexicon, err := ParseLexicon(source)
	if err != nil {
		return nil, fmt.Errorf("lexicon %s: %w", version, err)
	}
	return lexicon, nil
}

// document is the file format.
type document struct {
	Version   string     `json:"version"`
	Articles  []string   `json:"articles"`
	Negations []string   `json:"negations"`
	Synonyms  [][]string `json:"synonyms"`
}

// ParseLexicon reads a lexicon: its version, articles, words that negate, and groups of synonyms of one or more words.
// A group whose members do not negate equally often is an error, so that no lexicon can make a text and its opposite
// the same (requirement I-2). Every error names the field.
func ParseLexicon(source []byte) (*Lexicon, error) {
	var doc document
	decoder := json.NewDecoder(bytes.NewReader(source))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&doc); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if err := decoder.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("decode: more than one document")
	}
	if doc.Version == "" {
		return nil, errors.New("version: is absent")
	}
	l := &Lexicon{version: doc.Version, phrases: map[string][]phrase{}}
	var err error
	if l.articles, err = wordSet("articles", doc.Articles); err != nil {
		return nil, err
	}
	if l.negations, err = wordSet("negations", doc.Negations); err != nil {
		return nil, err
	}
	for article := range l.articles {
		if l.negations[article] {
			return nil, fmt.Errorf("articles: %q negates, and what negates is never removed", article)
		}
	}
	for i, group := range doc.Synonyms {
		if err := l.addGroup(fmt.Sprintf("synonyms[%d]", i), group); err != nil {
			return nil, err
		}
	}
	for _, phrases := range l.phrases {
		slices.SortFunc(phrases, func(a, b phrase) int { return len(b.words) - len(a.words) })
	}
	return l, nil
}

func wordSet(field string, entries []string) (map[string]bool, error) {
	set := make(map[string]bool, len(entries))
	for i, entry := range entries {
		w := words(entry)
		if len(w) != 1 {
			return nil, fmt.Errorf("%s[%d]: %q is not one word", field, i, entry)
		}
		set[w[0]] = true
	}
	return set, nil
}

func (l *Lexicon) addGroup(field string, group []string) error {
	if len(group) < 2 {
		return fmt.Errorf("%s: needs at least two members", field)
	}
	canonical := words(group[0])
	for i, member := range group {
		w := words(member)
		switch {
		case len(w) == 0:
			return fmt.Errorf("%s[%d]: %q holds no word", field, i, member)
		case slices.ContainsFunc(w, func(word string) bool { return l.articles[word] }):
			return fmt.Errorf("%s[%d]: %q holds an article, and articles are gone before synonyms are looked for", field, i, member)
		case l.countNegations(w) != l.countNegations(canonical):
			return fmt.Errorf("%s[%d]: %q does not negate as often as %q", field, i, member, group[0])
		}
		for _, known := range l.phrases[w[0]] {
			if slices.Equal(known.words, w) {
				return fmt.Errorf("%s[%d]: %q stands twice", field, i, member)
			}
		}
		l.phrases[w[0]] = append(l.phrases[w[0]], phrase{words: w, canonical: canonical})
	}
	return nil
}

func (l *Lexicon) countNegations(w []string) int {
	count := 0
	for _, word := range w {
		if l.negations[word] {
			count++
		}
	}
	return count
}

// Version of the lexicon, to be recorded with what it decided.
func (l *Lexicon) Version() string { return l.version }

// canonical is what a text is compared by: its words in their order, without articles, each synonym replaced by the
// first of its group.
func (l *Lexicon) canonical(text string) string {
	said := words(text)
	kept := make([]string, 0, len(said))
	for i, word := range said {
		// An article stands before a word: in "plan A" the last word is a name.
		if !l.articles[word] || i == len(said)-1 {
			kept = append(kept, word)
		}
	}
	read := make([]string, 0, len(kept))
	for i := 0; i < len(kept); {
		if p := l.phraseAt(kept[i:]); p != nil {
			read = append(read, p.canonical...)
			i += len(p.words)
			continue
		}
		read = append(read, kept[i])
		i++
	}
	return strings.Join(read, " ")
}

// phraseAt is the longest synonym that the words begin with; nil when there is none.
func (l *Lexicon) phraseAt(w []string) *phrase {
	candidates := l.phrases[w[0]]
	for i := range candidates {
		if p := &candidates[i]; len(p.words) <= len(w) && slices.Equal(p.words, w[:len(p.words)]) {
			return p
		}
	}
	return nil
}
