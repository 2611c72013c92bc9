package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

// verbUngovern allows to let a namespace go.
const verbUngovern = "ungovern"

// maxProblem bounds what is said about one field: a compiler can quote the expression that somebody wrote.
const maxProblem = 300

// clusterPolicy judges a ClusterAgentPolicy. One that passes here comes into force.
func (r *objectReview) clusterPolicy(ctx context.Context) (field.ErrorList, error) {
	p, old, err := read[v1alpha1.ClusterAgentPolicy](r.req)
	if err != nil {
		return nil, err
	}
	found := problemErrors(policystore.CheckCluster(p))
	taken, err := r.checkProfiles(ctx, p)
	if err != nil {
		return nil, err
	}
	released, err := r.checkReleased(ctx, p, old)
	if err != nil {
		return nil, err
	}
	return append(append(found, taken...), released...), nil
}

// problemErrors names field, rule and place of what does not compile.
func problemErrors(problems []policy.Problem) field.ErrorList {
	var found field.ErrorList
	for _, problem := range problems {
		where := ""
		switch {
		case strings.HasPrefix(problem.Field, "rules["):
			where = "rule " + problem.Rule
		case strings.HasPrefix(problem.Field, "catalogue["):
			where = "entry " + problem.Rule
		}
		if problem.Line > 0 {
			where += fmt.Sprintf(", line %d, column %d", problem.Line, problem.Column)
		}
		detail := strings.Join(strings.Fields(problem.Message), " ")
		if where != "" {
			detail = where + ": " + detail
		}
		if len(detail) > maxProblem {
			detail = strings.ToValidUTF8(detail[:maxProblem], "") + "..."
		}
		found = append(found, field.Invalid(field.NewPath("spec").Child(problem.Field), omitted, detail))
	}
	return found
}

// +kubebuilder:rbac:groups=stepbeyond.dev,resources=clusteragentpolicies,verbs=get;list;watch

// checkProfiles refuses a profile name that another ClusterAgentPolicy binds: two bindings of one name would put both
// objects out of force.
func (r *objectReview) checkProfiles(ctx context.Context, p *v1alpha1.ClusterAgentPolicy) (field.ErrorList, error) {
	others, err := r.clusterPolicies(ctx)
	if err != nil {
		return nil, err
	}
	var found field.ErrorList
	for i, binding := range p.Spec.Profiles {
		for j := range others {
			same := func(b v1alpha1.ProfileBinding) bool { return b.Name == binding.Name }
			if others[j].Name != r.req.Name && slices.ContainsFunc(others[j].Spec.Profiles, same) {
				found = append(found, field.Invalid(field.NewPath("spec", "profiles").Index(i).Child("name"), omitted,
					fmt.Sprintf("profile %s is bound by ClusterAgentPolicy %s; bind it in one of the two", binding.Name, others[j].Name)))
			}
		}
	}
	return found, nil
}

// clusterPolicies lists them by name, so that the first that governs a namespace is always the same.
func (r *objectReview) clusterPolicies(ctx context.Context) ([]v1alpha1.ClusterAgentPolicy, error) {
	var list v1alpha1.ClusterAgentPolicyList
	if err := r.reader.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list cluster agent policies: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.ClusterAgentPolicy) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// checkReleased wants the verb ungovern of who adds an entry, and a credential of their own: it is the one edit that lets a
// namespace go, and an agent that may impersonate would look like its owner in everything but the credential.
func (r *objectReview) checkReleased(ctx context.Context, p, old *v1alpha1.ClusterAgentPolicy) (field.ErrorList, error) {
	var had []v1alpha1.ReleasedNamespace
	if old != nil {
		had = old.Spec.Governed.Released
	}
	var found field.ErrorList
	for i, entry := range p.Spec.Governed.Released {
		same := func(b v1alpha1.ReleasedNamespace) bool { return b.Namespace == entry.Namespace }
		if !slices.ContainsFunc(had, same) {
			found = append(found, field.Forbidden(field.NewPath("spec", "governed", "released").Index(i),
				"letting a namespace go needs the verb ungovern on clusteragentpolicies; ask who administers them"))
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	if !r.caller.HasCredential() {
		for _, refused := range found {
			refused.Detail = "letting a namespace go needs your own certificate or token, without --as"
		}
		return found, nil
	}
	if allowed, err := r.mayDo(ctx, verbUngovern, resourceClusterPolicies); err != nil || allowed {
		return nil, err
	}
	return found, nil
}
