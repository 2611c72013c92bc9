package agentsession

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/status"
)

// guarantee computes what the session can rely on now (requirement M-1): runtime-backed while webhook and floor are
// proven in force for its identity, a valid policy is loaded, and RBAC leaves the identity no way past admission (K-10);
// else prompt-only (M-2). Context, memory and the protected record are not provided: they need an adapter that reports to
// the manager.
func (in input) guarantee(desired *v1alpha1.AgentSessionStatus, conditions *status.Conditions) {
	if last := in.lastKnown(); last != nil {
		desired.Guarantee, desired.Degraded = in.session.Status.Guarantee, in.session.Status.Degraded
		conditions.Set(v1alpha1.ConditionGuaranteeMet, last.Status, v1alpha1.ConditionReason(last.Reason), last.Message)
		return
	}
	settings, _ := in.snapshot.Namespace(in.session.Namespace)
	policied := settings.Policy != nil
	desired.Guarantee = v1alpha1.GuaranteePromptOnly
	if !in.proven || !in.enforced {
		desired.Degraded = append(desired.Degraded, v1alpha1.LostEnforcement)
	}
	if !policied {
		desired.Degraded = append(desired.Degraded, v1alpha1.LostPolicy)
	}
	if len(in.escapes) > 0 {
		desired.Degraded = append(desired.Degraded, v1alpha1.LostConfinement)
	}
	desired.Degraded = append(desired.Degraded, v1alpha1.LostContext, v1alpha1.LostMemory, v1alpha1.LostProtectedRecord)
	set := func(value metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) {
		conditions.Set(v1alpha1.ConditionGuaranteeMet, value, reason, message)
	}
	switch {
	case in.asked.IsZero():
		set(metav1.ConditionUnknown, v1alpha1.ReasonNotProvenYet, "No canary request was answered since the manager started.")
	case !in.proven:
		set(metav1.ConditionFalse, v1alpha1.ReasonEnforcementLost, "Webhook and floor are not proven in force.")
	case !policied:
		set(metav1.ConditionFalse, v1alpha1.ReasonNoPolicy, "No valid policy covers the namespace.")
	case !in.enforced:
		set(metav1.ConditionFalse, v1alpha1.ReasonFloorAudited, "The scope in force does not cover the session's identity: its profile only audits, or it is exempt.")
	case len(in.escapes) > 0:
		set(metav1.ConditionFalse, v1alpha1.ReasonRoleEscapes, in.escapes[0].String()+
			". Bind ClusterRole stepbeyond-agent-workload instead.")
	default:
		desired.Guarantee = v1alpha1.GuaranteeRuntimeBacked
		set(metav1.ConditionTrue, v1alpha1.ReasonEnforcementProven, "Webhook and floor are proven in force.")
	}
}

// lastKnown is what an earlier leader found out, until this one's first proof: a restart takes no guarantee away and gives
// none. A met guarantee whose proof is too old is not known any more. Nil when this leader has to say what it knows.
func (in input) lastKnown() *metav1.Condition {
	last := meta.FindStatusCondition(in.session.Status.Conditions, string(v1alpha1.ConditionGuaranteeMet))
	if last == nil || !in.asked.IsZero() || last.Status == metav1.ConditionTrue && !in.lately {
		return nil
	}
	return last
}
