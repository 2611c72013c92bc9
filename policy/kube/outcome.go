package kube

import (
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// Outcome is what an object shows about a change.
type Outcome int

const (
	// OutcomeUnclear: the object fits the change as far as it is shown, and not all of it is.
	OutcomeUnclear Outcome = iota
	// OutcomeCarried: everything that the change sets is there.
	OutcomeCarried
	// OutcomeAbsent: something that the change sets is not there.
	OutcomeAbsent
)

// OutcomeOf compares an object with the lines of an update's exact form on that target ([Exact.Lines]). It says Carried
// also when somebody else made the same change. It errs when the object is not decoded JSON.
func OutcomeOf(key Key, target policy.Target, lines []string, object map[string]any) (Outcome, error) {
	subresource := target.Subresource
	if subresource == "scale" && scalable[groupResource{target.Group, target.Resource}] {
		subresource = "" // the form of a scale is that of an update of the workload
	}
	if subresource == "scale" {
		return OutcomeUnclear, nil // where a custom resource keeps its number only its definition knows
	}
	f := former{
		key: key, target: &target,
		req: &Request{Operation: "UPDATE", Group: target.Group, Resource: target.Resource, Subresource: subresource},
	}
	f.projection = projection{kind: f.req.kind(), subresource: subresource, dropped: map[string]bool{}}
	plain, err := f.plain(object)
	if err != nil {
		return OutcomeUnclear, err
	}
	f.projection.each(plain)
	shown := map[string]leaf{}
	f.gather(shown, plain)
	outcome := OutcomeCarried
	for _, line := range lines {
		switch carried(line, shown) {
		case OutcomeAbsent:
			return OutcomeAbsent, nil
		case OutcomeUnclear:
			outcome = OutcomeUnclear
		}
	}
	return outcome, nil
}

const (
	replicasPath = "spec.replicas"
	// nullValue is how a line spells a removed status.
	nullValue = "null"
)

// carried compares one line "path: old -> new" with what an object holds.
func carried(line string, shown map[string]leaf) Outcome {
	at, value, isChange := strings.Cut(line, ": ")
	want := newValue(value)
	if at == replicasPath && want == noValue {
		return OutcomeUnclear // a Scale omits 0
	}
	if !isChange || !strings.Contains(value, arrow) || strings.HasSuffix(line, "..") || strings.Contains(want, arrow) || want == restartValue {
		return OutcomeUnclear // cut, without a value of its own, or with one that cannot be told from an arrow
	}
	l, has := shown[at]
	switch {
	case has && l.text == want, !has && (want == noValue || want == nullValue):
		return OutcomeCarried
	case has, !strings.Contains(at, "[") && !below(at, shown):
		return OutcomeAbsent
	default:
		return OutcomeUnclear // the item may be spelled by its position there and by its name here
	}
}

// below tells that the object has values under the path.
func below(at string, shown map[string]leaf) bool {
	for other := range shown {
		if strings.HasPrefix(other, at+".") || strings.HasPrefix(other, at+"[") {
			return true
		}
	}
	return false
}

// EmptiesFinalizers tells from the lines of an update that it may remove finalizers: on an object that is being deleted it
// ends in its deletion, and that is not bound to the version that was reviewed. Lines that were left out may be about them.
func EmptiesFinalizers(lines []string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "metadata.finalizers") || strings.HasPrefix(line, "spec.finalizers") || strings.HasPrefix(line, "and ")
	})
}
