package permissiongrant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/grant"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

// desired is the status that the grant should have: what its answers and uses give, ended by what its session and the
// policies say.
func (r *Reconciler) desired(ctx context.Context, g *v1alpha1.PermissionGrant) (v1alpha1.PermissionGrantStatus, error) {
	now := r.Now()
	want := g.DeepCopy()
	want.Status = grant.Compute(want, now)
	if g.Status.State == "" {
		similar, err := r.similar(ctx, g)
		if err != nil {
			return want.Status, err
		}
		want.Status.Similar = similar
	}
	if !open(want) {
		return want.Status, nil
	}
	ended, err := r.sessionEnd(ctx, &g.Spec.Request.Session)
	if err != nil {
		return want.Status, err
	}
	if ended != "" {
		return closed(want, v1alpha1.GrantSuperseded, ended, now), nil
	}
	by, err := r.covering(ctx, want)
	if err != nil {
		return want.Status, err
	}
	if by != "" {
		want.Status.CoveredBy = by
		return closed(want, v1alpha1.GrantSuperseded, v1alpha1.ReasonCoveredByWiderAnswer, now), nil
	}
	return r.bind(ctx, want, now)
}

// sessionEnd says what of the grant's session ends it; empty when nothing does. An end is for good, so it is read live: a
// cache may not have the session yet.
func (r *Reconciler) sessionEnd(ctx context.Context, at *v1alpha1.GrantSession) (v1alpha1.ConditionReason, error) {
	session := &v1alpha1.AgentSession{}
	err := r.Protocol.Live.Get(ctx, client.ObjectKey{Namespace: at.Namespace, Name: at.Name}, session)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return "", fmt.Errorf("read session %s/%s: %w", at.Namespace, at.Name, err)
	case err != nil || session.UID != at.UID || identity.Ended(session, r.Now()):
		return v1alpha1.ReasonSessionOver, nil
	case identity.Epoch(session) > at.Epoch:
		return v1alpha1.ReasonEpochRaised, nil
	default:
		return "", nil
	}
}

// errSnapshotBehind: this replica does not have the policies yet that the approval was bound to.
var errSnapshotBehind = errors.New("the policy snapshot is behind the API server")

// bind shows which policies an approval is bound to, and ends it when they have changed. A pending question is not
// bound: a policy edit must not empty the queue of people who have not looked yet.
func (r *Reconciler) bind(ctx context.Context, g *v1alpha1.PermissionGrant, now time.Time) (v1alpha1.PermissionGrantStatus, error) {
	snapshot := r.Store.Current()
	if g.Status.State != v1alpha1.GrantApproved || snapshot == nil {
		return g.Status, nil
	}
	request := &g.Spec.Request
	ids, current := snapshot.Engine.Identity(request.Session.Namespace, request.Operation.Target.Namespace)
	if g.Status.BoundPolicyIdentity == current {
		if len(g.Status.BoundPolicies) == 0 {
			g.Status.BoundPolicies = policystore.References(ids)
		}
		return g.Status, nil
	}
	// Another replica may have approved under policies that this one has not seen: an end is for good, so make sure.
	same, err := snapshot.Current(ctx, r.Protocol.Live, request.Session.Namespace, request.Operation.Target.Namespace)
	if err != nil {
		return g.Status, err
	}
	if !same {
		return g.Status, errSnapshotBehind
	}
	return closed(g, v1alpha1.GrantStale, v1alpha1.ReasonPolicyChanged, now), nil
}

// open tells whether an end from outside can still close the grant. A reserved use keeps it open: the use settles first.
func open(g *v1alpha1.PermissionGrant) bool {
	return !reserved(g) && (g.Status.State == v1alpha1.GrantPending || g.Status.State == v1alpha1.GrantApproved)
}

func reserved(g *v1alpha1.PermissionGrant) bool {
	return slices.ContainsFunc(g.Status.Uses, func(u v1alpha1.GrantUse) bool { return u.Outcome == v1alpha1.UseReserved })
}

func closed(g *v1alpha1.PermissionGrant, state v1alpha1.GrantState, reason v1alpha1.ConditionReason, now time.Time) v1alpha1.PermissionGrantStatus {
	g.Status.State, g.Status.Reason = state, reason
	return grant.Compute(g, now)
}
