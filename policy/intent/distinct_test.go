package intent_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy/intent"
)

// Proves I-2: case, punctuation, articles and synonyms make no alternative; word order, negation and signs that change
// what is said do.
func TestParaphrasesAreNoAlternatives(t *testing.T) {
	tests := []struct {
		name, a, b string
		same       bool
	}{
		{"case", "Lower the LATENCY", "lower the latency", true},
		{"case beyond ASCII", "STRASSE", "straße", true},
		{"Polish case", "USUŃ Żółty pod", "usuń żółty pod", true},
		{"composed and decomposed letters", "usun\u0301 pod", "usuń pod", true},
		{"compatibility forms", "ﬁx the ｂug", "fix the bug", true},
		{"invisible characters", "low\u200ber la\u00adtency", "lower latency", true},
		{"punctuation", "lower, latency!", "(lower) latency.", true},
		{"hyphens and code ticks", "roll-out of `web`", "roll out of web", true},
		{"articles", "the cause of a crash", "cause of crash", true},
		{"a letter at the end is a name and no article", "follow plan A", "follow plan", false},
		{"synonyms", "remove the big database", "delete the large DB", true},
		{"Polish synonyms", "usuń pody i logi", "skasuj pody oraz logi", true},
		{"synonyms of several words", "make sure it starts", "ensure it starts", true},
		{"the apostrophe of a contraction", "don't restart", "do not restart", true},
		{"the curly apostrophe", "can’t restart", "cannot restart", true},
		{"a percent sign is a word", "cut 10 %", "cut 10 percent", true},
		{"other words", "lower the latency", "lower the throughput", false},
		{"word order", "move logs to metrics", "move metrics to logs", false},
		{"negation", "do not restart the pod", "do restart the pod", false},
		{"negation by contraction", "don't restart", "do restart", false},
		{"Polish negation", "nie usuwaj poda", "usuwaj poda", false},
		{"a doubled negation", "do not restart", "do not not restart", false},
		{"comparison signs", "replicas > 3", "replicas < 3", false},
		{"unequal is not equal", "phase != Running", "phase = Running", false},
		{"a negated flag", "set !enabled", "set enabled", false},
		{"a negated condition in text is not an exclamation", "stop!now", "stop now", true},
		{"minus", "set the offset to -5", "set the offset to 5", false},
		{"the true minus sign", "set it to −5", "set it to -5", true},
		{"a hyphen inside a name is no minus", "restart web-1", "restart web 1", true},
		{"a decimal point", "raise to 1.5", "raise to 15", false},
		{"a wildcard", "list pods *", "list pods", false},
		{"a quote at the end", "restart the pods'", "restart the pods", true},
	}
	lexicon := latest(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := hypothesis(tt.a), hypothesis(tt.b)
			if got := intent.Same(&a, &b, lexicon); got != tt.same {
				t.Errorf("Same(%q, %q) = %v, want %v", tt.a, tt.b, got, tt.same)
			}
		})
	}
}

// Proves I-2: each of the five fields alone makes two hypotheses alternatives, the other four do not.
func TestFiveFieldsMakeTheDifference(t *testing.T) {
	tests := []struct {
		name   string
		change func(h *intent.Hypothesis)
		same   bool
	}{
		{"goal", func(h *intent.Hypothesis) { h.Goal = "other" }, false},
		{"expected result", func(h *intent.Hypothesis) { h.ExpectedResult = "other" }, false},
		{"audience", func(h *intent.Hypothesis) { h.Audience = "other" }, false},
		{"constraints", func(h *intent.Hypothesis) { h.Constraints = []string{"other"} }, false},
		{"one more constraint", func(h *intent.Hypothesis) { h.Constraints = append(h.Constraints, "other") }, false},
		{"the same constraint twice", func(h *intent.Hypothesis) { h.Constraints = append(h.Constraints, "No restart of Postgres.") }, true},
		{"definition of done", func(h *intent.Hypothesis) { h.DefinitionOfDone = "other" }, false},
		{"missing information", func(h *intent.Hypothesis) { h.MissingInformation = []string{"other"} }, true},
		{"confidence", func(h *intent.Hypothesis) { h.ConfidencePercent = percent(1) }, true},
		{"mistake cost", func(h *intent.Hypothesis) { h.MistakeCost = intent.MistakeCostHigh }, true},
		{"evidence", func(h *intent.Hypothesis) { h.EvidenceReferences = []string{"other"} }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := hypothesis("lower the latency"), hypothesis("lower the latency")
			tt.change(&b)
			if got := intent.Same(&a, &b, latest(t)); got != tt.same {
				t.Errorf("Same = %v, want %v", got, tt.same)
			}
		})
	}
}

