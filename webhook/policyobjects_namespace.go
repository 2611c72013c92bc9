package webhook

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
	delegated, err := r.delegated(ctx)
	if err != nil {
		return nil, err
	}
	return append(found, checkDelegated(&p.Spec, delegated)...), nil
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

// checkDelegated lets a namespace set what is delegated to it, and rules, which only tighten. Approvals, caps, retention
// and confidence are the profile's.
func checkDelegated(spec *v1alpha1.AgentPolicySpec, delegated []v1alpha1.DelegableSetting) field.ErrorList {
	var found field.ErrorList
	path := field.NewPath("spec")
	for _, setting := range []struct {
		set  bool
		path *field.Path
		name v1alpha1.DelegableSetting
	}{
		{spec.ModelTier != "", path.Child("modelTier"), v1alpha1.DelegableModelTier},
		{spec.Initiative != nil && spec.Initiative.Mode != "", path.Child("initiative", "mode"), v1alpha1.DelegableInitiativeMode},
		{spec.Initiative != nil && len(spec.Initiative.Thresholds) > 0, path.Child("initiative", "thresholds"), v1alpha1.DelegableInitiativeThresholds},
		{len(spec.SessionTemplates) > 0, path.Child("sessionTemplates"), v1alpha1.DelegableSessionTemplates},
	} {
		if setting.set && !slices.Contains(delegated, setting.name) {
			found = append(found, field.Forbidden(setting.path, fmt.Sprintf(
				"is not delegated to this namespace; leave it to the profile, or the platform team adds %s to spec.delegation.namespaceMaySet of the ClusterAgentPolicy that governs it", setting.name)))
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

// delegated are the settings that the ClusterAgentPolicy which governs the review's namespace delegates; none when no
// valid one does. Like the policy store it takes the first by name.
func (r *objectReview) delegated(ctx context.Context) ([]v1alpha1.DelegableSetting, error) {
	var namespace corev1.Namespace
	if err := r.reader.Get(ctx, client.ObjectKey{Name: r.req.Namespace}, &namespace); err != nil {
		return nil, fmt.Errorf("read namespace %s: %w", r.req.Namespace, err)
	}
	policies, err := r.clusterPolicies(ctx)
	if err != nil {
		return nil, err
	}
	for i := range policies {
		spec := &policies[i].Spec
		selector, err := metav1.LabelSelectorAsSelector(&spec.Governed.NamespaceSelector)
		if err != nil || selector.Empty() || !selector.Matches(labels.Set(namespace.Labels)) || len(policystore.CheckCluster(&policies[i])) > 0 {
			continue
		}
		if spec.Delegation == nil {
			return nil, nil
		}
		return spec.Delegation.NamespaceMaySet, nil
	}
	return nil, nil
}
