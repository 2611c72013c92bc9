package grant

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/policy"
)

// beside counts the open questions of others where a session asks.
type beside struct {
	// family are the session's parents and children. They count against its cap, so that children are no way around it.
	family int
	// strangers are all other sessions. They count against the namespace's cap alone.
	strangers int
}

// full is the cap that leaves no room for one more question when the session itself has so many open; nil for none. A cap
// that no policy sets has room.
func (b beside) full(caps *policy.Approvals, own int) *policy.GrantRef {
	family := own + b.family
	if limit := caps.MaxPendingPerSession; limit != nil && family >= int(*limit) {
		return &policy.GrantRef{Pending: family, Cap: int(*limit)}
	}
	if limit := caps.MaxPendingPerNamespace; limit != nil && family+b.strangers >= int(*limit) {
		return &policy.GrantRef{Pending: family + b.strangers, Cap: int(*limit), OfNamespace: true}
	}
	return nil
}

// ofNamespace lists every grant that the session asked for in the namespace, and counts what others ask there. Both are
// read live.
func (p *Protocol) ofNamespace(ctx context.Context, a *asked) (own []*v1alpha1.PermissionGrant, others beside, err error) {
	view := &a.Resolved.View
	var sessions v1alpha1.AgentSessionList
	if err := p.Live.List(ctx, &sessions, client.InNamespace(view.Namespace)); err != nil {
		return nil, beside{}, fmt.Errorf("list sessions of namespace %s: %w", view.Namespace, err)
	}
	family := identity.Family(sessions.Items, a.Resolved.Session)
	var list v1alpha1.PermissionGrantList
	if err := p.Live.List(ctx, &list, client.InNamespace(a.namespace)); err != nil {
		return nil, beside{}, fmt.Errorf("list grants of namespace %s: %w", a.namespace, err)
	}
	for i := range list.Items {
		g := &list.Items[i]
		uid := g.Spec.Request.Session.UID
		if string(uid) == view.UID {
			own = append(own, g)
			continue
		}
		if ToEngine(g, p.Now()).State != policy.GrantPending {
			continue
		}
		if family[uid] {
			others.family++
		} else {
			others.strangers++
		}
	}
	return own, others, nil
}
