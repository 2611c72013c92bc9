package enforcement

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

// forbidden are the FORBIDDEN rules of the cluster policies in force. While it is not known whether the other ones still
// hold, because no cluster policy is left or one has never been valid since the start, the live policy's stay as well.
func (r *Scope) forbidden(ctx context.Context, snapshot *policystore.Snapshot) (admission.Forbidden, error) {
	compiled := admission.CompileForbidden(snapshot.Cluster)
	complete, err := r.complete(ctx, snapshot)
	if err != nil || complete {
		return compiled, err
	}
	var live admissionregistrationv1.ValidatingAdmissionPolicy
	if found, err := r.read(ctx, admission.FloorForbidden, &live); !found {
		return compiled, err
	}
	inForce := make([]string, 0, len(snapshot.Cluster))
	for i := range snapshot.Cluster {
		inForce = append(inForce, snapshot.Cluster[i].ID.RulePrefix())
	}
	compiled.Keep(&live, inForce)
	return compiled, nil
}

// ruleStatuses say where each rule is enforced. A rule is in the admission policy when it was written there.
func (in input) ruleStatuses() []v1alpha1.RuleStatus {
	own := policystore.FromClusterAgentPolicy(in.object)
	compiled := admission.CompileForbidden([]policy.Policy{own})
	apart := map[string]admission.InProcess{}
	for _, left := range compiled.InProcess() {
		apart[left.Name] = left
	}
	var statuses []v1alpha1.RuleStatus
	for i := range own.Rules {
		name := own.ID.RulePrefix() + "/" + own.Rules[i].Name
		s := v1alpha1.RuleStatus{Name: own.Rules[i].Name, CompiledTo: v1alpha1.CompiledToInProcess}
		left, inProcess := apart[name]
		switch {
		case inProcess:
			s.Reason, s.Message = left.Reason, left.Message
		case len(in.problems) > 0:
			s.Reason, s.Message = v1alpha1.InProcessNotInForce, "This generation of the policy is not in force."
		case !slices.Contains(in.observation.Forbidden, name):
			s.Reason, s.Message = v1alpha1.InProcessNotInForce, "The admission policy does not hold it: it was not written yet, or is full."
		default:
			s.CompiledTo = v1alpha1.CompiledToAdmissionPolicy
			s.Message = besideRequests(&own.Rules[i].Match)
		}
		statuses = append(statuses, s)
	}
	return statuses
}

// besideRequests says what of a compiled rule no admission policy can judge.
func besideRequests(match *policy.Match) string {
	reads := slices.ContainsFunc(match.Kubernetes, func(s policy.KubernetesSelector) bool {
		return len(s.Verbs) == 0 || slices.Contains(s.Verbs, policy.VerbRead)
	})
	switch {
	case len(match.Tools) > 0:
		return "Its tools are judged in process: no call of a tool reaches the API server."
	case reads:
		return "Reads are judged by the authorization webhook, where API servers use it: admission sees none."
	default:
		return ""
	}
}
