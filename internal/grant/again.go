package grant

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

// admitAgain answers a review that comes while a use of its grant is reserved: the client sent the request again, or the
// API server its change on a newer object. What became of the earlier attempts is looked at first. again is true when the
// grant was written and has to be read anew.
func (p *Protocol) admitAgain(ctx context.Context, a *asked, g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse) (decision policy.Decision, again bool, err error) {
	what, text, err := p.fateOf(ctx, g, use)
	if err != nil {
		return policy.Decision{}, false, err
	}
	switch {
	case what == landed || what == lost || what == dead && (a.Operation.Verb != policy.VerbUpdate || sameVersion(a, use)):
		if err := p.closeUse(ctx, g, use, outcomes[what], text); err != nil && !apierrors.IsConflict(err) {
			return policy.Decision{}, false, err
		}
		return policy.Decision{}, true, nil
	case !p.repeats(a, g, use, what):
		return p.inFlight(g, use), false, nil
	}
	return p.attemptAgain(ctx, a, g, use)
}

// attemptAgain lets one more attempt of a use through. A use whose effect has been seen needs no entry for it.
func (p *Protocol) attemptAgain(ctx context.Context, a *asked, g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse) (decision policy.Decision, again bool, err error) {
	decision = p.asThoughFree(a, g, use)
	if decision.Reason != policy.ReasonGranted || use.Outcome == v1alpha1.UseConsumed {
		return decision, false, nil
	}
	return p.use(ctx, a, g, decision)
}

// asThoughFree is the engine's answer as though a use had not begun: what ended the approval meanwhile stops new attempts
// too.
func (p *Protocol) asThoughFree(a *asked, g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse) policy.Decision {
	free := g.DeepCopy()
	for i := range free.Status.Uses {
		if free.Status.Uses[i].Index == use.Index {
			free.Status.Uses[i].Outcome = v1alpha1.UseReleased
		}
	}
	view := a.Resolved.View
	engineView, own := ToEngine(free, p.Now()), g.Spec.Request.Digest == a.Operation.Digest
	if own {
		view.Grant = &engineView
	} else {
		view.Wide = a.compared(engineView)
	}
	decision := p.decide(a, view)
	if !own && decision.Reason != policy.ReasonGranted {
		return p.inFlight(g, use) // nothing new can be asked while the earlier try may still take effect
	}
	decision.AskNew = false
	return decision
}

// deletesAgain finds the use whose deletion comes once more for the object that it deletes, which is still there; nil for
// none. The API server asks twice for one request when it first marks the object as deleting, and the effect may have been
// seen in between. Of one object there is one deletion; an eviction has one attempt.
func (p *Protocol) deletesAgain(a *asked, g *v1alpha1.PermissionGrant) *v1alpha1.GrantUse {
	object := a.target.object
	if a.Request.Operation != "DELETE" || !a.target.readable || object == nil {
		return nil
	}
	for i := range g.Status.Uses {
		use := &g.Status.Uses[i]
		if digestOf(g, use) != a.Operation.Digest || len(use.Attempts) == 0 {
			continue
		}
		last := &use.Attempts[len(use.Attempts)-1]
		underWay := object.GetDeletionTimestamp() != nil && p.Now().Sub(last.Time.Time) < EffectDeadline
		if last.TargetUID == object.GetUID() && (use.Outcome == v1alpha1.UseReserved || use.Outcome == v1alpha1.UseConsumed && underWay) {
			return use
		}
	}
	return nil
}

// repeats tells whether another attempt of the use can be let through without a second effect. An update names the version
// that it was made on, and only one write can follow a version. Everything but deletions and updates has one attempt.
func (p *Protocol) repeats(a *asked, g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse, what fate) bool {
	last := &use.Attempts[len(use.Attempts)-1]
	switch {
	case !a.target.readable || a.target.object == nil || a.target.object.GetUID() != last.TargetUID:
		return false
	case a.Operation.Verb != policy.VerbUpdate:
		return false
	case emptiesFinalizers(g, use):
		return false // the deletion that it ends in is bound to no version
	case what == inFlight:
		return sameVersion(a, use)
	default:
		order, err := resourceversion.CompareResourceVersion(a.target.object.GetResourceVersion(), last.OldResourceVersion)
		return err == nil && order > 0
	}
}

// sameVersion tells that the review shows the version which the last attempt was made on.
func sameVersion(a *asked, use *v1alpha1.GrantUse) bool {
	return a.target.object != nil && a.target.object.GetResourceVersion() == use.Attempts[len(use.Attempts)-1].OldResourceVersion
}

// inFlight refuses a request whose earlier attempt may still take effect.
func (p *Protocol) inFlight(g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse) policy.Decision {
	until := use.Attempts[len(use.Attempts)-1].Time.Add(EffectDeadline)
	wait := max(time.Second, until.Sub(p.Now())).Round(time.Second)
	refused := policy.Refuse(policy.ClassAsk, policy.ReasonGrantInUse, fmt.Sprintf("An earlier try under permissiongrant/%s may still take effect", g.Name))
	refused.Recovery = fmt.Sprintf("look whether it took effect; if it did not, run this command again in %s", wait)
	refused.Grant = &policy.GrantRef{Namespace: g.Namespace, Name: g.Name}
	return refused
}
