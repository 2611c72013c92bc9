package enforcement

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
)

// +kubebuilder:rbac:groups=flowcontrol.apiserver.k8s.io,resources=flowschemas,verbs=create;patch,resourceNames=stepbeyond-agents;stepbeyond-exempt
// +kubebuilder:rbac:groups=flowcontrol.apiserver.k8s.io,resources=prioritylevelconfigurations,verbs=create;patch,resourceNames=stepbeyond-agents

// limit leads the governed identities to their priority level, after the scope came into force, and tells whether that
// was done. A failure takes nothing from the enforcement, so it is no problem of the observation; it is tried again.
func (r *Scope) limit(ctx context.Context, observed Observation) bool {
	if !observed.Known() {
		return true // nothing was written, so nobody knows whom to lead; that is tried again anyway
	}
	if err := admission.Limit(ctx, r.Client, observed.Scope); err != nil {
		log.FromContext(ctx).Error(err, "Requests of governed identities are not kept apart from others")
		return false
	}
	return true
}
