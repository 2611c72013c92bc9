package policytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

// explain says what was decided about and every reason for the class, so that a reader need not run anything to see why.
func explain(d *policy.Decision, op *policy.Operation) []string {
	t := &op.Target
	lines := []string{fmt.Sprintf("the operation is %s %s of group %q, %s, origin %s", op.Verb, t.ResourcePath(), t.Group, t.Path(), t.Origin)}
	if op.Tool != "" {
		lines[0] = fmt.Sprintf("the operation is a call of %s, verb %s, stage %s, capability %s", op.Tool, op.Verb, op.Stage, op.Capability)
	}
	for _, detail := range d.Details {
		line := detail.Code
		if detail.Fact != "" {
			line += " is " + detail.Presence.String()
		}
		line += ", so " + detail.Class.String()
		if detail.Rule != "" {
			line += " (" + detail.Rule + ")"
		}
		if detail.Why != "" {
			line += ": " + detail.Why
		}
		lines = append(lines, line)
	}
	return lines
}

// absences say why a rule or a requirement that the case wants is not in the answer.
func (s *Suite) absences(want *Want, d *policy.Decision) []string {
	var lines []string
	for _, name := range want.Rules {
		if slices.ContainsFunc(d.Details, func(detail policy.Detail) bool { return detail.Rule == name }) {
			continue
		}
		if enforcement, known := s.enforcements()[name]; !known {
			if !strings.HasPrefix(name, "baseline/") {
				lines = append(lines, fmt.Sprintf("rule %s is in no policy of the test", name))
			}
		} else if enforcement != policy.EnforcementEnforce {
			lines = append(lines, fmt.Sprintf("rule %s has enforcement %s, so it gives no class: see wouldBe", name, enforcement))
		} else {
			lines = append(lines, fmt.Sprintf("rule %s does not match the operation, or its policy does not count here", name))
		}
	}
	for _, name := range want.Requirements {
		given := func(r policy.Requirement) bool { return r.Name == name || shortName(r.Name) == name }
		if !slices.ContainsFunc(d.Approvals.Requirements, given) {
			lines = append(lines, s.whyNotRequired(name))
		}
	}
	return lines
}

// whyNotRequired says what a requirement that is not in the answer is for.
func (s *Suite) whyNotRequired(name string) string {
	for _, p := range s.agentPolicies() {
		for _, r := range p.Approvals.Requirements {
			full := p.ID.RulePrefix() + "/" + r.Name
			if full != name && r.Name != name {
				continue
			}
			var parts []string
			if len(r.Facts) > 0 {
				parts = append(parts, fmt.Sprintf("facts %v", r.Facts))
			}
			for _, rule := range r.Rules {
				part := "rule " + rule
				if _, known := s.enforcements()[rule]; !known && !strings.HasPrefix(rule, "baseline/") {
					part += ", which is in no policy of the test"
				}
				parts = append(parts, part)
			}
			if len(r.Resources) > 0 {
				parts = append(parts, "resources "+list(r.Resources))
			}
			if len(parts) == 0 {
				return fmt.Sprintf("requirement %s is for every question, and its policy does not count here, or nothing is asked", full)
			}
			return fmt.Sprintf("requirement %s is for %s", full, strings.Join(parts, "; "))
		}
	}
	return fmt.Sprintf("requirement %s is in no policy of the test", name)
}

// agentPolicies are those of the files, as the engine reads them.
func (s *Suite) agentPolicies() []policy.Policy {
	var converted []policy.Policy
	for i := range s.policies.input.Policies {
		p := &s.policies.input.Policies[i]
		converted = append(converted, policystore.FromAgentPolicy(p, p.Namespace == enforcement.SystemNamespace))
	}
	return converted
}

// enforcements of the rules of the files, by policy/name.
func (s *Suite) enforcements() map[string]policy.Enforcement {
	found := map[string]policy.Enforcement{}
	add := func(p policy.Policy) {
		for _, rule := range p.Rules {
			found[p.ID.RulePrefix()+"/"+rule.Name] = rule.Enforcement
		}
	}
	for i := range s.policies.input.Cluster {
		add(policystore.FromClusterAgentPolicy(&s.policies.input.Cluster[i]))
	}
	for _, p := range s.agentPolicies() {
		add(p)
	}
	return found
}

// Untouched lists the rules of the files, as policy/name and sorted, that matched in no case. Those of the baseline do not
// count.
func (s *Suite) Untouched(results []Result) []string {
	rest := s.enforcements()
	for i := range results {
		for _, d := range results[i].Decisions {
			for _, detail := range d.Details {
				delete(rest, detail.Rule)
			}
			for _, would := range d.WouldBe {
				delete(rest, would.Rule)
			}
		}
	}
	return slices.Sorted(maps.Keys(rest))
}

func shortName(name string) string { return name[strings.LastIndex(name, "/")+1:] }
