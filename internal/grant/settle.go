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

// settleWithin bounds how long one call looks for effects: a wide approval can have many uses at once, and others wait.
// What is not looked at is looked at next time; every use is told for good soon after its [EffectDeadline].
const settleWithin = 3 * time.Second

// Settle looks what became of the reserved uses and closes each whose fate is known: Consumed when its effect is seen,
// Released when it is proven that there was none and can be none any more, Unknown when nobody can tell. again is when to
// look next; 0 means that nothing is reserved any more.
func (p *Protocol) Settle(ctx context.Context, g *v1alpha1.PermissionGrant) (again time.Duration, err error) {
	settled := g.DeepCopy()
	closed, until := 0, p.Now().Add(settleWithin)
	for i := range settled.Status.Uses {
		use := &settled.Status.Uses[i]
		switch {
		case use.Outcome != v1alpha1.UseReserved || len(use.Attempts) == 0:
			continue
		case p.Now().After(until):
			again = time.Second
			continue
		}
		what, text, err := p.fateOf(ctx, g, use)
		switch {
		case err != nil:
			return 0, err
		case what == inFlight:
			again = time.Second
		default:
			p.conclude(use, outcomes[what], text)
			closed++
		}
	}
	if closed == 0 {
		return again, nil
	}
	return again, p.writeOutcomes(ctx, settled)
}

// digestOf is the exact operation that a use was for.
func digestOf(g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse) string {
	if use.Digest == "" {
		return g.Spec.Request.Digest
	}
	return use.Digest
}

// reservedUse is the use of an exact operation whose effect is not known yet; nil for none. There is one at most: as long
// as it is reserved, whoever sends the operation again tries the same use again.
func reservedUse(g *v1alpha1.PermissionGrant, digest string) *v1alpha1.GrantUse {
	for i := range g.Status.Uses {
		use := &g.Status.Uses[i]
		if use.Outcome == v1alpha1.UseReserved && len(use.Attempts) > 0 && digestOf(g, use) == digest {
			return use
		}
	}
	return nil
}

// closeUse writes the outcome of one reserved use, against the resourceVersion that the grant was read at.
func (p *Protocol) closeUse(ctx context.Context, g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse, outcome v1alpha1.UseOutcome, effect string) error {
	closed := g.DeepCopy()
	for i := range closed.Status.Uses {
		if own := &closed.Status.Uses[i]; own.Index == use.Index && own.Outcome == v1alpha1.UseReserved {
			p.conclude(own, outcome, effect)
			return p.writeOutcomes(ctx, closed)
		}
	}
	return nil
}

// conclude ends a use. What it was to change is not needed any more.
func (p *Protocol) conclude(use *v1alpha1.GrantUse, outcome v1alpha1.UseOutcome, effect string) {
	now := metav1.NewTime(p.Now())
	use.Outcome, use.SettledTime, use.Effect, use.Change = outcome, &now, effect, nil
}

func (p *Protocol) writeOutcomes(ctx context.Context, closed *v1alpha1.PermissionGrant) error {
	closed.Status = Compute(closed, p.Now())
	pass(StepSettling, closed)
	if err := p.Client.Status().Update(ctx, closed); err != nil {
		return fmt.Errorf("close uses of permissiongrant %s/%s: %w", closed.Namespace, closed.Name, err)
	}
	pass(StepSettled, closed)
	return nil
}
