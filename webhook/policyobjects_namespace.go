package webhook

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

// agentPolicy judges an AgentPolicy: in the system namespace a profile, elsewhere the namespace's own policy.
func (r *objectReview) agentPolicy(ctx context.Context) (field.ErrorList, error) {
	p, _, err := read[v1alpha1.AgentPolicy](r.req)
	if err != nil {
		return nil, err
	}
	found := problemErrors(policystore.CheckAgentPolicy(p))
	found = append(found, checkTemplates(p.Spec.SessionTemplates)...)
	if r.req.Namespace == enforcement.SystemNamespace {
		return found, nil
	}
	if r.req.Name != policystore.NamespacePolicyName {
		found = append(found, field.Invalid(field.NewPath("metadata", "name"), omitted, fmt.Sprintf(
			"outside %s an AgentPolicy is named %s, because a namespace has one", enforcement.SystemNamespace, policystore.NamespacePolicyName)))
	}
	view, governed := r.snapshot.Namespace(r.req.Namespace)
	beyond := checkDelegated(&p.Spec, &view)
	if len(beyond) > 0 && !governed {
		joins, err := r.joins(ctx)
		if err != nil {
			return nil, err
		}
		if joins {
			beyond = field.ErrorList{r.notYetGoverned()}
		}
	}
	return append(found, beyond...), nil
}

// checkTemplates refuses a second template of one ServiceAccount: its pods would have two answers.
func checkTemplates(templates []v1alpha1.SessionTemplate) field.ErrorList {
	var found field.ErrorList
	first := map[string]string{}
	for i := range templates {
		account := templates[i].ServiceAccountName
		if name, taken := first[account]; taken {
			found = append(found, field.Invalid(field.NewPath("spec", "sessionTemplates").Index(i).Child("serviceAccountName"), omitted,
				fmt.Sprintf("is the ServiceAccount of template %s as well; keep one of the two", name)))
			continue
		}
		first[account] = templates[i].Name
	}
	return found
}

// checkDelegated lets a namespace set what is delegated to it, and what only tightens: rules and the mode strict.
// Approvals, caps, retention and confidence are the profile's.
func checkDelegated(spec *v1alpha1.AgentPolicySpec, view *policystore.Namespace) field.ErrorList {
	var found field.ErrorList
	path := field.NewPath("spec")
	for _, setting := range []struct {
		set  bool
		path *field.Path
		name v1alpha1.DelegableSetting
	}{
		{spec.ModelTier != "", path.Child("modelTier"), v1alpha1.DelegableModelTier},
		{spec.Initiative != nil && spec.Initiative.Mode != "" && spec.Initiative.Mode != v1alpha1.InitiativeModeStrict, path.Child("initiative", "mode"), v1alpha1.DelegableInitiativeMode},
		{spec.Initiative != nil && len(spec.Initiative.Thresholds) > 0, path.Child("initiative", "thresholds"), v1alpha1.DelegableInitiativeThresholds},
		{len(spec.SessionTemplates) > 0, path.Child("sessionTemplates"), v1alpha1.DelegableSessionTemplates},
	} {
		if setting.set && !slices.Contains(view.Delegated, setting.name) {
			found = append(found, field.Forbidden(setting.path, fmt.Sprintf(
				"is not delegated to this namespace; leave it to the profile, or the platform team adds %s to spec.delegation.namespaceMaySet of the ClusterAgentPolicy that governs it", setting.name)))
		}
	}
	for i := range spec.Catalogue {
		if !view.MayCatalogue(spec.Catalogue[i].Match.Tools) {
			found = append(found, field.Forbidden(path.Child("catalogue").Index(i).Child("match", "tools"),
				"names a tool that is not delegated to this namespace; begin every tool with a prefix of spec.delegation.catalogueToolPrefixes of the ClusterAgentPolicy that governs it"))
		}
	}
	for _, setting := range []struct {
		set  bool
		path *field.Path
	}{
		{spec.Confidence != nil, path.Child("confidence")},
		{spec.Approvals != nil, path.Child("approvals")},
		{spec.Caps != nil, path.Child("caps")},
		{spec.Retention != nil, path.Child("retention")},
	} {
		if setting.set {
			found = append(found, field.Forbidden(setting.path,
				"belongs to the profile; a namespace's own policy tightens with rules, or the platform team makes another profile"))
		}
	}
	return found
}

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// joins tells whether the review's namespace, which the snapshot does not govern, carries the label of a profile. Its
// creation or its label is then younger than the snapshot, so it is read live: no cache is newer for sure.
func (r *objectReview) joins(ctx context.Context) (bool, error) {
	var namespace corev1.Namespace
	err := r.live.Get(ctx, client.ObjectKey{Name: r.req.Namespace}, &namespace)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read namespace %s: %w", r.req.Namespace, err)
	}
	return namespace.Labels[v1alpha1.LabelProfile] != "", nil
}

func (r *objectReview) notYetGoverned() *field.Error {
	return field.Invalid(field.NewPath("metadata", "namespace"), omitted, fmt.Sprintf(
		"%s is not governed yet; apply it again in a moment, and if that changes nothing no ClusterAgentPolicy selects it", r.req.Namespace))
}
