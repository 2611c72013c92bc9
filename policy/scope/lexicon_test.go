package scope_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy/scope"
)

func TestALexiconThatDoesNotCompileIsRefusedByItsField(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"no document":           {"", "decode: EOF"},
		"an unknown field":      {"version: de-v1\nphrase: [x]", "field phrase not found"},
		"two documents":         {"version: de-v1\n---\nversion: de-v2", "a lexicon is one document"},
		"a bad version":         {"version: deutsch", `version: "deutsch" is not a language`},
		"a long version":        {"version: de-v1+" + strings.Repeat("a", 80), "in at most 63 bytes"},
		"two words in a group":  {"version: de-v1\nlimiters: [nur das]", `lexicon de-v1: limiters: "nur das" is not one word`},
		"a sign in a group":     {"version: de-v1\nfillers: ['x!']", `fillers: "x!" is not one word`},
		"a group of context":    {"version: de-v1\ncontext: {read: ['']}", `context.read: "" is not one word`},
		"an empty pattern":      {"version: de-v1\nphrases: ['']", "phrases: pattern \"\": every element may be absent"},
		"an optional pattern":   {"version: de-v1\nidioms: ['a? b?']", "idioms: pattern \"a? b?\": every element may be absent"},
		"a leading gap":         {"version: de-v1\nbroadening: ['.. a']", "it begins or ends with a gap"},
		"a gap after options":   {"version: de-v1\nbroadening: ['a? .. b']", "it begins or ends with a gap"},
		"a trailing gap":        {"version: de-v1\nphrases: ['a ..']", "it begins or ends with a gap"},
		"an end in the middle":  {"version: de-v1\nphrases: ['a $ b']", "$ is not last"},
		"absent words":          {"version: de-v1\nsets: {no: [nicht mehr]}\nphrases: ['<no>? a']", "<no>?: a choice of several words may not be absent"},
		"bad words of a set":    {"version: de-v1\nsets: {no: ['nicht !']}\nphrases: ['<no> a']", `"!" is not one word`},
		"many choices":          {"version: de-v1\nsets: {x: [a b, b c, c d, d e, e f, f g, g h, h i, i j]}\nphrases: ['<x> <x>']", "more than 64 patterns"},
		"an unknown set":        {"version: de-v1\nphrases: ['<rest>']", "<rest> is not one of the lexicon's sets"},
		"a bad word":            {"version: de-v1\nphrases: ['a b,c']", `"b,c" is not one word`},
		"a long pattern":        {"version: de-v1\nphrases: ['" + strings.Repeat("a ", 17) + "']", "17 places, at most 16"},
		"many patterns":         {"version: de-v1\nphrases: [" + strings.Repeat("a,", 2001) + "]", "2001 patterns, at most 2000"},
		"many words":            {"version: de-v1\nlimiters: [" + strings.Repeat("a,", 50001) + "]", "more than 50000 words"},
		"an ending of no bytes": {"version: de-v1\ncontext: {pastEndings: ['']}", "context.pastEndings: an ending has one to three bytes"},
	} {
		if _, err := scope.Parse([]byte(c.source)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestTwoLexiconsOfOneVersionAreRefused(t *testing.T) {
	lexicon := scope.Lexicon{Version: "de-v1", Limiters: []string{"nur"}}
	if _, err := scope.Compile(lexicon, lexicon); err == nil || !strings.Contains(err.Error(), "two lexicons are de-v1") {
		t.Errorf("two lexicons of one version: %v", err)
	}
}

// Proves S-1: another language is data.
func TestAnotherLanguageIsALexicon(t *testing.T) {
	german, err := scope.Parse([]byte("version: de-v1\nlimiters: [nur, lediglich]\nphrases: ['sonst nichts', 'nichts =ändern', '=nür das']\ncontext: {read: [zeige]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	builtin, err := scope.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	d, err := scope.Compile(append(builtin, german)...)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]scope.Kind{
		"Starte nur web neu":   {scope.KindLimit},
		"Zeige nur die Pods":   {scope.KindContent},
		"Web, sonst nichts.":   {scope.KindLimit},
		"nichts ändern":        {scope.KindLimit},
		"nichts andern":        nil,
		"nür das":              {scope.KindLimit},
		"only web, nic innego": {scope.KindLimit, scope.KindLimit},
	} {
		if diff := cmp.Diff(want, kinds(d.Detect(text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// Proves S-1: a policy adds phrases of its own, and findings name the extended lexicon.
func TestAPolicyExtendsALexicon(t *testing.T) {
	d := detector(t, scope.Extension{Name: "acme", Limiters: []string{"zilch"}, Phrases: []string{"by the book", "freeze the? <rest>"}})
	for text, want := range map[string]string{"Do it by the book.": "by the book", "freeze everything": "", "Freeze the rest": "freeze the rest", "zilch": "zilch"} {
		var phrase string
		for _, f := range d.Detect(text) {
			if phrase = f.Phrase; f.Lexicon != "en-v1+acme" || f.Kind != scope.KindLimit {
				t.Errorf("%q has the finding %+v", text, f)
			}
		}
		if phrase != want {
			t.Errorf("%q has the phrase %q, want %q", text, phrase, want)
		}
	}
}

func TestExtensionsAreAUnion(t *testing.T) {
	builtin, err := scope.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(builtin[0])
	a := scope.Extension{Name: "acme", Phrases: []string{"by the book", "to the letter"}}
	b := scope.Extension{Name: "beta", Limiters: []string{"zilch"}, Phrases: []string{"by the book"}}
	one, err := scope.Extend(builtin[0], a, b)
	if err != nil {
		t.Fatal(err)
	}
	step, err := scope.Extend(builtin[0], b)
	if err != nil {
		t.Fatal(err)
	}
	other, err := scope.Extend(step, a, a)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, other); diff != "" {
		t.Errorf("order of extensions (-one +other):\n%s", diff)
	}
	if one.Version != "en-v1+acme+beta" || !slices.Contains(one.Limiters, "zilch") {
		t.Errorf("version %q, limiters %v", one.Version, one.Limiters)
	}
	if fmt.Sprint(builtin[0]) != before {
		t.Error("extending changed the lexicon that was extended")
	}
}

func TestABadExtensionIsRefused(t *testing.T) {
	for name, e := range map[string]scope.Extension{
		`extensions[0].name: "Acme Inc"`: {Name: "Acme Inc"},
		`phrases: pattern "<nowhere>"`:   {Name: "acme", Phrases: []string{"<nowhere>"}},
	} {
		builtin, err := scope.Builtin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := scope.Extend(builtin[0], e); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("extension %+v: %v, want %q", e, err, name)
		}
	}
}
