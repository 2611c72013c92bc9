package enforcement

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

const (
	// maxForbiddenBytes bounds all checks of the policy FloorForbidden together. An object of the API server has to stay
	// below 1.5 MiB in etcd, and quoting makes these texts longer on their way.
	maxForbiddenBytes = 700_000
	// maxRuleCodePoints bounds one expression, as maxShardBytes does.
	maxRuleCodePoints = maxShardBytes
	// maxNextStep is what the engine leaves of a rule's next step.
	maxNextStep = 160
)

// Forbidden is what cluster policies forbid, as far as admission policies can say it. The zero value forbids nothing.
type Forbidden struct {
	checks []check
	rules  []rule
	names  []string
	apart  []InProcess
}

// InProcess is a rule that stays with the enforcing webhook, and why.
type InProcess struct {
	// Name is POLICY/RULE.
	Name    string
	Reason  v1alpha1.InProcessReason
	Message string
}

// CompileForbidden compiles the rules of cluster policies that are FORBIDDEN and enforced. What it compiles denies
// exactly the requests for which the engine finds the rule to match; it is sure of that or leaves the rule in process.
// Equal policies give equal output, whatever their order.
func CompileForbidden(policies []policy.Policy) Forbidden {
	var rules []namedRule
	for i := range policies {
		for j := range policies[i].Rules {
			r := &policies[i].Rules[j]
			rules = append(rules, namedRule{Rule: r, name: policies[i].ID.RulePrefix() + "/" + r.Name})
		}
	}
	slices.SortFunc(rules, func(a, b namedRule) int { return strings.Compare(a.name, b.name) })
	var f Forbidden
	size := 0
	for _, r := range rules {
		c, left := r.compile()
		if left.Reason == "" {
			if size += c.bytes(); size > maxForbiddenBytes {
				size -= c.bytes()
				left = InProcess{Reason: v1alpha1.InProcessTooLarge, Message: "The rules before it, by name, fill the admission policy."}
			}
		}
		if left.Reason != "" {
			left.Name = r.name
			f.apart = append(f.apart, left)
			continue
		}
		f.checks, f.names = append(f.checks, c), append(f.names, r.name)
		f.constrain(r.constraints()...)
	}
	return f
}

// Rules are the names of the rules that the admission policy enforces, as POLICY/RULE, sorted.
func (f *Forbidden) Rules() []string { return f.names }

// InProcess are the rules that it does not enforce, sorted by name.
func (f *Forbidden) InProcess() []InProcess { return f.apart }

// constrain adds rules of match constraints, each once.
func (f *Forbidden) constrain(rules ...rule) {
	for _, r := range rules {
		if !slices.ContainsFunc(f.rules, r.equal) {
			f.rules = append(f.rules, r)
		}
	}
}

func (r rule) equal(other rule) bool {
	return slices.Equal(r.groups, other.groups) && slices.Equal(r.versions, other.versions) &&
		slices.Equal(r.resources, other.resources) && slices.Equal(r.operations, other.operations)
}

// floorPolicy is the policy of the floor. One that forbids nothing is written too, so that what an earlier one forbade
// ends without anything being deleted; it looks at one request that the policy FloorSelf refuses anyway.
func (f *Forbidden) floorPolicy() floorPolicy {
	p := floorPolicy{name: FloorForbidden, exact: true, rules: f.rules, checks: f.checks, variables: forbiddenVariables}
	if len(p.checks) == 0 {
		p.rules = []rule{{groups: []string{v1alpha1.GroupVersion.Group}, versions: []string{"*"}, resources: []string{"clusteragentpolicies"},
			operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create}}}
		p.checks = []check{{allowed: "true", refusal: refusal{cause: "no rule", next: handOver}}}
	}
	return p
}

func (f floorPolicy) matchPolicy() admissionregistrationv1.MatchPolicyType {
	if f.exact {
		return admissionregistrationv1.Exact
	}
	return admissionregistrationv1.Equivalent
}

func (r refusal) because() string {
	if r.cause != "" {
		return r.cause
	}
	return r.reason + "; rule baseline/" + r.rule
}

// bytes is about what a check takes of the object: its expression, and its message twice.
func (c check) bytes() int { return len(c.allowed) + 2*maxMessage }

// namedRule is a rule under its full name.
type namedRule struct {
	*policy.Rule
	name string
}

// compile is the check of a rule, or why it has none.
func (r namedRule) compile() (check, InProcess) {
	left := func(reason v1alpha1.InProcessReason, format string, args ...any) (check, InProcess) {
		message := []rune(fmt.Sprintf(format, args...))
		return check{}, InProcess{Reason: reason, Message: string(message[:min(len(message), 256)])}
	}
	switch {
	case r.Class != policy.ClassForbidden:
		return left(v1alpha1.InProcessNotForbidden, "Its class is %s, and only the manager can ask.", r.Class)
	case r.Rule.Enforcement != policy.EnforcementEnforce:
		return left(v1alpha1.InProcessNotEnforced, "Its enforcement is %s.", r.Rule.Enforcement)
	}
	var selectors []string
	for i := range r.Match.Kubernetes {
		s := &r.Match.Kubernetes[i]
		if len(s.Origins) > 0 {
			return left(v1alpha1.InProcessReadsOrigin, "match.kubernetes[%d].origins: only the manager knows the origin of a target.", i)
		}
		if len(seenOperations(s)) > 0 {
			selectors = append(selectors, selectorExpression(s))
		}
	}
	if len(selectors) == 0 {
		return left(v1alpha1.InProcessNoRequest, "It selects no request that admission sees.")
	}
	matches := "(" + strings.Join(selectors, " || ") + ")"
	if r.When != "" {
		if err := portable(r.When); err != nil {
			return left(v1alpha1.InProcessNotPortable, "when: %s.", err)
		}
		matches += " && " + seesAsked(r.When)
	}
	// The name stands in the expression, so that the rule is found again in the live object.
	allowed := ruleMark + r.name + "\nvariables.canary || !(" + matches + ")"
	if n := utf8.RuneCountInString(allowed); n > maxRuleCodePoints {
		return left(v1alpha1.InProcessTooLarge, "Its expression has %d code points, at most %d are possible.", n, maxRuleCodePoints)
	}
	if err := admissible(allowed); err != nil {
		return left(v1alpha1.InProcessNotPortable, "when: admission refuses it: %s.", err)
	}
	return check{allowed: allowed, refusal: r.refusal()}, InProcess{}
}

// refusal words the rule as the engine does. The next step survives; the middle gives way.
func (r namedRule) refusal() refusal {
	next := strings.Trim(clip(printable(r.Recovery), maxNextStep), ". ")
	if next == "" {
		next = handOver
	}
	cause := "rule " + r.name
	if detail := strings.Trim(clip(printable(r.Detail), maxNextStep), ". "); detail != "" {
		cause += ": " + detail
	}
	before, after := refusal{cause: " ", next: next}.parts("v100")
	return refusal{cause: clip(cause, maxMessage-maxOperation-len(before)-len(after)), next: next}
}

func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:limit-len("...")] + "..."
}

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}
