package scope

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Kind says what a limiting word does where it stands.
type Kind string

// Kinds of findings.
const (
	// KindLimit limits the agent's work and turns strict scope on (S-1).
	KindLimit Kind = "Limit"
	// KindContent bounds what the work is about, states a fact, a condition or a note, or asks: it changes nothing.
	KindContent Kind = "Content"
	// KindIdiom is a fixed use that limits nothing ("not only", "read-only").
	KindIdiom Kind = "Idiom"
	// KindBroaden is an explicit end of strict scope. It counts in the user's own message only (S-3).
	KindBroaden Kind = "Broaden"
)

// Words that mix scripts cannot be read for what they look like, so each counts as a limit (S-4: a phrase can only
// tighten). They are found without a lexicon.
const (
	MixedScriptPhrase  = "mixed-script word"
	MixedScriptLexicon = "scripts-v1"
)

// Finding is one limiting or broadening phrase.
type Finding struct {
	Kind Kind
	// Phrase is the lexicon's spelling of what matched, with "…" for words between. It never repeats the text's own words.
	Phrase string
	// Start and End are byte offsets of the text that was given, half-open.
	Start, End int
	// Lexicon is the version of the lexicon that has the phrase.
	Lexicon string
}

// Detector finds the phrases of its lexicons. It is immutable and safe for concurrent use.
type Detector struct {
	vocabulary map[string]int32
	lexicons   []compiled
}

// compiled is one lexicon in numbers.
type compiled struct {
	version    string
	limiters   words
	fillers    words
	phrases    index
	idioms     index
	broadening index
	context    cues
}

// index finds patterns by their first word.
type index struct {
	plain, exact map[int32][]pattern
}

// Compile joins lexicons into a detector. Their order does not matter. The error names version and field.
func Compile(lexicons ...Lexicon) (*Detector, error) {
	d := &Detector{vocabulary: map[string]int32{}}
	c := &compiler{vocabulary: d.vocabulary, folder: newFolder()}
	for _, lexicon := range slices.SortedFunc(slices.Values(lexicons), func(a, b Lexicon) int { return cmp.Compare(a.Version, b.Version) }) {
		if len(lexicon.Version) > MaxVersionBytes || !validVersion.MatchString(lexicon.Version) {
			return nil, fmt.Errorf("version: %q is not a language, \"-v\" and a number, then extensions, in at most %d bytes", lexicon.Version, MaxVersionBytes)
		}
		if n := len(d.lexicons); n > 0 && d.lexicons[n-1].version == lexicon.Version {
			return nil, fmt.Errorf("version: two lexicons are %s", lexicon.Version)
		}
		l, err := c.lexicon(lexicon)
		if err != nil {
			return nil, fmt.Errorf("lexicon %s: %w", lexicon.Version, err)
		}
		d.lexicons = append(d.lexicons, l)
	}
	return d, nil
}

func (c *compiler) lexicon(l Lexicon) (compiled, error) {
	if n := len(l.Phrases) + len(l.Idioms) + len(l.Broadening); n > MaxPatterns {
		return compiled{}, fmt.Errorf("%d patterns, at most %d", n, MaxPatterns)
	}
	c.sets, c.elements, c.size = l.Sets, map[string][][]slot{}, 0
	result := compiled{version: l.Version}
	return result, errors.Join(
		c.field("limiters", l.Limiters, &result.limiters),
		c.field("fillers", l.Fillers, &result.fillers),
		c.index("phrases", l.Phrases, &result.phrases),
		c.index("idioms", l.Idioms, &result.idioms),
		c.index("broadening", l.Broadening, &result.broadening),
		c.cues(l.Context, &result.context),
	)
}

func (c *compiler) field(name string, list []string, into *words) error {
	w, err := c.words(list)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	*into = w
	return nil
}

func (c *compiler) index(name string, sources []string, into *index) error {
	*into = index{plain: map[int32][]pattern{}, exact: map[int32][]pattern{}}
	for _, source := range slices.Sorted(slices.Values(sources)) {
		patterns, err := c.patterns(source)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, p := range patterns {
			into.add(p)
		}
	}
	return nil
}

func (in index) add(p pattern) {
	for _, opening := range p.openings() {
		for word := range opening.words.plain {
			in.plain[word] = append(in.plain[word], p)
		}
		for word := range opening.words.exact {
			in.exact[word] = append(in.exact[word], p)
		}
	}
}

// Detect returns the findings in the order of their places. Its time grows linearly with the text and its memory is a
// small multiple of it; callers bound the size of an instruction.
func (d *Detector) Detect(text string) []Finding {
	letters := normalize(text)
	tokens, questions := tokenize(letters, hide(letters), d.vocabulary)
	var findings []Finding
	for i := range d.lexicons {
		r := reader{lexicon: &d.lexicons[i], tokens: tokens, questions: questions, roles: d.lexicons[i].context.rolesOf(tokens)}
		findings = append(findings, r.read()...)
	}
	for _, k := range tokens {
		if k.mixed {
			findings = append(findings, Finding{Kind: KindLimit, Phrase: MixedScriptPhrase, Start: k.start, End: k.end, Lexicon: MixedScriptLexicon})
		}
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Lexicon, b.Lexicon))
	})
	return findings
}
