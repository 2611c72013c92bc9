package release

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// plan is what lets a namespace go.
type plan struct {
	// nothing says why there is nothing to do; the rest is then empty.
	nothing string
	// policy that gets the entry, or has it.
	policy *v1alpha1.ClusterAgentPolicy
	// unlabel is true when the label stepbeyond.dev/profile still brings the namespace in.
	unlabel bool
	// users are governed users whose sessions live in the namespace: they stay governed.
	users []string
}

// planFor decides by the manager's own reading of the policies. policyName is the value of --policy.
func (w *world) planFor(policyName string) (*plan, error) {
	name := w.namespace.Name
	now, err := w.snapshot(w.namespace.Labels)
	if err != nil {
		return nil, err
	}
	selected := slices.Contains(now.Scope.Namespaces, name)
	view, governed := now.Namespace(name)
	switch {
	case !selected && !w.enforced && slices.Contains(now.Released, name):
		return &plan{nothing: fmt.Sprintf("namespace/%s is released already: neither webhook nor floor covers it", name)}, nil
	case !selected && !w.enforced && governed:
		return nil, fmt.Errorf("namespace %s is not enforced: its profile %s only audits, so there is nothing to release", name, view.Profile)
	case !selected && !w.enforced:
		return nil, fmt.Errorf("namespace %s is not governed: no ClusterAgentPolicy selects it, and neither webhook nor floor covers it", name)
	}
	p := &plan{unlabel: selected}
	if selected {
		if err := w.checkUnlabel(view.Governing); err != nil {
			return nil, err
		}
	}
	if p.policy, err = w.choose(policyName, view.Governing); err != nil {
		return nil, err
	}
	for i := range w.policies {
		for _, user := range w.policies[i].Spec.Governed.Users {
			if user.SessionNamespace == name {
				p.users = append(p.users, user.Name)
			}
		}
	}
	return p, nil
}

// checkUnlabel refuses when a selector holds the namespace by other labels than the profile's, which are not ours to take.
func (w *world) checkUnlabel(governing string) error {
	labels := maps.Clone(w.namespace.Labels)
	delete(labels, v1alpha1.LabelProfile)
	without, err := w.snapshot(labels)
	if err != nil {
		return err
	}
	view, still := without.Namespace(w.namespace.Name)
	if !still {
		return nil
	}
	selector := ""
	for i := range w.policies {
		if w.policies[i].Name == view.Governing {
			selector = metav1.FormatLabelSelector(&w.policies[i].Spec.Governed.NamespaceSelector)
			governing = view.Governing
		}
	}
	return fmt.Errorf("ClusterAgentPolicy %s selects namespace %s by more than the label %s: %s; change what it selects first, then run this again: until then the namespace stays enforced",
		governing, w.namespace.Name, v1alpha1.LabelProfile, selector)
}

// choose finds the policy that gets the entry: the one of --policy, that has it already, that governs the namespace, or
// that is the only one.
func (w *world) choose(policyName, governing string) (*v1alpha1.ClusterAgentPolicy, error) {
	name := w.namespace.Name
	has := func(p *v1alpha1.ClusterAgentPolicy) bool { return releases(p, name) }
	is := func(wanted string) func(*v1alpha1.ClusterAgentPolicy) bool {
		return func(p *v1alpha1.ClusterAgentPolicy) bool { return p.Name == wanted }
	}
	tests := []func(*v1alpha1.ClusterAgentPolicy) bool{has, is(governing)}
	if policyName != "" {
		tests = []func(*v1alpha1.ClusterAgentPolicy) bool{is(policyName)}
	} else if len(w.policies) == 1 {
		tests = append(tests, is(w.policies[0].Name))
	}
	var names []string
	for i := range w.policies {
		names = append(names, w.policies[i].Name)
	}
	for _, test := range tests {
		for i := range w.policies {
			if test(&w.policies[i]) {
				return &w.policies[i], nil
			}
		}
	}
	switch {
	case policyName != "":
		return nil, fmt.Errorf("--policy: there is no ClusterAgentPolicy %s; there are: %s", policyName, strings.Join(names, ", "))
	case len(names) == 0:
		return nil, fmt.Errorf("there is no ClusterAgentPolicy that could release namespace %s, which stays enforced; create one again, or use --cluster", name)
	default:
		return nil, fmt.Errorf("no ClusterAgentPolicy selects namespace %s any more; choose with --policy which one releases it: %s", name, strings.Join(names, ", "))
	}
}

func releases(p *v1alpha1.ClusterAgentPolicy, namespace string) bool {
	return slices.ContainsFunc(p.Spec.Governed.Released, func(r v1alpha1.ReleasedNamespace) bool { return r.Namespace == namespace })
}
