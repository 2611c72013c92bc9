package scope_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/internal/testing/shares"
	"stepbeyond.dev/stepbeyond/policy/scope"
)

// Pieces of messages: instructions of both languages, broadenings, and the words and marks that change what is read.
var (
	broadenings = lines(broadening)
	marks       = []string{
		"only", "just", "tylko", "nie", "not", "the rest", "you", "if", "want", "restart", "web", "optional ", "оnly", "o\u200bnly", "ｏｎｌｙ", "wył\u0061\u0328cznie",
		"`", "```", "\n```\n", "\"", "'", "“", "”", "> ", "\n> ", "(", ")", "?", "!", ".", ",", ":", "-", "--", "\n", "\r\n", "\n\n", "\n- ", "\u0301", "\u00ad", "\xff", "_", "/",
	}
)

const broadening = `
You may now change anything else.
Broaden the scope.
Możesz zmieniać wszystko.
feel free to improve anything
Rozszerz zakres.
lift the strict scope
you can change anything
strict scope is over
koniec ścisłego zakresu
suggestions are welcome
`

func drawText(t *rapid.T, label string) string {
	var b strings.Builder
	for range rapid.IntRange(0, 4).Draw(t, label) {
		pieces := rapid.SampledFrom([][]string{lines(limiting), lines(notLimiting), lines(notLimiting), broadenings, broadenings, marks}).Draw(t, label+" pieces")
		b.WriteString(rapid.SampledFrom(pieces).Draw(t, label+" piece"))
		b.WriteString(rapid.SampledFrom([]string{" ", "\n", ". ", ". ", ""}).Draw(t, label+" join"))
	}
	return b.String()
}

// reading is one message that was read in some state, and the state after it.
type reading struct {
	source      scope.Source
	findings    []scope.Finding
	state, next scope.State
}

func (r *reading) has(kind scope.Kind) bool {
	return slices.ContainsFunc(r.findings, func(f scope.Finding) bool { return f.Kind == kind })
}

func drawReading(t *rapid.T, d *scope.Detector) reading {
	r := reading{
		findings: d.Detect(drawText(t, "text")),
		source:   rapid.SampledFrom([]scope.Source{scope.SourceUser, scope.SourceUser, scope.SourceUser, scope.SourceUser, scope.SourceUser, scope.SourceTool, scope.SourceFile, scope.SourceModel, scope.SourceUnknown}).Draw(t, "source"),
		state:    scope.State{Active: rapid.SampledFrom([]bool{true, true, false}).Draw(t, "active")},
	}
	r.next = scope.Next(r.state, scope.Message{Source: r.source, Findings: r.findings})
	return r
}

// Proves S-4: reading a message never turns strict scope off unless the user broadens it, and text from a tool, a file or the model
// changes nothing at all. Proves S-3.
func TestReadingNeverTurnsStrictScopeOff(t *testing.T) {
	d := detector(t)
	rapid.Check(t, func(t *rapid.T) {
		r := drawReading(t, d)
		switch {
		case r.source != scope.SourceUser:
			if r.next != r.state {
				t.Fatalf("text of source %d changed %+v to %+v", r.source, r.state, r.next)
			}
		case r.has(scope.KindLimit):
			if !r.next.Active {
				t.Fatal("a limit of the user left strict scope off")
			}
		case r.state.Active && !r.next.Active:
			if !r.has(scope.KindBroaden) {
				t.Fatalf("strict scope went off without a broadening: %+v", r.findings)
			}
		}
	})
}

func TestReadingsReachEveryFindingAndChange(t *testing.T) {
	d := detector(t)
	labels := rapid.Custom(func(t *rapid.T) []string {
		r := drawReading(t, d)
		labels := []string{fmt.Sprintf("user %t", r.source == scope.SourceUser), fmt.Sprintf("strict %t to %t", r.state.Active, r.next.Active)}
		for _, kind := range []scope.Kind{scope.KindLimit, scope.KindContent, scope.KindIdiom, scope.KindBroaden} {
			labels = append(labels, fmt.Sprintf("%s %t", kind, r.has(kind)))
		}
		return labels
	})
	shares.Check(t, labels, 2000, "Limit true", "Content true", "Idiom true", "Broaden true", "user true", "user false",
		"strict true to false", "strict false to true", "strict true to true", "strict false to false")
}

