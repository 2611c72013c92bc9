package grant

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

// useWide looks for a wider approval of the session that covers the operation, when no grant of its own can be used. An
// operation that has begun a use of one goes on with that use. found is false when there is none.
func (p *Protocol) useWide(ctx context.Context, a *asked, view policy.SessionView) (decision policy.Decision, again, found bool, err error) {
	grants, err := p.wideGrants(ctx, a)
	if err != nil || len(grants) == 0 {
		return policy.Decision{}, false, false, err
	}
	// Operations of one session that use one approval at once would only undo each other's tries.
	done, err := p.using.take(ctx, a.Resolved.View.UID)
	if err != nil {
		return policy.Decision{}, false, false, err
	}
	defer done()
	if grants, err = p.wideGrants(ctx, a); err != nil {
		return policy.Decision{}, false, false, err
	}
	views := make([]policy.Grant, 0, len(grants))
	for _, g := range grants {
		if decision, again, found, err = p.underWay(ctx, a, g); found || err != nil {
			return decision, again, found, err
		}
		views = append(views, ToEngine(g, p.Now()))
	}
	view.Wide = a.compared(views...)
	decision = p.decide(a, view)
	if decision.Reason != policy.ReasonGranted || decision.Grant == nil {
		return policy.Decision{}, false, false, nil
	}
	for _, g := range grants {
		if g.Name == decision.Grant.Name {
			decision, again, err = p.use(ctx, a, g, decision)
			return decision, again, true, err
		}
	}
	return policy.Decision{}, true, true, nil // by its own grant after all: answer anew
}

// wideGrants lists the grants of the session that somebody has given a wider answer, oldest first, read live. What they
// allow is for the engine to say; the label only finds them.
func (p *Protocol) wideGrants(ctx context.Context, a *asked) ([]*v1alpha1.PermissionGrant, error) {
	view := &a.Resolved.View
	var list v1alpha1.PermissionGrantList
	err := p.Live.List(ctx, &list, client.InNamespace(a.namespace), client.HasLabels{v1alpha1.LabelScope},
		client.MatchingLabels{v1alpha1.LabelSession: view.Name, v1alpha1.LabelSessionNamespace: view.Namespace})
	if err != nil {
		return nil, fmt.Errorf("list wide grants of session %s/%s: %w", view.Namespace, view.Name, err)
	}
	var grants []*v1alpha1.PermissionGrant
	for i := range list.Items {
		g := &list.Items[i]
		if request := &g.Spec.Request; string(request.Session.UID) == view.UID && request.Digest != a.Operation.Digest {
			grants = append(grants, g)
		}
	}
	slices.SortFunc(grants, func(x, y *v1alpha1.PermissionGrant) int {
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
	})
	return grants, nil
}

// compared is what the engine compares wider approvals with.
func (a *asked) compared(grants ...policy.Grant) *policy.Wide {
	return &policy.Wide{Grants: grants, Command: a.exact.Command, Manner: a.manner}
}

// CoveredBy tells whether a wider approval answers another question of its session: it covers it under the policies of
// that identity, or the operation has used it already.
func CoveredBy(wide, question *v1alpha1.PermissionGrant, identity string, now time.Time) bool {
	asked, view := AskedOf(&question.Spec.Request), ToEngine(wide, now)
	if view.Covers(&asked, identity, now) {
		return true
	}
	return slices.ContainsFunc(wide.Status.Uses, func(use v1alpha1.GrantUse) bool {
		return use.Outcome != v1alpha1.UseReleased && use.Digest == question.Spec.Request.Digest
	})
}
