package enforcement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/confinement"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/status"
	"stepbeyond.dev/stepbeyond/policy"
)

// input is everything that the status of one ClusterAgentPolicy depends on.
type input struct {
	object      *v1alpha1.ClusterAgentPolicy
	snapshot    *policystore.Snapshot
	observation Observation
	// inForce is the generation of the object that the engine decides with; 0 when none is.
	inForce int64
	// problems of the object's generation; none when it is in force.
	problems []policy.Problem
	// namespaces that the object's selector governs, sorted.
	namespaces []string
	// unbound are profiles whose AgentPolicy does not exist.
	unbound []v1alpha1.ProfileBinding
	// escapes are what RBAC lets the governed identities do past admission.
	escapes []confinement.Finding
}

// observed is false while the snapshot is older than the object, so that Ready never speaks of a generation that nobody
// decides with yet.
func (in input) observed() bool {
	return in.inForce == in.object.Generation || len(in.problems) > 0
}

// untilStale is how long a new leader leaves the status as it found it: until its first proof, while the answer of the one
// before it still counts. A restart then changes nothing. False stays until a proof says otherwise; only what was proven can
// grow too old to be believed.
func (in input) untilStale(now time.Time) time.Duration {
	before := meta.FindStatusCondition(in.object.Status.Conditions, string(v1alpha1.ConditionEnforcementReady))
	if before == nil || !in.observation.Proof.Time.IsZero() {
		return 0
	}
	if e := in.object.Status.Enforcement; before.Status == metav1.ConditionTrue && e != nil && e.LastProvenTime != nil {
		return e.LastProvenTime.Add(staleAfter).Sub(now)
	}
	return proveEvery
}

// problemsOf an object that is not in force. What the snapshot says of the object may be about an older one, except that other objects
// bind the same profile.
func problemsOf(snapshot *policystore.Snapshot, object *v1alpha1.ClusterAgentPolicy) []policy.Problem {
	problems := policystore.CheckCluster(object)
	for _, problem := range snapshot.Problems(object.UID) {
		if problem.Field == fieldProfiles {
			problems = append(problems, problem)
		}
	}
	return problems
}

// desired is the whole status.
func (in input) desired(now metav1.Time) v1alpha1.ClusterAgentPolicyStatus {
	conditions := status.NewConditions(in.object.Status.Conditions, in.object.Generation, now)
	reason, message := in.ready()
	compiled := metav1.ConditionFalse
	if reason == v1alpha1.ReasonCompiled {
		compiled = metav1.ConditionTrue
	}
	conditions.Set(v1alpha1.ConditionReady, compiled, reason, message)
	proven, why, text := in.enforcementReady()
	conditions.Set(v1alpha1.ConditionEnforcementReady, proven, why, text)
	confined, which, found := in.identitiesConfined()
	conditions.Set(v1alpha1.ConditionIdentitiesConfined, confined, which, found)
	if defect(reason) {
		conditions.Set(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, message)
	}
	return v1alpha1.ClusterAgentPolicyStatus{
		ObservedGeneration: in.object.Generation,
		Governed:           in.governed(),
		Enforcement:        in.enforcement(),
		RuleStatuses:       in.ruleStatuses(),
		Conditions:         conditions.List(),
	}
}

// Fields of problems, as package policystore names them.
const (
	fieldBaseline = "baselineVersion"
	fieldProfiles = "profiles"
	fieldGoverned = "governed."
	fieldSelector = fieldGoverned + "namespaceSelector"
)

// ready is the reason and the message of Ready; every reason but Compiled means False.
func (in input) ready() (v1alpha1.ConditionReason, string) {
	if len(in.problems) > 0 {
		return reasonOf(in.problems[0]), in.defects()
	}
	if err := in.observation.Problem; scopeReason(err) != "" {
		return scopeReason(err), err.Error() + "; the last scope stays in force."
	}
	if len(in.unbound) > 0 {
		binding := in.unbound[0]
		return v1alpha1.ReasonProfileMissing, fmt.Sprintf("Profile %s is bound to AgentPolicy %s/%s, which does not exist.",
			binding.Name, admission.SystemNamespace, binding.AgentPolicyName)
	}
	for _, name := range in.namespaces {
		if view, _ := in.snapshot.Namespace(name); view.Policy == nil {
			refused := "is refused"
			if slices.Contains(in.snapshot.Onboarding, name) {
				refused = "would be refused"
			}
			return v1alpha1.ReasonProfileMissing, fmt.Sprintf(
				"Namespace %s %s every governed write: its profile %q is bound to no valid AgentPolicy, or its own AgentPolicy is invalid.",
				name, refused, view.Profile)
		}
	}
	return v1alpha1.ReasonCompiled, fmt.Sprintf("%s, %s, baseline %s.",
		count(len(in.object.Spec.Rules), "rule", "rules"), count(len(in.object.Spec.Catalogue), "catalogue entry", "catalogue entries"),
		in.object.Spec.BaselineVersion)
}

func reasonOf(problem policy.Problem) v1alpha1.ConditionReason {
	switch problem.Field {
	case fieldBaseline:
		return v1alpha1.ReasonUnknownBaseline
	case fieldProfiles:
		return v1alpha1.ReasonDuplicateProfile
	case fieldSelector:
		return v1alpha1.ReasonInvalidSelector
	}
	if strings.HasPrefix(problem.Field, fieldGoverned) {
		return v1alpha1.ReasonInvalidScope
	}
	return v1alpha1.ReasonInvalidRule
}

// defect is true for reasons that only a change of the spec can cure (kstatus: Stalled).
func defect(reason v1alpha1.ConditionReason) bool {
	return slices.Contains([]v1alpha1.ConditionReason{
		v1alpha1.ReasonUnknownBaseline, v1alpha1.ReasonDuplicateProfile, v1alpha1.ReasonInvalidSelector,
		v1alpha1.ReasonInvalidRule, v1alpha1.ReasonScopeTooLarge, v1alpha1.ReasonInvalidScope,
	}, reason)
}

// scopeReason is why a scope does not compile; empty for no error and for a write that failed.
func scopeReason(err error) v1alpha1.ConditionReason {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(admission.ErrScopeTooLarge):
		return v1alpha1.ReasonScopeTooLarge
	case slices.ContainsFunc([]error{admission.ErrNeverGoverned, admission.ErrNeverExempt, admission.ErrMalformedEntry}, is):
		return v1alpha1.ReasonInvalidScope
	default:
		return ""
	}
}

func (in input) governed() *v1alpha1.GovernedCounts {
	counts := &v1alpha1.GovernedCounts{Users: int32(len(in.object.Spec.Governed.Users))}
	for _, name := range in.namespaces {
		if _, enforced := slices.BinarySearch(in.observation.Scope.Namespaces, name); enforced {
			counts.Namespaces++
		} else if _, wanted := slices.BinarySearch(in.snapshot.Scope.Namespaces, name); !wanted {
			counts.OnboardingNamespaces++
		}
	}
	return counts
}

// defects is the first problem, how many more there are, and what is in force meanwhile.
func (in input) defects() string {
	message := in.problems[0].Error()
	if more := len(in.problems) - 1; more > 0 {
		message += fmt.Sprintf(" (and %d more)", more)
	}
	if in.inForce > 0 {
		message += fmt.Sprintf("; generation %d stays in force", in.inForce)
	}
	return message
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
