package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

// refused is what a schema refuses in a file.
func refused(problem error) Finding {
	return Finding{
		Severity: Error, Check: CheckPolicyRefused, Object: "file",
		Message: problem.Error() + ".", Advice: "An API server refuses this; correct the file.",
	}
}

// notInForce finds policies that the manager cannot decide by.
func (w *world) notInForce() []Finding {
	var found []Finding
	add := func(object string, problems []policy.Problem) {
		for _, problem := range problems {
			found = append(found, Finding{
				Severity: Error, Check: CheckNotInForce, Object: object,
				Message: fmt.Sprintf("This generation cannot come into force: spec.%s.", strings.TrimSuffix(problem.Error(), ".")),
				Advice:  "Correct it. Until then an earlier generation counts, and without one everything governed is refused.",
			})
		}
	}
	for i := range w.policies.Cluster {
		p := &w.policies.Cluster[i]
		add("ClusterAgentPolicy "+p.Name, w.policies.Snapshot.Problems(p.UID))
	}
	for i := range w.policies.Agent {
		p := &w.policies.Agent[i]
		add("AgentPolicy "+p.Namespace+"/"+p.Name, policystore.CheckAgentPolicy(p))
	}
	return found
}

// unbound finds profiles without settings, and namespaces in which everything governed is refused for want of a profile.
func (w *world) unbound() []Finding {
	var found []Finding
	for i := range w.policies.Cluster {
		p := &w.policies.Cluster[i]
		for _, binding := range p.Spec.Profiles {
			if w.profile(binding.AgentPolicyName) {
				continue
			}
			finding := Finding{
				Severity: Error, Check: CheckProfileMissing, Object: "ClusterAgentPolicy " + p.Name,
				Message: fmt.Sprintf("Profile %s is bound to AgentPolicy %s/%s, which does not exist.", binding.Name, enforcement.SystemNamespace, binding.AgentPolicyName),
				Advice:  "Create it, or take the binding away. A namespace with this label refuses every governed write.",
			}
			if w.files {
				finding.Severity, finding.Message = Warning, strings.Replace(finding.Message, "which does not exist", "which stands in none of the files", 1)
			}
			found = append(found, finding)
		}
	}
	for _, name := range w.selected {
		if settings, _ := w.policies.Snapshot.Namespace(name); settings.Policy == nil {
			found = append(found, Finding{
				Severity: Error, Check: CheckProfileMissing, Object: "Namespace " + name,
				Message: fmt.Sprintf("Every governed write is refused: no valid AgentPolicy is bound to its profile %q, or its own AgentPolicy is not valid.", settings.Profile),
				Advice:  fmt.Sprintf("Give it the label %s with the name of a profile: %s.", v1alpha1.LabelProfile, w.profileNames()),
			})
		}
	}
	return found
}

func (w *world) profile(agentPolicy string) bool {
	return slices.ContainsFunc(w.policies.Agent, func(p v1alpha1.AgentPolicy) bool {
		return p.Namespace == enforcement.SystemNamespace && p.Name == agentPolicy
	})
}

func (w *world) profileNames() string {
	var names []string
	for i := range w.policies.Cluster {
		for _, binding := range w.policies.Cluster[i].Spec.Profiles {
			names = append(names, binding.Name)
		}
	}
	if len(names) == 0 {
		return "none is bound yet"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// exemptions finds those that have ended and those that let nobody go.
func (w *world) exemptions() []Finding {
	var found []Finding
	for i := range w.policies.Cluster {
		p := &w.policies.Cluster[i]
		for _, exempt := range p.Spec.Governed.ExemptServiceAccounts {
			if !w.everywhere && exempt.Namespace != w.selected[0] {
				continue
			}
			finding := Finding{Severity: Warning, Check: CheckExemptionUnused, Object: "ClusterAgentPolicy " + p.Name,
				Advice: "Take the entry off spec.governed.exemptServiceAccounts."}
			of := fmt.Sprintf("The exemption of ServiceAccount %s/%s (%s)", exempt.Namespace, exempt.Name, exempt.Reason)
			switch key := (types.NamespacedName{Namespace: exempt.Namespace, Name: exempt.Name}); {
			case exempt.ExpirationTime != nil && !w.now.Before(exempt.ExpirationTime.Time):
				finding.Check = CheckExemptionEnded
				finding.Message = fmt.Sprintf("%s ended at %s: the account is governed.", of, exempt.ExpirationTime.UTC().Format("2006-01-02 15:04Z"))
			case w.files:
				continue
			case !w.policies.Snapshot.Governs(exempt.Namespace) && !w.broken():
				finding.Message = fmt.Sprintf("%s matches nobody: namespace %s is not governed or does not exist.", of, exempt.Namespace)
			case w.accounts != nil && !w.accounts[key]:
				finding.Message = fmt.Sprintf("%s matches nobody: the account does not exist. Whoever makes one of that name is not governed.", of)
			default:
				continue
			}
			found = append(found, finding)
		}
	}
	return found
}

// broken tells that a cluster policy is not in force, so that nobody knows here whom it governs.
func (w *world) broken() bool {
	return slices.ContainsFunc(w.policies.Cluster, func(p v1alpha1.ClusterAgentPolicy) bool {
		return len(w.policies.Snapshot.Problems(p.UID)) > 0
	})
}

// mostNamespaces bounds how many namespaces a sentence names.
const mostNamespaces = 5

// templates finds session templates whose ServiceAccount does not exist: nobody gets a session from them.
func (w *world) templates() []Finding {
	if w.accounts == nil {
		return nil
	}
	type template struct{ object, name, account string }
	var order []template
	without := map[template][]string{}
	for _, namespace := range w.selected {
		settings, _ := w.policies.Snapshot.Namespace(namespace)
		for i := range settings.Templates {
			t := template{w.templatesOf(namespace, &settings), settings.Templates[i].Name, settings.Templates[i].ServiceAccountName}
			if w.accounts[types.NamespacedName{Namespace: namespace, Name: t.account}] {
				continue
			}
			if without[t] == nil {
				order = append(order, t)
			}
			without[t] = append(without[t], namespace)
		}
	}
	var found []Finding
	for _, t := range order {
		in := without[t]
		names := strings.Join(in[:min(len(in), mostNamespaces)], ", ")
		if more := len(in) - mostNamespaces; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		found = append(found, Finding{
			Severity: Warning, Check: CheckTemplateUnused, Object: t.object,
			Message: fmt.Sprintf("Session template %s is for ServiceAccount %s, which does not exist in namespace %s.", t.name, t.account, names),
			Advice:  fmt.Sprintf("Create it (kubectl -n %s create serviceaccount %s), or correct the template; agents under another account are refused.", in[0], t.account),
		})
	}
	return found
}

// templatesOf names the object that holds a namespace's session templates.
func (w *world) templatesOf(namespace string, settings *policystore.Namespace) string {
	own := w.policies.Own(namespace)
	if own != nil && len(own.Spec.SessionTemplates) > 0 && slices.Contains(settings.Delegated, v1alpha1.DelegableSessionTemplates) {
		return "AgentPolicy " + own.Namespace + "/" + own.Name
	}
	return "AgentPolicy " + settings.Policy.Namespace + "/" + settings.Policy.Name
}
