//go:build !mutate_cas

package grant

import (
	"context"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// writeReservation is the compare-and-swap that every use depends on: an Update, which the API server refuses with a
// conflict when the grant is no longer at the resourceVersion that the decision was made on. A patch or an apply would
// merge instead, and two reviews could both win.
func (p *Protocol) writeReservation(ctx context.Context, reserved *v1alpha1.PermissionGrant) error {
	return p.Client.Status().Update(ctx, reserved)
}
