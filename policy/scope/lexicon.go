package scope

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed en.yaml pl.yaml
var files embed.FS

// Bounds of a lexicon, its extensions included. They keep the work per word of a text constant. MaxWords counts the words of
// every group and of every different place of a pattern, sets written out.
const (
	MaxPatterns     = 2000
	MaxWords        = 50000
	MaxPatternSlots = 16
	MaxVersionBytes = 63
)

// Lexicon is the language data of the detector. It is data so that a policy can add a language or a house's own
// phrases; every lexicon judges its own words only, so another lexicon never takes a finding away.
type Lexicon struct {
	// Version is recorded with every finding: language, "-v" and a number, and for an extended lexicon "+" and the name of
	// each extension ("en-v1+acme").
	Version string `yaml:"version"`
	// Limiters are words ("only", "tylko") that limit an instruction unless their context says that they bound its content.
	Limiters []string `yaml:"limiters"`
	// Fillers are limiters that are mostly said without limiting anything ("just"): they count in front of an
	// instruction or between its verb and its object. Omitted: none.
	Fillers []string `yaml:"fillers"`
	// Phrases limit by themselves. A pattern is words separated by spaces: "a|b" is a choice, "x?" may be absent, "<set>" is
	// one of a set, ".." is up to three other words, "$" as the last is the end of the clause, "=x" is x with exactly
	// these diacritics. A pattern stays within a sentence.
	Phrases []string `yaml:"phrases"`
	// Idioms contain the same words and limit nothing ("not only"). The longer match wins; between a phrase and an idiom of
	// the same length the phrase does. An idiom does not reach across a comma.
	Idioms []string `yaml:"idioms"`
	// Broadening are the explicit phrases with which a user ends strict scope. One of the same length as a phrase or an
	// idiom loses to it. Omitted: the language has none, and strict scope ends by other means.
	Broadening []string `yaml:"broadening"`
	// Sets are named groups for the patterns, of words and of sequences of words ("do not").
	Sets map[string][]string `yaml:"sets"`
	// Context are the words that tell what a limiter belongs to.
	Context Context `yaml:"context"`
}

// Context are groups of words by what they say about a limiter near them. All may be empty; then a limiter limits.
type Context struct {
	// Change are instructions to do work ("restart"). A limiter in their clause limits the work.
	Change []string `yaml:"change"`
	// VerbFirst says that the words of Change and Read are nouns too, and count as instructions only where a verb can stand:
	// first in a clause, or after Lead, Address, Auxiliary or Negation.
	VerbFirst bool `yaml:"verbFirst"`
	// Read are instructions to look ("list"). A limiter behind one picks what to look at.
	Read []string `yaml:"read"`
	// Content are words of what the work is about ("egress", "allows").
	Content []string `yaml:"content"`
	// Relative open a clause that describes something ("that", "which").
	Relative []string `yaml:"relative"`
	// Fact are verbs of statements ("is", "requires").
	Fact []string `yaml:"fact"`
	// Subject are the subjects of statements other than the agent ("it", "I").
	Subject []string `yaml:"subject"`
	// Wish are verbs that make a statement an instruction ("I only want").
	Wish []string `yaml:"wish"`
	// Address are words that address the agent ("you", "please").
	Address []string `yaml:"address"`
	// Auxiliary stand between the subject and the limiter ("you should only").
	Auxiliary []string `yaml:"auxiliary"`
	// Lead may stand in front of an instruction ("and", "then").
	Lead []string `yaml:"lead"`
	// Condition make a limiter in front of them a condition ("only if").
	Condition []string `yaml:"condition"`
	// Method make a limiter behind them part of how or of what ("with only two replicas").
	Method []string `yaml:"method"`
	// Preposition open a place or a time.
	Preposition []string `yaml:"preposition"`
	// Quantity are numbers as words: behind a preposition and a limiter they say how many ("to only two replicas").
	Quantity []string `yaml:"quantity"`
	// Article open the object of an instruction.
	Article []string `yaml:"article"`
	// Done are the participles of Change ("only web may be changed").
	Done []string `yaml:"done"`
	// Question open a question that asks for no work.
	Question []string `yaml:"question"`
	// Negation in front of a broadening in its sentence voids it.
	Negation []string `yaml:"negation"`
	// Doubt are words that void a broadening in their sentence: possibility, a later time, the report of what others said.
	Doubt []string `yaml:"doubt"`
	// Past are forms behind a filler that tell of something done ("just left"), and PastEndings the endings of such forms,
	// at most three letters long.
	Past        []string `yaml:"past"`
	PastEndings []string `yaml:"pastEndings"`
}

// Extension are the phrases that a policy adds to a lexicon. It can only tighten: it adds limiting words and phrases,
// never idioms, context or broadening (S-4).
type Extension struct {
	// Name identifies the extension in the version that findings record. Lower-case letters, digits and hyphens.
	Name string
	// Limiters and Phrases as in a Lexicon. Phrases may use the lexicon's sets.
	Limiters, Phrases []string
}

// Builtin returns the embedded lexicons, English and Polish.
func Builtin() ([]Lexicon, error) {
	var lexicons []Lexicon
	for _, name := range []string{"en.yaml", "pl.yaml"} {
		source, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read lexicon %s: %w", name, err)
		}
		lexicon, err := Parse(source)
		if err != nil {
			return nil, fmt.Errorf("lexicon %s: %w", name, err)
		}
		lexicons = append(lexicons, lexicon)
	}
	return lexicons, nil
}

// Parse reads one lexicon. Unknown fields, a second document, a bad version and patterns that do not compile are errors
// that name the field.
func Parse(source []byte) (Lexicon, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(source))
	decoder.KnownFields(true)
	var lexicon Lexicon
	if err := decoder.Decode(&lexicon); err != nil {
		return Lexicon{}, fmt.Errorf("decode: %w", err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Lexicon{}, errors.New("a lexicon is one document")
	}
	if _, err := Compile(lexicon); err != nil {
		return Lexicon{}, err
	}
	return lexicon, nil
}

var (
	validVersion   = regexp.MustCompile(`^[a-z]{2,3}-v[1-9][0-9]*(\+[a-z0-9-]+)*$`)
	validExtension = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
)

// Extend merges extensions into a lexicon. The result is a union and depends neither on their order nor on how phrases are
// split among them, except that the version names every extension, sorted. The error names the field.
func Extend(lexicon Lexicon, extensions ...Extension) (Lexicon, error) {
	names := strings.Split(lexicon.Version, "+")
	limiters, phrases := slices.Clone(lexicon.Limiters), slices.Clone(lexicon.Phrases)
	for i, e := range extensions {
		if !validExtension.MatchString(e.Name) {
			return Lexicon{}, fmt.Errorf("extensions[%d].name: %q is not lower-case letters, digits and hyphens", i, e.Name)
		}
		names = append(names, e.Name)
		limiters = append(limiters, e.Limiters...)
		phrases = append(phrases, e.Phrases...)
	}
	slices.Sort(names[1:])
	lexicon.Version = strings.Join(slices.Compact(names), "+")
	lexicon.Limiters, lexicon.Phrases = union(limiters), union(phrases)
	if _, err := Compile(lexicon); err != nil {
		return Lexicon{}, err
	}
	return lexicon, nil
}

func union(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}
