// Package language_test loads every example of docs/policy-language.md, and hostile policies.
package language_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v3"

	"stepbeyond.dev/stepbeyond/internal/policytest"
)

// example is one fenced block of YAML.
type example struct {
	line int
	text string
}

func examples(t testing.TB) []example {
	t.Helper()
	text, err := os.ReadFile("../../docs/policy-language.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []example
	open := false
	for i, line := range strings.SplitAfter(string(text), "\n") {
		switch {
		case line == "```yaml\n":
			found, open = append(found, example{line: i + 2}), true
		case strings.HasPrefix(line, "```"):
			if !open {
				t.Fatalf("line %d: a block that is no yaml is tested by nobody", i+1)
			}
			open = false
		case open:
			found[len(found)-1].text += line
		}
	}
	return found
}

// isTest, isPolicy and neither: a part of a spec.
func (e example) isTest() bool   { return strings.Contains(e.text, "kind: PolicyTest") }
func (e example) isPolicy() bool { return strings.HasPrefix(e.text, "apiVersion: stepbeyond.dev/") }

// worked are the policies and cases of the worked example.
func worked(t testing.TB) (policies, cases string) {
	t.Helper()
	for _, e := range examples(t) {
		switch {
		case e.isTest():
			cases = e.text
		case e.isPolicy():
			policies = e.text
		}
	}
	if policies == "" || cases == "" {
		t.Fatal("docs/policy-language.md has no worked example")
	}
	return policies, cases
}

func folder(policies, cases string) fstest.MapFS {
	return fstest.MapFS{"policy.yaml": {Data: []byte(policies)}, policytest.File: {Data: []byte(cases)}}
}

// with puts a part of a spec into the worked example: approvals into the profile, everything else into the cluster policy.
func with(t *testing.T, policies, part string) string {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(part), &fields); err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(policies, "---\n")
	for field, value := range fields {
		position := 0
		if field == "approvals" {
			position = 1
		}
		var object map[string]any
		if err := yaml.Unmarshal([]byte(documents[position]), &object); err != nil {
			t.Fatal(err)
		}
		object["spec"].(map[string]any)[field] = value
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		documents[position] = string(text)
	}
	return strings.Join(documents, "---\n")
}

// Proves M-6: the examples of the language's description are what the manager reads.
func TestEveryExampleIsRead(t *testing.T) {
	policies, cases := worked(t)
	parts := 0
	for _, e := range examples(t) {
		if e.isTest() || e.isPolicy() {
			continue
		}
		parts++
		if _, err := policytest.Load(folder(with(t, policies, e.text), cases)); err != nil {
			t.Errorf("docs/policy-language.md, line %d: %v", e.line, err)
		}
	}
	if parts < 9 {
		t.Errorf("%d parts of policies, want one for every construct", parts)
	}
}

// Proves M-6: the worked example decides as it says.
func TestTheWorkedExampleHolds(t *testing.T) {
	suite, err := policytest.Load(folder(worked(t)))
	if err != nil {
		t.Fatal(err)
	}
	results, err := suite.Run()
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		if !result.Passed() {
			t.Errorf("%s: %v\n%s", result.Name, result.Differences, strings.Join(result.Because, "\n"))
		}
	}
}
