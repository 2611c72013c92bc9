package authority

import (
	"slices"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// Bounds of the schema. What is over them is left out, which only narrows.
const (
	maxSelectors = 8
	maxGroups    = 8
	maxResources = 16
	maxNames     = 16
)

// Meet is what both authorities allow; ok is false when that is nothing, because an authority cannot be empty.
func Meet(a, b *v1alpha1.Authority) (met v1alpha1.Authority, ok bool) {
	met = v1alpha1.Authority{
		Stages: meet(a.Stages, b.Stages, same), Capabilities: meet(a.Capabilities, b.Capabilities, same),
		Budgets: meetBudgets(a.Budgets, b.Budgets),
	}
	met.Kubernetes, ok = meetSelectors(a.Kubernetes, b.Kubernetes)
	return met, ok && len(met.Stages) > 0 && len(met.Capabilities) > 0
}

// meetSelectors joins two lists of which any entry covers. No entries are no narrowing.
func meetSelectors(a, b []v1alpha1.KubernetesAuthority) (met []v1alpha1.KubernetesAuthority, ok bool) {
	if len(a) == 0 || len(b) == 0 {
		for _, s := range append(a, b...) {
			met = append(met, *s.DeepCopy())
		}
		return met, true
	}
	for i := range a {
		for j := range b {
			s, ok := meetSelector(&a[i], &b[j])
			within := func(other v1alpha1.KubernetesAuthority) bool { return narrows(&s, &other) }
			if ok && !slices.ContainsFunc(met, within) {
				met = slices.DeleteFunc(met, func(other v1alpha1.KubernetesAuthority) bool { return narrows(&other, &s) })
				met = append(met, s)
			}
		}
	}
	return bounded(met, maxSelectors), len(met) > 0
}

func meetSelector(a, b *v1alpha1.KubernetesAuthority) (met v1alpha1.KubernetesAuthority, ok bool) {
	met = v1alpha1.KubernetesAuthority{
		Groups:    bounded(meet(a.Groups, b.Groups, groupWithin), maxGroups),
		Resources: bounded(meet(a.Resources, b.Resources, resourceWithin), maxResources),
		Verbs:     meet(a.Verbs, b.Verbs, same),
		Names:     slices.Clone(a.Names),
	}
	switch {
	case len(a.Names) == 0:
		met.Names = slices.Clone(b.Names)
	case len(b.Names) > 0:
		met.Names = bounded(meet(a.Names, b.Names, nameWithin), maxNames)
		if len(met.Names) == 0 {
			return met, false
		}
	}
	return met, len(met.Groups) > 0 && len(met.Resources) > 0 && len(met.Verbs) > 0
}

// meet keeps of each pair of patterns the narrower one. Two patterns of these kinds never overlap without one being
// within the other.
func meet[T comparable](a, b []T, within func(value, bound T) bool) []T {
	var met []T
	for _, x := range a {
		for _, y := range b {
			narrower := x
			switch {
			case within(x, y):
			case within(y, x):
				narrower = y
			default:
				continue
			}
			if !slices.Contains(met, narrower) {
				met = append(met, narrower)
			}
		}
	}
	return met
}

func meetBudgets(a, b *v1alpha1.Budgets) *v1alpha1.Budgets {
	switch {
	case a == nil:
		return b.DeepCopy()
	case b == nil:
		return a.DeepCopy()
	default:
		return &v1alpha1.Budgets{
			MaxMutations:     lower(a.MaxMutations, b.MaxMutations),
			MaxChildSessions: lower(a.MaxChildSessions, b.MaxChildSessions),
		}
	}
}

// lower is the lower of two bounds, as a copy; nil is no bound.
func lower(a, b *int32) *int32 {
	if a == nil || b != nil && *b < *a {
		a = b
	}
	if a == nil {
		return nil
	}
	return new(*a)
}

func bounded[E any](list []E, most int) []E { return list[:min(len(list), most)] }
