package intent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy/intent"
)

func percent(p int32) *int32 { return &p }

func latest(t testing.TB) *intent.Lexicon {
	t.Helper()
	lexicon, err := intent.LoadLexicon(intent.LatestLexicon)
	if err != nil {
		t.Fatal(err)
	}
	return lexicon
}

// hypothesis is complete.
func hypothesis(goal string) intent.Hypothesis {
	return intent.Hypothesis{
		Goal: goal, ExpectedResult: "p99 below 200 ms", Audience: "the on-call engineer", Constraints: []string{"no restart of postgres"},
		DefinitionOfDone: "the dashboard is green for an hour", MissingInformation: []string{}, ConfidencePercent: percent(70),
		MistakeCost: intent.MistakeCostLow, EvidenceReferences: []string{"instruction:1"},
	}
}

func three() []intent.Hypothesis {
	return []intent.Hypothesis{hypothesis("lower the latency of checkout"), hypothesis("find the cause of the latency"), hypothesis("raise the latency budget")}
}

func fields(problems []intent.Problem) []string {
	var paths []string
	for _, p := range problems {
		paths = append(paths, p.Field+" "+string(p.Reason))
	}
	return paths
}

// Proves I-1: two to four hypotheses with every field there; anything else is rejected with the field's path.
func TestASetOfHypothesesIsComplete(t *testing.T) {
	tests := []struct {
		name   string
		change func(h []intent.Hypothesis) []intent.Hypothesis
		want   []string
	}{
		{"three complete ones are accepted", func(h []intent.Hypothesis) []intent.Hypothesis { return h }, nil},
		{"two are enough", func(h []intent.Hypothesis) []intent.Hypothesis { return h[:2] }, nil},
		{"four are the most", func(h []intent.Hypothesis) []intent.Hypothesis { return append(h, hypothesis("scale out")) }, nil},
		{"none is too few", func([]intent.Hypothesis) []intent.Hypothesis { return nil }, []string{"hypotheses TooFew"}},
		{"one is too few", func(h []intent.Hypothesis) []intent.Hypothesis { return h[:1] }, []string{"hypotheses TooFew"}},
		{"five are too many, even when two say the same", func(h []intent.Hypothesis) []intent.Hypothesis {
			return append(h, hypothesis("scale out"), hypothesis("scale out"))
		}, []string{"hypotheses TooMany"}},
		{"every absent field is named", func(h []intent.Hypothesis) []intent.Hypothesis {
			h[1] = intent.Hypothesis{}
			return h
		}, []string{
			"hypotheses[1].goal Absent", "hypotheses[1].expectedResult Absent", "hypotheses[1].audience Absent", "hypotheses[1].constraints Absent",
			"hypotheses[1].definitionOfDone Absent", "hypotheses[1].missingInformation Absent", "hypotheses[1].confidencePercent Absent",
			"hypotheses[1].mistakeCost Absent", "hypotheses[1].evidenceReferences Absent",
		}},
		{"a text without a word is absent", func(h []intent.Hypothesis) []intent.Hypothesis {
			h[0].Audience, h[2].Constraints = " ...\u200b ", []string{"no restart", "--"}
			return h
		}, []string{"hypotheses[0].audience Absent", "hypotheses[2].constraints[1] Absent"}},
		{"an empty list says that there are none", func(h []intent.Hypothesis) []intent.Hypothesis {
			h[0].Constraints, h[0].EvidenceReferences = []string{}, []string{}
			return h
		}, nil},
		{"no confidence at all is a confidence", func(h []intent.Hypothesis) []intent.Hypothesis {
			h[0].ConfidencePercent = percent(0)
			return h
		}, nil},
		{"confidence is a percentage", func(h []intent.Hypothesis) []intent.Hypothesis {
			h[0].ConfidencePercent, h[1].ConfidencePercent, h[2].ConfidencePercent = percent(-1), percent(101), percent(100)
			return h
		}, []string{"hypotheses[0].confidencePercent OutOfRange", "hypotheses[1].confidencePercent OutOfRange"}},
		{"mistake cost is one of three words", func(h []intent.Hypothesis) []intent.Hypothesis {
			h[0].MistakeCost = "low"
			return h
		}, []string{"hypotheses[0].mistakeCost UnknownValue"}},
		{"texts and lists are bounded", func(h []intent.Hypothesis) []intent.Hypothesis {
			h[0].Goal = strings.Repeat("a", intent.MaxTextBytes+1)
			h[1].Goal = strings.Repeat("a", intent.MaxTextBytes)
			h[1].EvidenceReferences = slices.Repeat([]string{"e"}, intent.MaxItems+1)
			h[2].EvidenceReferences = slices.Repeat([]string{"e"}, intent.MaxItems)
			return h
		}, []string{"hypotheses[0].goal TooLong", "hypotheses[1].evidenceReferences TooMany"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set, problems := intent.Accept(tt.change(three()), latest(t))
			if diff := cmp.Diff(tt.want, fields(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if accepted := len(set.Hypotheses) > 0; accepted != (len(tt.want) == 0) {
				t.Errorf("accepted = %v with problems %v", accepted, problems)
			}
		})
	}
}

func TestAProblemNamesItsFieldAndEchoesNoText(t *testing.T) {
	h := three()
	h[1].MistakeCost = "hunter2"
	_, problems := intent.Accept(h, latest(t))
	if len(problems) != 1 {
		t.Fatalf("problems = %v, want one", problems)
	}
	if diff := cmp.Diff("hypotheses[1].mistakeCost: must be Low, Medium or High", problems[0].Error()); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}
