package grants

import (
	"cmp"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/grant"
)

// feared are the facts that come first in a queue, the most serious first.
var feared = []v1alpha1.Fact{v1alpha1.FactDestructive, v1alpha1.FactSecurity, v1alpha1.FactCredentials, v1alpha1.FactExternal}

// needed is how many people have to approve, and given how many did, of the requirement that lacks most.
func needed(g *v1alpha1.PermissionGrant) (given, required int32) {
	view := grant.ToEngine(g, g.CreationTimestamp.Time)
	return int32(view.Approvals), int32(view.Required)
}

// rank of a question among those that need as many people: 0 is the most serious.
func rank(g *v1alpha1.PermissionGrant) int {
	least := len(feared) + 1
	for _, fact := range g.Spec.Request.Facts {
		switch at := slices.Index(feared, fact.Fact); {
		case at >= 0 && fact.Value == v1alpha1.FactPresent:
			least = min(least, at)
		default:
			least = min(least, len(feared))
		}
	}
	return least
}

// byRisk orders a queue: who needs more people first, then what is feared more, then who waits longer.
func byRisk(a, b *v1alpha1.PermissionGrant) int {
	_, aNeeds := needed(a)
	_, bNeeds := needed(b)
	return cmp.Or(cmp.Compare(bNeeds, aNeeds), cmp.Compare(rank(a), rank(b)), byAge(a, b))
}

// byAge orders a queue: who waits longest first.
func byAge(a, b *v1alpha1.PermissionGrant) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// byEnd orders a queue: what expires first comes first.
func byEnd(a, b *v1alpha1.PermissionGrant) int {
	return cmp.Or(a.Spec.Request.DecideByTime.Compare(b.Spec.Request.DecideByTime.Time), byAge(a, b))
}

// ruleName is a rule without its policy, as a column shows it.
func ruleName(rule *v1alpha1.GrantRule) string {
	return screened(rule.Name[strings.LastIndexByte(rule.Name, '/')+1:])
}

// why is what made the operation a question, in a word or two: the fact that is feared most, or the deciding rule.
func why(g *v1alpha1.PermissionGrant) string {
	request := &g.Spec.Request
	facts := slices.Clone(request.Facts)
	slices.SortStableFunc(facts, func(a, b v1alpha1.GrantFact) int { return cmp.Compare(factRank(&a), factRank(&b)) })
	switch {
	case len(facts) > 0 && (factRank(&facts[0]) < len(feared) || len(request.Rules) == 0):
		return factName(&facts[0])
	case len(request.Rules) > 0:
		return ruleName(&request.Rules[0])
	default:
		return ""
	}
}

func factRank(fact *v1alpha1.GrantFact) int {
	if at := slices.Index(feared, fact.Fact); at >= 0 && fact.Value == v1alpha1.FactPresent {
		return at
	}
	if fact.Value == v1alpha1.FactUnknown {
		return len(feared) + 1
	}
	return len(feared)
}

// factName says a fact as people do: Destructive, not Reversible, Local unknown.
func factName(fact *v1alpha1.GrantFact) string {
	switch fact.Value {
	case v1alpha1.FactPresent:
		return string(fact.Fact)
	case v1alpha1.FactAbsent:
		return "not " + string(fact.Fact)
	default:
		return string(fact.Fact) + " unknown"
	}
}
