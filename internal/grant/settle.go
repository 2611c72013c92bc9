package grant

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// outcomes are what a use becomes when its fate is known.
var outcomes = map[fate]v1alpha1.UseOutcome{landed: v1alpha1.UseConsumed, dead: v1alpha1.UseReleased, lost: v1alpha1.UseUnknown}

// Settle looks what became of a reserved use and closes it: Consumed when its effect is seen, Released when it is proven
// that there was none and can be none any more, Unknown when nobody can tell. again is when to look next; 0 means that
// nothing is reserved any more.
func (p *Protocol) Settle(ctx context.Context, g *v1alpha1.PermissionGrant) (again time.Duration, err error) {
	use := reservedUse(g)
	if use == nil {
		return 0, nil
	}
	what, text, err := p.fateOf(ctx, g, use)
	switch {
	case err != nil:
		return 0, err
	case what == inFlight:
		return time.Second, nil
	default:
		return 0, p.closeUse(ctx, g, outcomes[what], text)
	}
}

func reservedUse(g *v1alpha1.PermissionGrant) *v1alpha1.GrantUse {
	for i := range g.Status.Uses {
		if use := &g.Status.Uses[i]; use.Outcome == v1alpha1.UseReserved && len(use.Attempts) > 0 {
			return use
		}
	}
	return nil
}

// closeUse writes the outcome of the grant's reserved use, against the resourceVersion it was read at.
func (p *Protocol) closeUse(ctx context.Context, g *v1alpha1.PermissionGrant, outcome v1alpha1.UseOutcome, effect string) error {
	closed := g.DeepCopy()
	use := reservedUse(closed)
	if use == nil {
		return nil
	}
	now := metav1.NewTime(p.Now())
	use.Outcome, use.SettledTime, use.Effect = outcome, &now, effect
	closed.Status = Compute(closed, p.Now())
	pass(StepSettling, closed)
	if err := p.Client.Status().Update(ctx, closed); err != nil {
		return fmt.Errorf("close use %d of permissiongrant %s/%s: %w", use.Index, g.Namespace, g.Name, err)
	}
	pass(StepSettled, closed)
	return nil
}
