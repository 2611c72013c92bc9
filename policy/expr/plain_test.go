package expr_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/policy/expr"
)

// drawPlain writes an expression of the forms that have a short cut, and now and then a part of one that has none.
func drawPlain(t *rapid.T, depth int) string {
	forms := []string{"compare", "compare", "compare", "truth", "other"}
	if depth > 0 {
		forms = append(forms, "and", "or", "not", "and", "or")
	}
	field := func() string {
		return rapid.SampledFrom([]string{
			"object.n", "object.s", "object.b", "object.deep.n", "object.deep.b", "object.gone", "oldObject.n", "oldObject.s",
			"oldObject.b", "oldObject.deep.er.n", "object",
		}).Draw(t, "field")
	}
	switch rapid.SampledFrom(forms).Draw(t, "form") {
	case "compare":
		operator := rapid.SampledFrom([]string{"==", "!=", "<", "<=", ">", ">="}).Draw(t, "operator")
		return field() + " " + operator + " " + rapid.SampledFrom([]string{"1", "2", "-1", "'a'", "'b'", "1.0", "true", "null"}).Draw(t, "constant")
	case "truth":
		return field()
	case "and":
		return "(" + drawPlain(t, depth-1) + " && " + drawPlain(t, depth-1) + ")"
	case "or":
		return "(" + drawPlain(t, depth-1) + " || " + drawPlain(t, depth-1) + ")"
	case "not":
		return "!(" + drawPlain(t, depth-1) + ")"
	default:
		return rapid.SampledFrom([]string{
			"has(object.n)", "1 < object.n", "object.n in [1, 2]", "object.s.startsWith('a')", "object.n + 1 > 2", "request.dryRun", "true",
			"[1].exists(object, object == 1)", "object.?n.orValue(1) == 1", "object['n'] == 1",
		}).Draw(t, "other")
	}
}

// drawObject holds values of every type under the names that drawPlain asks for; it may be nil.
func drawObject(t *rapid.T, depth int) map[string]any {
	if rapid.IntRange(0, 9).Draw(t, "no object") == 0 {
		return nil
	}
	object := map[string]any{}
	for _, name := range []string{"n", "s", "b", "deep", "er"} {
		usual := map[string]any{"n": int64(1), "s": "a", "b": true}[name]
		values := []any{usual, usual, usual, int64(1), int64(2), "a", "b", true, false, 1.0, nil, []any{int64(1)}, uint64(1), int32(1), "absent"}
		value := rapid.SampledFrom(values).Draw(t, name)
		switch {
		case value == "absent":
			continue
		case depth > 0 && (name == "deep" || name == "er"):
			value = drawObject(t, depth-1)
		}
		object[name] = value
	}
	return object
}

// sample is an expression of any form, and objects to evaluate it for.
type sample struct {
	source string
	views  []*expr.View
}

func drawSample(t *rapid.T) sample {
	c := sample{source: drawPlain(t, 3)}
	for range 8 {
		c.views = append(c.views, &expr.View{Object: drawObject(t, 2), OldObject: drawObject(t, 2)})
	}
	return c
}

// compare counts what the short cut answered. An expression that CEL refuses has nothing to compare.
func (c sample) compare(t rapid.TB) (answered int) {
	program, err := expr.Compile(c.source)
	if err != nil {
		return 0
	}
	for _, view := range c.views {
		got, cost, known := program.Plain(view.Object, view.OldObject)
		if !known {
			continue
		}
		answered++
		want, wantCost, err := program.Eval(view)
		if err != nil || got != want || cost != wantCost {
			t.Fatalf("%s of %v and %v gives %v at cost %d without CEL; with it %v at cost %d, error %v",
				c.source, view.Object, view.OldObject, got, cost, want, wantCost, err)
		}
	}
	return answered
}

// What the short cut knows, CEL gives as well, at the same cost.
func TestWhatIsToldWithoutCELIsWhatCELTells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { drawSample(t).compare(t) })
	// How much is compared must not hang on luck, so it is counted over fixed draws.
	draws, answered := rapid.Custom(drawSample), 0
	for seed := range 500 {
		answered += draws.Example(seed).compare(t)
	}
	if answered < 250 {
		t.Errorf("%d of 4000 evaluations were answered without CEL, want at least 250", answered)
	}
	t.Logf("%d of 4000 evaluations were answered without CEL", answered)
}

// Only what is certain is told without CEL.
func TestTheShortCutLeavesToCELWhatIsNotCertain(t *testing.T) {
	object := map[string]any{"n": int64(3), "s": "a", "b": true, "nothing": nil, "double": 3.0, "deep": map[string]any{"n": int64(1)}}
	got := map[string]string{}
	want := map[string]string{
		"object.n <= 3": "true",
		"object.n < 3 && (object.b || object.gone > 1)": "false",
		"object.b || object.gone > 1":                   "true",
		"!(object.s == 'b') && object.deep.n != 2":      "true",
		"object.n > -1 && oldObject.n == 1":             "CEL", // there is no old object
		"object.gone > 1":                               "CEL",
		"object.gone > 1 || object.b":                   "CEL",
		"!(object.gone > 1)":                            "CEL",
		"object.nothing > 1":                            "CEL",
		"object.double > 1":                             "CEL",
		"object.s > 1":                                  "CEL",
		"object.n":                                      "CEL",
		"object.n.deep == 1":                            "CEL",
		"has(object.n)":                                 "CEL",
		"object.n > 1 && has(object.n)":                 "CEL",
		"object.n == 3 && request.name == ''":           "CEL",
		"[1].exists(object, object == 1)":               "CEL",
		"object.s.matches('(a+)+b') || object.n == 3":   "CEL", // its cost is counted
	}
	for source := range want {
		program, err := expr.Compile(source)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		got[source] = "CEL"
		if result, _, known := program.Plain(object, nil); known {
			got[source] = fmt.Sprint(result)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}