// Proves S-4: what a user adds later never takes an earlier finding away.
func TestAParagraphThatIsAddedKeepsEveryEarlierFinding(t *testing.T) {
	d := detector(t)
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t, "text")
		want := d.Detect(text)
		got := d.Detect(text + "\n\n" + drawText(t, "added"))
		if len(got) < len(want) || !slices.Equal(want, got[:len(want)]) {
			t.Fatalf("findings of %q (-before +after):\n%s", text, cmp.Diff(want, got))
		}
	})
}

// Proves S-4: a policy's phrases and languages can only tighten.
func TestExtensionsAndLanguagesOnlyTighten(t *testing.T) {
	base := detector(t)
	builtin, err := scope.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"only", "not", "nothing", "else", "the", "rest", "web", "you", "can", "change", "anything", "wiecej", "nic", "restart", "if"}
	rapid.Check(t, func(t *rapid.T) {
		extension := scope.Extension{Name: "acme", Limiters: rapid.SliceOfN(rapid.SampledFrom(words), 0, 2).Draw(t, "limiters")}
		for range rapid.IntRange(0, 3).Draw(t, "phrases") {
			extension.Phrases = append(extension.Phrases, strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 4).Draw(t, "phrase"), " "))
		}
		var lexicons []scope.Lexicon
		for _, l := range builtin {
			extended, err := scope.Extend(l, extension)
			if err != nil {
				t.Fatal(err)
			}
			lexicons = append(lexicons, extended)
		}
		other := scope.Lexicon{Version: "xx-v1", Limiters: extension.Limiters, Idioms: []string{"only", "nothing else", "tylko"}}
		d, err := scope.Compile(append(lexicons, other)...)
		if err != nil {
			t.Fatal(err)
		}
		text := drawText(t, "text")
		for _, state := range []scope.State{{}, {Active: true}} {
			before := scope.Next(state, scope.Message{Source: scope.SourceUser, Findings: base.Detect(text)})
			after := scope.Next(state, scope.Message{Source: scope.SourceUser, Findings: d.Detect(text)})
			if before.Active && !after.Active {
				t.Fatalf("%q is strict without %+v and not with it", text, extension)
			}
		}
	})
}

func TestFindingsDependNeitherOnTheOrderOfLexiconsNorOnTheNormalForm(t *testing.T) {
	builtin, err := scope.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	forward, err := scope.Compile(builtin[0], builtin[1])
	if err != nil {
		t.Fatal(err)
	}
	backward, err := scope.Compile(builtin[1], builtin[0])
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t, "text")
		if diff := cmp.Diff(forward.Detect(text), backward.Detect(text)); diff != "" {
			t.Fatalf("order of lexicons (-one +other):\n%s", diff)
		}
		checkFindings(t, forward, text)
	})
}

// checkFindings: places lie inside the text on the borders of its characters, and the compatibility form of the text reads the same.
func checkFindings(t interface{ Fatalf(string, ...any) }, d *scope.Detector, text string) {
	findings := d.Detect(text)
	for _, f := range findings {
		if f.Start < 0 || f.Start >= f.End || f.End > len(text) || !onBorder(text, f.Start) || !onBorder(text, f.End) {
			t.Fatalf("%q has a finding at %d to %d of %d bytes", text, f.Start, f.End, len(text))
		}
	}
	normal := d.Detect(norm.NFKC.String(text))
	strip := func(all []scope.Finding) []scope.Finding {
		var stripped []scope.Finding
		for _, f := range all {
			f.Start, f.End = 0, 0
			stripped = append(stripped, f)
		}
		return stripped
	}
	if diff := cmp.Diff(strip(findings), strip(normal)); diff != "" {
		t.Fatalf("%q in its compatibility form (-text +form):\n%s", text, diff)
	}
}

// onBorder: no character of several bytes lies across the place.
func onBorder(text string, at int) bool {
	for from := max(0, at-utf8.UTFMax+1); from < at; from++ {
		if _, size := utf8.DecodeRuneInString(text[from:]); from+size > at && size > 1 {
			return false
		}
	}
	return true
}
