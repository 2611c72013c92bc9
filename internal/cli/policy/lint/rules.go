package lint

import (
	"fmt"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/baseline"
)

// checked is one policy as the engine reads it, with its object's name.
type checked struct {
	policy.Policy
	object string
}

// known are all policies that were read.
func (w *world) known() []checked {
	var found []checked
	for i := range w.policies.Cluster {
		p := &w.policies.Cluster[i]
		found = append(found, checked{policystore.FromClusterAgentPolicy(p), "ClusterAgentPolicy " + p.Name})
	}
	for i := range w.policies.Agent {
		p := &w.policies.Agent[i]
		found = append(found, checked{policystore.FromAgentPolicy(p, p.Namespace == enforcement.SystemNamespace), "AgentPolicy " + p.Namespace + "/" + p.Name})
	}
	return found
}

// counting are the policies whose rules are checked: all of them, or those that count in the selected namespace.
func (w *world) counting() []checked {
	if w.everywhere {
		return w.known()
	}
	settings, _ := w.policies.Snapshot.Namespace(w.selected[0])
	return slices.DeleteFunc(w.known(), func(p checked) bool {
		return p.ID.Kind == policy.KindProfile && (settings.Policy == nil || settings.Policy.Name != p.ID.Name)
	})
}

// rules finds rules and catalogue entries that no request can ever match, and resources in them that do not exist.
func (w *world) rules() []Finding {
	var found []Finding
	for _, p := range w.counting() {
		for i := range p.Rules {
			found = append(found, w.matches(p.object, "rule "+p.Rules[i].Name, fmt.Sprintf("spec.rules[%d]", i), &p.Rules[i].Match)...)
		}
		for i := range p.Catalogue {
			found = append(found, w.matches(p.object, "catalogue entry "+p.Catalogue[i].Name, fmt.Sprintf("spec.catalogue[%d]", i), &p.Catalogue[i].Match)...)
		}
	}
	return found
}

func (w *world) matches(object, what, path string, match *policy.Match) []Finding {
	var dead []string
	var found []Finding
	for i := range match.Kubernetes {
		r := read(&match.Kubernetes[i], w.kinds)
		at := fmt.Sprintf("%s.match.kubernetes[%d]", path, i)
		switch {
		case r.dead:
			dead = append(dead, r.why)
			found = append(found, Finding{
				Severity: Info, Check: CheckUnknownResource, Object: object,
				Message: fmt.Sprintf("%s matches nothing by %s: %s.", sentence(what), at, r.why),
				Advice:  "Leave it if that API is installed later or elsewhere; else take it out.",
			})
		case len(r.missing) > 0:
			found = append(found, Finding{
				Severity: Warning, Check: CheckUnknownResource, Object: object,
				Message: fmt.Sprintf("%s names %s, which %s does not have.", sentence(what), w.kinds.spelled(r.missing), groupsText(match.Kubernetes[i].Groups)),
				Advice:  fmt.Sprintf("Correct %s.resources; plurals are meant, as kubectl api-resources lists them.", at),
			})
		}
	}
	if len(dead) < len(match.Kubernetes) || len(dead) == 0 || len(match.Tools) > 0 {
		return found
	}
	slices.Sort(dead)
	return []Finding{{
		Severity: Warning, Check: CheckNeverMatches, Object: object,
		Message: fmt.Sprintf("%s can never match: %s.", sentence(what), strings.Join(slices.Compact(dead), "; ")),
		Advice:  fmt.Sprintf("Correct %s.match, or leave it if that API is installed later or elsewhere.", path),
	}}
}

// sentence begins with a capital.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// ruleNames are all rules and catalogue entries that can be among the reasons of a question.
func (w *world) ruleNames() map[string]bool {
	names := map[string]bool{}
	add := func(p *policy.Policy) {
		for i := range p.Rules {
			names[p.ID.RulePrefix()+"/"+p.Rules[i].Name] = true
		}
		for i := range p.Catalogue {
			names[p.ID.RulePrefix()+"/"+p.Catalogue[i].Name] = true
		}
	}
	for _, version := range baseline.Versions() {
		if p, err := baseline.Load(version); err == nil {
			add(&p)
		}
	}
	for _, p := range w.known() {
		add(&p.Policy)
	}
	return names
}

// missing are the rules that no policy has. What the own policies of other namespaces call theirs is known only where all
// were read.
func (w *world) missing(rules []string) []string {
	names := w.ruleNames()
	return slices.DeleteFunc(slices.Clone(rules), func(rule string) bool {
		namespace, _, _ := strings.Cut(rule, "/")
		foreign := strings.Count(rule, "/") > 1 && !w.everywhere && namespace != w.selected[0]
		return names[rule] || foreign
	})
}

// requirements finds requirements on approvers for rules that do not exist.
func (w *world) requirements() []Finding {
	var found []Finding
	for _, p := range w.counting() {
		for i := range p.Approvals.Requirements {
			r := &p.Approvals.Requirements[i]
			missing := w.missing(r.Rules)
			if len(missing) == 0 {
				continue
			}
			finding := Finding{
				Severity: Warning, Check: CheckRequirementNever, Object: p.object,
				Message: fmt.Sprintf("Requirement %s is for %s, which no policy has.", r.Name, strings.Join(missing, ", ")),
				Advice:  fmt.Sprintf("Correct spec.approvals.requirements[%d].match.rules; a rule is called policy/rule, as grants name it.", i),
			}
			if len(missing) == len(r.Rules) && len(r.Facts) == 0 {
				finding.Message = fmt.Sprintf("Requirement %s is for nothing but %s, which no policy has, so it is never asked for.", r.Name, strings.Join(missing, ", "))
			}
			found = append(found, finding)
		}
	}
	return found
}
