package agentpolicy

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/status"
	"stepbeyond.dev/stepbeyond/policy"
)

// input is everything that the status of one AgentPolicy depends on.
type input struct {
	object   *v1alpha1.AgentPolicy
	snapshot *policystore.Snapshot

	// inForce tells whether the engine decides with this generation.
	inForce bool
	// problems of the object's generation; none when it is in force.
	problems []policy.Problem

	// usedBy counts the namespaces that use a profile.
	usedBy int

	// sessions and pending count the namespace's live sessions and open questions.
	sessions, pending int32
}

// observed is false while the snapshot decides with an older generation of a namespace's policy than a valid one that is
// there, so that Ready never speaks of rules that do not count yet.
func (in *input) observed() bool {
	counts := !in.profile() && in.object.Name == policystore.NamespacePolicyName && in.snapshot.Governs(in.object.Namespace)
	return !counts || in.inForce || len(in.problems) > 0
}

// desired is the whole status.
func (in *input) desired(now metav1.Time) v1alpha1.AgentPolicyStatus {
	reason, message := in.ready()
	ready := metav1.ConditionFalse
	if reason == v1alpha1.ReasonCompiled {
		ready = metav1.ConditionTrue
	}
	conditions := status.NewConditions(in.object.Status.Conditions, in.object.Generation, now)
	conditions.Set(v1alpha1.ConditionReady, ready, reason, message)
	if defect(reason) {
		conditions.Set(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, message)
	}
	desired := v1alpha1.AgentPolicyStatus{ObservedGeneration: in.object.Generation, Conditions: conditions.List()}
	in.settings(&desired)
	if !in.profile() {
		desired.Sessions, desired.PendingGrants = &in.sessions, &in.pending
	}
	for i := range in.object.Spec.Rules {
		desired.RuleStatuses = append(desired.RuleStatuses, v1alpha1.RuleStatus{
			Name: in.object.Spec.Rules[i].Name, CompiledTo: v1alpha1.CompiledToInProcess,
		})
	}
	return desired
}

// ready is the reason and the message of Ready; every reason but Compiled means False.
func (in *input) ready() (v1alpha1.ConditionReason, string) {
	own := in.object.Namespace
	if !in.profile() && in.object.Name != policystore.NamespacePolicyName {
		return v1alpha1.ReasonWrongName, fmt.Sprintf(
			"metadata.name: an AgentPolicy of namespace %s must be named %s, and this one does not count.", own, policystore.NamespacePolicyName)
	}
	if len(in.problems) > 0 {
		message := in.problems[0].Error()
		if more := len(in.problems) - 1; more > 0 {
			message += fmt.Sprintf(" (and %d more)", more)
		}
		return v1alpha1.ReasonInvalidRule, message
	}
	if in.profile() {
		if in.usedBy == 1 {
			return v1alpha1.ReasonCompiled, "Profile in use by 1 namespace."
		}
		return v1alpha1.ReasonCompiled, fmt.Sprintf("Profile in use by %d namespaces.", in.usedBy)
	}
	view, _ := in.snapshot.Namespace(own)
	switch {
	case view.Governing == "":
		return v1alpha1.ReasonProfileMissing, fmt.Sprintf("No ClusterAgentPolicy governs namespace %s, so nothing here counts.", own)
	case view.Policy == nil:
		return v1alpha1.ReasonProfileMissing, fmt.Sprintf("Profile %q of namespace %s is bound to no valid AgentPolicy.", view.Profile, own)
	}
	if field := in.undelegated(&view); field != "" {
		return v1alpha1.ReasonNotDelegated, fmt.Sprintf(
			"spec.%s: ClusterAgentPolicy %s does not delegate it, and what profile %s says counts.", field, view.Governing, view.Profile)
	}
	return v1alpha1.ReasonCompiled, fmt.Sprintf("Joined with profile %s and ClusterAgentPolicy/%s.", view.Profile, view.Governing)
}

// undelegated is the first field that the namespace's policy sets without being allowed to; empty for none. Mode strict
// allows no optional action, so it only tightens.
func (in *input) undelegated(view *policystore.Namespace) string {
	spec := &in.object.Spec
	may := func(setting v1alpha1.DelegableSetting) bool { return slices.Contains(view.Delegated, setting) }
	defaults := view.Policy.Spec.WithProfileDefaults()
	switch {
	case spec.ModelTier != "" && spec.ModelTier != defaults.ModelTier && !may(v1alpha1.DelegableModelTier):
		return "modelTier"
	case !in.mode(defaults) && !may(v1alpha1.DelegableInitiativeMode):
		return "initiative.mode"
	case spec.Initiative != nil && len(spec.Initiative.Thresholds) > 0 && !may(v1alpha1.DelegableInitiativeThresholds):
		return "initiative.thresholds"
	case len(spec.SessionTemplates) > 0 && !may(v1alpha1.DelegableSessionTemplates):
		return "sessionTemplates"
	}
	for i := range spec.Catalogue {
		if !view.MayCatalogue(spec.Catalogue[i].Match.Tools) {
			return fmt.Sprintf("catalogue[%d].match.tools", i)
		}
	}
	return ""
}

// mode tells whether the mode is one that a namespace may always have: the profile's, or strict.
func (in *input) mode(profile *v1alpha1.AgentPolicySpec) bool {
	own := in.object.Spec.Initiative
	return own == nil || own.Mode == "" || own.Mode == profile.Initiative.Mode || own.Mode == v1alpha1.InitiativeModeStrict
}

// settings fills in the profile's name and the tier and mode in force.
func (in *input) settings(desired *v1alpha1.AgentPolicyStatus) {
	spec := &in.object.Spec
	if in.profile() {
		defaults := spec.WithProfileDefaults()
		desired.ModelTier, desired.InitiativeMode = defaults.ModelTier, defaults.Initiative.Mode
		return
	}
	view, ok := in.snapshot.Namespace(in.object.Namespace)
	if !ok || in.object.Name != policystore.NamespacePolicyName {
		return
	}
	desired.Profile = view.Profile
	desired.ModelTier, desired.InitiativeMode = view.ModelTier, view.InitiativeMode
}

// defect is true for reasons that only a change of the spec can cure (kstatus: Stalled).
func defect(reason v1alpha1.ConditionReason) bool {
	return reason == v1alpha1.ReasonWrongName || reason == v1alpha1.ReasonInvalidRule || reason == v1alpha1.ReasonNotDelegated
}
