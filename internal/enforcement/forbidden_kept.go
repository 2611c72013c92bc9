package enforcement

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// ruleMark begins the comment with which the expression of a rule begins.
const ruleMark = "// "

// Keep adds the rules of a live policy FloorForbidden whose cluster policy is not among those in force, by name: nobody
// knows whether they still hold, and what is not known does not open anything. They stay as they are, word for word.
func (f *Forbidden) Keep(live *admissionregistrationv1.ValidatingAdmissionPolicy, inForce []string) {
	kept := 0
	for _, v := range live.Spec.Validations {
		name, ok := ruleName(v.Expression)
		prefix, _, named := strings.Cut(name, "/")
		if !ok || !named || slices.Contains(inForce, prefix) {
			continue
		}
		_, after, found := strings.Cut(v.Message, anyRequest)
		if !found {
			continue
		}
		f.checks, f.names = append(f.checks, check{allowed: v.Expression, refusal: refusal{kept: after}}), append(f.names, name)
		kept++
	}
	if kept == 0 {
		return
	}
	slices.Sort(f.names)
	slices.SortStableFunc(f.checks, func(a, b check) int { return strings.Compare(a.name(), b.name()) })
	if live.Spec.MatchConstraints == nil {
		return
	}
	for _, r := range live.Spec.MatchConstraints.ResourceRules {
		f.constrain(rule{groups: r.APIGroups, versions: r.APIVersions, resources: r.Resources, operations: r.Operations})
	}
}

func (c check) name() string {
	name, _ := ruleName(c.allowed)
	return name
}

// ruleName is the name in the first line of an expression.
func ruleName(expression string) (string, bool) {
	first, _, _ := strings.Cut(expression, "\n")
	return strings.CutPrefix(first, ruleMark)
}