func TestTheOrderOfConstraintsMakesNoAlternative(t *testing.T) {
	a, b := hypothesis("lower the latency"), hypothesis("lower the latency")
	a.Constraints, b.Constraints = []string{"no restart", "no new node"}, []string{"no new node", "no restart"}
	if !intent.Same(&a, &b, latest(t)) {
		t.Error("two orders of the same constraints are told apart")
	}
}

// Proves I-2: duplicates collapse, and the set stands while two remain.
func TestDuplicatesCollapse(t *testing.T) {
	h := []intent.Hypothesis{hypothesis("Remove the pod"), hypothesis("restart the pod"), hypothesis("delete a pod!")}
	h[0].ConfidencePercent, h[0].MissingInformation = percent(90), []string{"which pod"}
	h[2].ConfidencePercent, h[2].MistakeCost, h[2].MissingInformation = percent(40), intent.MistakeCostHigh, []string{"which pod", "when"}
	h[2].EvidenceReferences = []string{"log:7"}
	declared := []string{h[0].MissingInformation[0], h[0].EvidenceReferences[0]}

	got, problems := intent.Accept(h, latest(t))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	merged := hypothesis("Remove the pod")
	merged.ConfidencePercent, merged.MistakeCost = percent(40), intent.MistakeCostHigh
	merged.MissingInformation, merged.EvidenceReferences = []string{"which pod", "when"}, []string{"instruction:1", "log:7"}
	want := intent.Set{
		Hypotheses: []intent.Hypothesis{merged, hypothesis("restart the pod")}, Collapsed: []intent.Pair{{Kept: 0, Dropped: 2}}, LexiconVersion: "v1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("set (-want +got):\n%s", diff)
	}
	if *h[0].ConfidencePercent != 90 || h[0].MissingInformation[0] != declared[0] || h[0].EvidenceReferences[0] != declared[1] {
		t.Error("the declared hypotheses were changed")
	}
}

func TestADuplicateNeverLowersTheMistakeCost(t *testing.T) {
	h := []intent.Hypothesis{hypothesis("delete the pod"), hypothesis("remove the pod"), hypothesis("restart the pod")}
	h[0].MistakeCost = intent.MistakeCostMedium
	got, problems := intent.Accept(h, latest(t))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got.Hypotheses[0].MistakeCost != intent.MistakeCostMedium || *got.Hypotheses[0].ConfidencePercent != 70 {
		t.Errorf("merged = %+v, want cost Medium and confidence 70", got.Hypotheses[0])
	}
}

