package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// session judges an AgentSession that a person opens. An update is the schema's to judge: everything that widens is
// immutable, and a deadline in the past ends the session.
func (r *objectReview) session(ctx context.Context) (field.ErrorList, error) {
	session, _, err := read[v1alpha1.AgentSession](r.req)
	if err != nil || r.req.Operation != admissionv1.Create {
		return nil, err
	}
	found := checkOpener(session, r.caller.Username)
	spec := field.NewPath("spec")
	if !session.Spec.DeadlineTime.After(r.now) {
		found = append(found, field.Invalid(spec.Child("deadlineTime"), omitted, "has passed; give a time to come"))
	}
	namespace := r.req.Namespace
	if !r.snapshot.Governs(namespace) {
		joins, err := r.joins(ctx)
		if err != nil {
			return nil, err
		}
		if joins {
			return append(found, r.notYetGoverned()), nil
		}
		return append(found, field.Invalid(field.NewPath("metadata", "namespace"), omitted, fmt.Sprintf(
			"%s is not governed, so a session there would bind nobody; label it %s=PROFILE or use a governed namespace", namespace, v1alpha1.LabelProfile))), nil
	}
	id := &session.Spec.Identity
	if id.Type == v1alpha1.IdentityUser {
		if home, listed := r.snapshot.GovernedUser(id.UserName); !listed || home != namespace {
			found = append(found, field.Invalid(spec.Child("identity", "userName"), omitted, fmt.Sprintf(
				"is not a governed user with sessionNamespace %s; the platform team lists it in spec.governed.users of a ClusterAgentPolicy", namespace)))
		}
		return found, nil
	}
	if template, ok := r.snapshot.Template(namespace, id.ServiceAccountName); ok {
		found = append(found, checkAuthority(spec.Child("authority"), &session.Spec.Authority, &template)...)
	}
	return found, nil
}

// checkAuthority keeps a session inside what the profile gives the pods of the same ServiceAccount: opening a session by
// hand is no way around it.
func checkAuthority(path *field.Path, a *v1alpha1.Authority, template *v1alpha1.SessionTemplate) field.ErrorList {
	var found field.ErrorList
	bound := &template.Authority
	beyond := fmt.Sprintf("exceeds session template %q; leave it out, or the platform team widens the template", template.Name)
	for i, stage := range a.Stages {
		if !slices.Contains(bound.Stages, stage) {
			found = append(found, field.Invalid(path.Child("stages").Index(i), omitted, beyond))
		}
	}
	for i, capability := range a.Capabilities {
		if !slices.Contains(bound.Capabilities, capability) {
			found = append(found, field.Invalid(path.Child("capabilities").Index(i), omitted, beyond))
		}
	}
	if len(bound.Kubernetes) > 0 && len(a.Kubernetes) == 0 {
		found = append(found, field.Required(path.Child("kubernetes"),
			fmt.Sprintf("session template %q narrows the writes, so this session must narrow them as well", template.Name)))
	}
	for i := range a.Kubernetes {
		within := func(b v1alpha1.KubernetesAuthority) bool { return narrows(&a.Kubernetes[i], &b) }
		if len(bound.Kubernetes) > 0 && !slices.ContainsFunc(bound.Kubernetes, within) {
			found = append(found, field.Invalid(path.Child("kubernetes").Index(i), omitted, "no single entry covers it: it "+beyond))
		}
	}
	return append(found, checkBudgets(path.Child("budgets"), a.Budgets, bound.Budgets, beyond)...)
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
	return all(a.Groups, b.Groups, func(group, by string) bool { return by == "*" || by == group }) &&
		all(a.Verbs, b.Verbs, func(verb, by v1alpha1.Verb) bool { return by == verb }) &&
		all(a.Resources, b.Resources, resourceWithin) &&
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
