package enforcement

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// ruleMark begins the comment with which the expression of a rule begins.
const ruleMark = "// "

// Keep adds the rules of a live policy FloorForbidden whose cluster policy is not among those in force, by name: nobody
// knows whether they still hold, and what is not known does not open anything. They stay as they are, word for word, and
// compiled rules that then do not fit any more are left in process.
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
	f.makeRoom(len(f.checks) - kept)
	slices.Sort(f.names)
	slices.SortStableFunc(f.checks, func(a, b check) int { return strings.Compare(a.name(), b.name()) })
	if live.Spec.MatchConstraints == nil {
		return
	}
	for _, r := range live.Spec.MatchConstraints.ResourceRules {
		f.constrain(rule{groups: r.APIGroups, versions: r.APIVersions, resources: r.Resources, operations: r.Operations})
	}
}

// makeRoom drops the last of the first n checks, which are the compiled ones, until all of them fit.
func (f *Forbidden) makeRoom(n int) {
	size := 0
	for i := range f.checks {
		size += f.checks[i].bytes()
	}
	for size > maxForbiddenBytes && n > 0 {
		n--
		size -= f.checks[n].bytes()
		name := f.names[n]
		f.checks, f.names = slices.Delete(f.checks, n, n+1), slices.Delete(f.names, n, n+1)
		f.apart = append(f.apart, InProcess{Name: name, Reason: v1alpha1.InProcessTooLarge,
			Message: "Rules of cluster policies that are gone, and the rules before it, fill the admission policy."})
	}
	slices.SortFunc(f.apart, func(a, b InProcess) int { return strings.Compare(a.Name, b.Name) })
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