// Proves I-2: when fewer than two remain, the set is rejected and each pair named.
func TestASetOfParaphrasesIsRejected(t *testing.T) {
	_, problems := intent.Accept([]intent.Hypothesis{hypothesis("Fix the bug"), hypothesis("fix bug."), hypothesis("repair the defect")}, latest(t))
	want := []intent.Problem{
		{Field: "hypotheses[1]", Reason: intent.ReasonDuplicate, Message: "says the same as hypotheses[0]; 2 distinct ones are needed"},
		{Field: "hypotheses[2]", Reason: intent.ReasonDuplicate, Message: "says the same as hypotheses[0]; 2 distinct ones are needed"},
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestALexiconThatCouldHideANegationIsRefused(t *testing.T) {
	const head = `{"version":"t","articles":["the"],"negations":["not"],"synonyms":`
	tests := []struct{ name, source, want string }{
		{"a sound one", head + `[["do not","dont not"],["delete","remove"]]}`, ""},
		{"a member that negates", head + `[["stay","not go"]]}`, `synonyms[0][1]: "not go" does not negate as often as "stay"`},
		{"an article that negates", `{"version":"t","articles":["not"],"negations":["not"]}`, `articles: "not" negates, and what negates is never removed`},
		{"an article in a phrase", head + `[["the end","stop"]]}`, `synonyms[0][0]: "the end" holds an article, and articles are gone before synonyms are looked for`},
		{"a phrase in two groups", head + `[["delete","remove"],["drop","remove"]]}`, `synonyms[1][1]: "remove" stands twice`},
		{"a group of one", head + `[["delete"]]}`, `synonyms[0]: needs at least two members`},
		{"a phrase without a word", head + `[["delete","-"]]}`, `synonyms[0][1]: "-" holds no word`},
		{"an article of two words", `{"version":"t","articles":["a b"]}`, `articles[0]: "a b" is not one word`},
		{"a negation of no word", `{"version":"t","negations":[""]}`, `negations[0]: "" is not one word`},
		{"no version", `{"articles":["a"]}`, `version: is absent`},
		{"an unknown field", `{"version":"t","stopwords":[]}`, `decode: json: unknown field "stopwords"`},
		{"two documents", head + `[]} {}`, `decode: more than one document`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if _, err := intent.ParseLexicon([]byte(tt.source)); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnUnknownLexiconIsNamed(t *testing.T) {
	_, err := intent.LoadLexicon("v0")
	if err == nil || !strings.HasPrefix(err.Error(), `lexicon version "v0" is not embedded in this binary`) {
		t.Errorf("error = %v", err)
	}
}

// FuzzDistinct looks for texts that break the comparison: it must not panic, must be symmetric, must not see case,
// punctuation or articles, and must see a negation.
func FuzzDistinct(f *testing.F) {
	for _, pair := range [][2]string{
		{"lower the latency", "Lower latency."}, {"don't restart", "do not restart"}, {"replicas > 3", "replicas < 3"},
		{"a", "the a"}, {"can not", "cannot"}, {"usuń pody i logi", "skasuj pody oraz logi"}, {"x != y", "!x"}, {"-5 %", "−5%"},
		{"\u0130\u0131 ﬁ \u1e9e", "e\u0301\u200d"}, {"\xff\xfe", "'’'"}, {"in order that", "in addition make sure"},
	} {
		f.Add(pair[0], pair[1])
	}
	lexicon := latest(f)
	same := func(a, b string) bool {
		x, y := hypothesis(a), hypothesis(b)
		return intent.Same(&x, &y, lexicon)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if same(a, b) != same(b, a) {
			t.Fatalf("%q and %q are compared in one direction only", a, b)
		}
		set, problems := intent.Accept([]intent.Hypothesis{hypothesis(a), hypothesis(b)}, lexicon)
		if len(problems) > 0 {
			if len(set.Hypotheses) > 0 {
				t.Fatalf("%q and %q are accepted with problems %v", a, b, problems)
			}
		} else if same(a, b) || len(set.Hypotheses) != 2 {
			t.Fatalf("%q and %q are accepted as %d alternatives", a, b, len(set.Hypotheses))
		}
		for _, text := range []string{a, b} {
			if !same(text, text) || !same(text, text+".") || !same(text, " "+text+" ") {
				t.Fatalf("%q is not itself with a full stop or spaces around it", text)
			}
			if !same("restart "+text, "The RESTART "+text) {
				t.Fatalf("case and an article make an alternative of %q", text)
			}
			if same(text, "not "+text) {
				t.Fatalf("%q is the same as its negation", text)
			}
		}
	})
}
