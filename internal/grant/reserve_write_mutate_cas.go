//go:build mutate_cas

package grant

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// writeReservation of the mutant that `make demo MUTATE=cas` builds: it reserves by patch instead of Update, so that the
// demo can show that it would notice. No released binary has this build tag.
func (p *Protocol) writeReservation(ctx context.Context, reserved *v1alpha1.PermissionGrant) error {
	before := reserved.DeepCopy()
	before.Status.Uses = nil
	return p.Client.Status().Patch(ctx, reserved, client.MergeFrom(before))
}
