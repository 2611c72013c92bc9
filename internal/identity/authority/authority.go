// Package authority compares and joins what sessions may do: one authority is within another when everything that it
// allows the other allows as well.
package authority

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// omitted stands for a value that an error must not echo.
var omitted = field.OmitValueType{}

// Bound is an authority that another one must stay within.
type Bound struct {
	Authority *v1alpha1.Authority
	// Name of who has it, as in `session template "agent"`.
	Name string
	// Remedy ends the sentence of an error.
	Remedy string
}

// Check compares field by field. An error names each value that is beyond the bound.
func (b Bound) Check(path *field.Path, a *v1alpha1.Authority) field.ErrorList {
	var found field.ErrorList
	beyond := fmt.Sprintf("exceeds %s; leave it out%s", b.Name, b.Remedy)
	for i, stage := range a.Stages {
		if !slices.Contains(b.Authority.Stages, stage) {
			found = append(found, field.Invalid(path.Child("stages").Index(i), omitted, beyond))
		}
	}
	for i, capability := range a.Capabilities {
		if !slices.Contains(b.Authority.Capabilities, capability) {
			found = append(found, field.Invalid(path.Child("capabilities").Index(i), omitted, beyond))
		}
	}
	selectors := b.Authority.Kubernetes
	if len(selectors) > 0 && len(a.Kubernetes) == 0 {
		found = append(found, field.Required(path.Child("kubernetes"),
			fmt.Sprintf("%s narrows the writes, so this session must narrow them as well", b.Name)))
	}
	for i := range a.Kubernetes {
		within := func(s v1alpha1.KubernetesAuthority) bool { return narrows(&a.Kubernetes[i], &s) }
		if len(selectors) > 0 && !slices.ContainsFunc(selectors, within) {
			found = append(found, field.Invalid(path.Child("kubernetes").Index(i), omitted, "no single entry covers it: it "+beyond))
		}
	}
	return append(found, checkBudgets(path.Child("budgets"), a.Budgets, b.Authority.Budgets, beyond)...)
}

func checkBudgets(path *field.Path, budgets, bound *v1alpha1.Budgets, beyond string) field.ErrorList {
	if bound == nil {
		return nil
	}
	if budgets == nil {
		budgets = &v1alpha1.Budgets{}
	}
	var found field.ErrorList
	check := func(name string, value, most *int32) {
		if most != nil && (value == nil || *value > *most) {
			found = append(found, field.Invalid(path.Child(name), omitted, fmt.Sprintf("must be at most %d: it %s", *most, beyond)))
		}
	}
	check("maxMutations", budgets.MaxMutations, bound.MaxMutations)
	check("maxChildSessions", budgets.MaxChildSessions, bound.MaxChildSessions)
	return found
}

// narrows tells whether everything that a selects is selected by b.
func narrows(a, b *v1alpha1.KubernetesAuthority) bool {
	return all(a.Groups, b.Groups, groupWithin) && all(a.Verbs, b.Verbs, same[v1alpha1.Verb]) && all(a.Resources, b.Resources, resourceWithin) &&
		(len(b.Names) == 0 || len(a.Names) > 0 && all(a.Names, b.Names, nameWithin))
}

// all tells whether each value is within some bound.
func all[T any](values, bounds []T, within func(value, bound T) bool) bool {
	for _, value := range values {
		if !slices.ContainsFunc(bounds, func(bound T) bool { return within(value, bound) }) {
			return false
		}
	}
	return true
}

func same[T comparable](value, by T) bool { return value == by }

func groupWithin(group, by string) bool { return by == "*" || by == group }

func resourceWithin(resource, by string) bool {
	if by == "*" || by == resource {
		return true
	}
	parent, all := strings.CutSuffix(by, "/*")
	return all && strings.HasPrefix(resource, parent+"/")
}

func nameWithin(name, by string) bool {
	prefix, wild := strings.CutSuffix(by, "*")
	return by == name || wild && strings.HasPrefix(name, prefix)
}
