package grants

import (
	"fmt"
	"strings"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/screen"
	"stepbeyond.dev/stepbeyond/policy"
)

// engineRules are reasons of the engine itself, by the name that a question gives them.
var engineRules = map[string]string{
	"engine/" + policy.CodeUncatalogued:    "nothing says what an operation of this kind does",
	"engine/" + policy.CodeStageNotGranted: "the session was not given the stage that this belongs to",
}

// reasons says why an operation is a question: each rule with the fact that it speaks of, then the facts of no rule.
func reasons(request *v1alpha1.PermissionRequest) []string {
	var lines []string
	told := map[v1alpha1.Fact]bool{}
	for i := range request.Rules {
		rule := &request.Rules[i]
		line := screened(rule.Name)
		if text, ok := engineRules[rule.Name]; ok {
			lines = append(lines, line+": "+text)
			continue
		}
		for j := range request.Facts {
			if fact := &request.Facts[j]; string(fact.Fact) == rule.Reason && !told[fact.Fact] {
				told[fact.Fact] = true
				line += ": " + factText(fact)
			}
		}
		lines = append(lines, line)
	}
	for i := range request.Facts {
		if fact := &request.Facts[i]; !told[fact.Fact] {
			lines = append(lines, factText(fact))
		}
	}
	return lines
}

// factText is a fact with where it comes from: "not Reversible (authoritative: reclaimPolicy Delete)".
func factText(fact *v1alpha1.GrantFact) string {
	source := strings.ToLower(string(fact.Provenance))
	if fact.Why != "" {
		source += ": " + screen.Line(fact.Why, maxLine)
	}
	return fmt.Sprintf("%s (%s)", factName(fact), source)
}
