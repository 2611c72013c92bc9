package language_test

import (
	"fmt"
	"strings"
	"testing"

	"stepbeyond.dev/stepbeyond/internal/policytest"
)

// maxPolicy bounds a policy as the API server bounds an object.
const maxPolicy = 3 << 20

// FuzzRules: whatever text stands in a policy's file, it is read or refused with the file's name, the same text always in the
// same way, and what was read decides without failing.
func FuzzRules(f *testing.F) {
	policies, cases := worked(f)
	f.Add(policies)
	for _, e := range examples(f) {
		f.Add(strings.Replace(policies, "  rules:\n", "  x:\n", 1) + "  " + strings.ReplaceAll(e.text, "\n", "\n  "))
		f.Add(e.text)
	}
	for _, text := range hostile(policies) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > maxPolicy {
			return
		}
		suite, err := policytest.Load(folder(text, cases))
		if _, again := policytest.Load(folder(text, cases)); (err == nil) != (again == nil) {
			t.Fatalf("two answers: %v, %v", err, again)
		}
		if err != nil {
			if !strings.Contains(err.Error(), ".yaml") {
				t.Fatalf("the error names no file: %v", err)
			}
			return
		}
		if _, err := suite.Run(); err != nil {
			t.Fatalf("a policy that was read does not decide: %v", err)
		}
	})
}

// hostile policies: nested, repeated and referring to themselves.
func hostile(policies string) []string {
	when := func(expression string) string {
		return strings.Replace(policies, "    recovery: Open", "    when: "+expression+"\n    recovery: Open", 1)
	}
	var rules strings.Builder
	for i := range 500 {
		fmt.Fprintf(&rules, "  - {name: r%d, class: ASK, match: {tools: [t%d]}}\n", i, i)
	}
	return []string{
		strings.Repeat("[", 20_000), strings.Repeat("{a: ", 20_000), strings.Repeat("- ", 20_000), strings.Repeat("---\n", 20_000),
		"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\ne: [*d, *d]\n", "a: &a [*a]\n",
		when(strings.Repeat("(", 2000) + "true" + strings.Repeat(")", 2000)), when(strings.Repeat("!", 3000) + "true"),
		when("true" + strings.Repeat(" && true", 400)), when("'" + strings.Repeat("x", 4000) + "' == ''"),
		when("[1,2,3].all(a, [1,2,3].all(b, [1,2,3].all(c, [1,2,3].all(d, a + b + c + d > 0))))"),
		when("request.name.matches('(a*)*b')"), when("request.name.matches('" + strings.Repeat("(", 500) + "')"),
		strings.Replace(policies, "  rules:\n", "  rules:\n"+rules.String(), 1),
		strings.Replace(policies, "FORBIDDEN", "AUTO", 1), "\x00", "\xff\xfe", "null", "apiVersion: v1\nkind: List\nitems: []\n",
	}
}
