package agentsession

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Candidates are the Pods that a change of the policies wakes.
func (r *Birth) Candidates(ctx context.Context) ([]reconcile.Request, error) {
	return r.candidates(ctx)
}
