package verification

import "slices"

// Status of a claim (requirement V-2).
type Status string

const (
	// StatusVerified: the whole stated scope was directly checked and passed.
	StatusVerified Status = "verified"
	// StatusPartiallyVerified: useful checks passed, and named scope is unchecked.
	StatusPartiallyVerified Status = "partially_verified"
	// StatusUnverified: nothing that was executed supports the claim.
	StatusUnverified Status = "unverified"
)

// Assessment is what a record amounts to. It is computed and nothing accepts one.
type Assessment struct {
	Status Status
	// VerifiedScope lists the elements that were directly checked and passed.
	VerifiedScope []string
	// Unverified lists all other elements: the claim's in its order, then those that the record names beside them.
	Unverified []Omission
	// EnvironmentBlockers that the record names.
	EnvironmentBlockers []string
}

// Omission is an element that the claim may not be taken to cover.
type Omission struct {
	Element string
	Reason  Reason
}

// Assess computes what the record says about the claim. An element is verified when a direct check with evidence passed
// on it, no check failed on it and the record does not name it as unchecked (requirements V-2, V-3). Elements that the
// record names as unchecked belong to the stated scope even where the claim is silent on them, and while the environment
// keeps checks from running nothing is wholly verified: what the record admits is not passed over.
func Assess(claim *Claim, record *Record) Assessment {
	a := Assessment{EnvironmentBlockers: record.EnvironmentBlockers}
	supported := false
	scope := stated(claim, record)
	for _, element := range scope {
		reason := record.against(element, claim.Scope)
		if reason == "" {
			a.VerifiedScope = append(a.VerifiedScope, element)
		} else {
			a.Unverified = append(a.Unverified, Omission{element, reason})
		}
		supported = supported || reason == "" || reason == ReasonCheckedIndirectly
	}
	switch {
	case !supported:
		a.Status = StatusUnverified
	case len(a.Unverified) > 0 || len(record.EnvironmentBlockers) > 0:
		a.Status = StatusPartiallyVerified
	default:
		a.Status = StatusVerified
	}
	return a
}

// stated is the scope to be verified, each element once.
func stated(claim *Claim, record *Record) []string {
	var elements []string
	for _, element := range slices.Concat(claim.Scope, record.UncheckedElements) {
		if !slices.Contains(elements, element) {
			elements = append(elements, element)
		}
	}
	return elements
}

// against is why the element is not verified; empty when it is. What speaks against it comes before what speaks for it.
func (r *Record) against(element string, scope []string) Reason {
	var direct, indirect bool
	for i := range r.Checks {
		c := &r.Checks[i]
		switch {
		case c.failedOn(element, scope):
			return ReasonCheckFailed
		case c.passedOn(element) && c.Method == MethodDirect:
			direct = true
		case c.passedOn(element):
			indirect = true
		}
	}
	switch {
	case slices.Contains(r.UncheckedElements, element):
		return ReasonUnchecked
	case direct:
		return ""
	case indirect:
		return ReasonCheckedIndirectly
	case len(r.EnvironmentBlockers) > 0:
		return ReasonBlocked
	default:
		return ReasonNoCheck
	}
}

// failedOn: a failure counts against the elements that the check covers. A failure on none of those that the claim speaks
// of, in the record of this very claim, counts against all; naming its element unchecked does not move it away: "web" is not shown to work by leaving the failure to "web/login".
func (c *Check) failedOn(element string, scope []string) bool {
	if c.Result != ResultFailed || slices.Contains(c.Scope, element) {
		return c.Result == ResultFailed
	}
	return !slices.ContainsFunc(scope, func(stated string) bool { return slices.Contains(c.Scope, stated) })
}

func (c *Check) passedOn(element string) bool {
	return c.Result == ResultPassed && c.Executed != "" && len(c.Evidence) > 0 && slices.Contains(c.Scope, element)
}
