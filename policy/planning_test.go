package policy_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/initiative"
	"stepbeyond.dev/stepbeyond/policy/intent"
	"stepbeyond.dev/stepbeyond/policy/phase"
	"stepbeyond.dev/stepbeyond/policy/verification"
)

// planned is what was planned about one operation, in good order or not.
type planned struct {
	phases     phase.Record
	impossible error // the last report that was none
	problems   []intent.Problem
	outcome    intent.Outcome
	ranking    initiative.Ranking
	verified   verification.Assessment
}

func drawHypotheses(t *rapid.T) []intent.Hypothesis {
	var list []intent.Hypothesis
	for i := range rapid.IntRange(0, 4).Draw(t, "hypotheses") {
		confidence := rapid.Int32Range(0, 100).Draw(t, "confidence")
		list = append(list, intent.Hypothesis{
			Goal: fmt.Sprintf("goal %d", i), ExpectedResult: "a result", Audience: "the team", Constraints: []string{}, DefinitionOfDone: "it is done",
			MissingInformation: []string{}, ConfidencePercent: &confidence, EvidenceReferences: []string{},
			MistakeCost: rapid.SampledFrom([]intent.MistakeCost{intent.MistakeCostLow, intent.MistakeCostLow, intent.MistakeCostMedium, intent.MistakeCostHigh}).Draw(t, "mistake cost"),
		})
	}
	return list
}

// drawPlanned plans the operation that was answered so.
func drawPlanned(t *rapid.T, op *policy.Operation, d policy.Decision) planned {
	var p planned
	for range rapid.IntRange(1, 6).Draw(t, "reports") {
		next, err := p.phases.Report(rapid.SampledFrom(append(phase.All(), p.phases.Allowed()...)).Draw(t, "phase"), "drawn", now)
		if err != nil {
			p.impossible = err
		}
		p.phases = next
	}
	lexicon, err := intent.LoadLexicon(intent.LatestLexicon)
	if err != nil {
		t.Fatal(err)
	}
	_, p.problems = intent.Accept(drawHypotheses(t), lexicon)
	band := rapid.SampledFrom([]intent.Band{intent.BandLow, intent.BandMedium, intent.BandHigh}).Draw(t, "band")
	cost := rapid.SampledFrom([]intent.MistakeCost{intent.MistakeCostLow, intent.MistakeCostHigh}).Draw(t, "cost")
	p.outcome = intent.Decide(intent.SituationOf(band, cost, &op.Facts))
	p.ranking, err = initiative.Rank(initiative.Settings{
		Mode: rapid.SampledFrom([]initiative.Mode{initiative.ModeStrict, initiative.ModeExploratory}).Draw(t, "mode"), EpsilonPercent: 1,
		Thresholds: map[initiative.Mode]initiative.Threshold{initiative.ModeExploratory: {MinScorePercent: 1, MaxOptionalActions: 1}},
	}, []initiative.Candidate{{Name: "op", Decision: d, Factors: initiative.Factors{
		ExpectedValue: rapid.Float64Range(0, 1).Draw(t, "value"), Confidence: 1, Reversibility: 1, Verifiability: 1, HistoricalAccuracy: 1, Cost: 1,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	var record verification.Record
	if rapid.Bool().Draw(t, "was verified") {
		record.Checks = []verification.Check{{
			Method: verification.MethodDirect, Executed: "a check", Evidence: []string{"log:1"}, Result: verification.ResultPassed, Scope: []string{"web"},
		}}
	}
	p.verified = verification.Assess(&verification.Claim{ID: "c", Text: "it works", Scope: []string{"web"}}, &record)
	return p
}

// Proves B-6, and C-3 for mode, score and confidence: phase, impossible reports, missing or rejected hypotheses, an open
// question, the ranking and the status of verification change nothing in a decision, and a disclosure for which nobody
// wrote a text is disclosed all the same.
func TestNoPlanningStateChangesADecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuestion(t)
		say := func(why string) policy.Decision {
			for fact := range q.op.Facts {
				q.op.Facts[fact].Why = why
			}
			return q.decide()
		}
		want := say("because")
		drawPlanned(t, &q.op, want)
		if diff := cmp.Diff(want, q.decide()); diff != "" {
			t.Fatalf("planning changed the decision (-before +after):\n%s", diff)
		}
		silent := say("")
		if silent.Verdict != want.Verdict || silent.Reason != want.Reason || silent.Class != want.Class {
			t.Fatalf("without texts %s %s, with them %s %s", silent.Verdict, silent.Reason, want.Verdict, want.Reason)
		}
		if silent.Reason == policy.ReasonDisclosed && len(silent.Disclosures) == 0 {
			t.Fatal("allowed with a disclosure that says nothing")
		}
	})
}

// Proves B-6: the engine knows no package that plans, so no planning state can reach a decision from behind.
func TestTheEngineImportsNothingThatPlans(t *testing.T) {
	const own = "stepbeyond.dev/stepbeyond/"
	looked := 0
	for folder, allowed := range map[string]string{".": own + "policy/expr", "expr": ""} {
		paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			looked++
			for _, spec := range file.Imports {
				if imported, err := strconv.Unquote(spec.Path.Value); err != nil || strings.HasPrefix(imported, own) && imported != allowed {
					t.Errorf("%s imports %s (%v)", path, imported, err)
				}
			}
		}
	}
	if looked < 10 {
		t.Errorf("only %d files were looked at", looked)
	}
}

// answers names each field under a type that could prevent a call.
func answers(of reflect.Type, path string, seen map[reflect.Type]bool) []string {
	switch of {
	case reflect.TypeFor[policy.Decision](), reflect.TypeFor[policy.Verdict](), reflect.TypeFor[policy.Boundary](), reflect.TypeFor[policy.Reason]():
		return []string{path}
	case reflect.TypeFor[time.Time]():
		return nil
	}
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return answers(of.Elem(), path, seen)
	case reflect.Struct:
	default:
		return nil
	}
	if seen[of] {
		return nil
	}
	seen[of] = true
	var found []string
	for i := range of.NumField() {
		found = append(found, answers(of.Field(i).Type, path+"."+of.Field(i).Name, seen)...)
	}
	return found
}

// Proves B-6: what planning answers with has no place for a verdict, a boundary or a reason of the engine.
func TestNoAnswerOfPlanningCanPreventACall(t *testing.T) {
	for _, answer := range []reflect.Type{
		reflect.TypeFor[phase.Record](), reflect.TypeFor[phase.ReportError](), reflect.TypeFor[intent.Set](), reflect.TypeFor[intent.Problem](),
		reflect.TypeFor[intent.Outcome](), reflect.TypeFor[initiative.Ranking](), reflect.TypeFor[verification.Assessment](), reflect.TypeFor[verification.Delivery](),
	} {
		if found := answers(answer, answer.String(), map[reflect.Type]bool{}); len(found) > 0 {
			t.Errorf("fields that could prevent a call: %v", found)
		}
	}
	want := []string{"x.Nested.Verdict", "x.Because"}
	type carrier struct {
		Nested  []struct{ Verdict policy.Verdict }
		Because policy.Reason
	}
	if diff := cmp.Diff(want, answers(reflect.TypeFor[carrier](), "x", map[reflect.Type]bool{})); diff != "" {
		t.Errorf("fields that could prevent a call (-want +got):\n%s", diff)
	}
}
