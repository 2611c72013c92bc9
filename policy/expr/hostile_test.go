package expr_test

import (
	"strings"
	"testing"

	"stepbeyond.dev/stepbeyond/policy/expr"
)

// Expressions of any shape compile or are refused, and what compiles costs at most its limit.
func TestHostileExpressionsAreBounded(t *testing.T) {
	for name, source := range map[string]string{
		"deep parentheses":           strings.Repeat("(", 5000) + "true" + strings.Repeat(")", 5000),
		"deep lists":                 strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + " == []",
		"many negations":             strings.Repeat("!", 5000) + "true",
		"a long conjunction":         "true" + strings.Repeat(" && true", 500),
		"a long text":                "'" + strings.Repeat("x", 1<<16) + "' == request.name",
		"an open text":               "'" + strings.Repeat("x", 1<<16),
		"nested loops":               "[1,2,3,4].all(a, [1,2,3,4].all(b, [1,2,3,4].all(c, [1,2,3,4].all(d, a + b + c + d > 0))))",
		"loops over the object":      "object.spec.all(a, object.spec.all(b, object.spec.all(c, a != '' && b != '' && c != '')))",
		"a regular expression":       "request.verb.matches('(a*)*b')",
		"a regular expression, deep": "request.verb.matches('" + strings.Repeat("(", 2000) + strings.Repeat(")", 2000) + "')",
		"bytes that are no text":     "'\xff\xfe' == ''",
		"nothing":                    "",
	} {
		t.Run(name, func(t *testing.T) {
			program, err := expr.Compile(source)
			if err != nil {
				// What the planner refuses, such as a constant that is no regular expression, has no place.
				if !strings.Contains(err.Error(), "line ") && !strings.HasPrefix(err.Error(), "plan expression: ") {
					t.Errorf("error %.200v, want a place", err)
				}
				return
			}
			_, cost, _ := program.Eval(view())
			if cost < 1 || cost > 2*expr.MaxCost {
				t.Errorf("cost %d, want at least 1 and about %d at most", cost, expr.MaxCost)
			}
		})
	}
}
