package grant

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// use reserves the use that the engine allowed, then reads live what could have changed in between, then allows: a
// revocation counts until then, not only until the reservation.
// Whoever writes second loses: the write carries the resourceVersion that the decision was made on.
func (p *Protocol) use(ctx context.Context, a *asked, g *v1alpha1.PermissionGrant, decision policy.Decision) (policy.Decision, bool, error) {
	reserved, err := p.reservation(ctx, a, g)
	if err != nil {
		return policy.Decision{}, false, err
	}
	pass(StepReserving, reserved)
	if err := p.writeReservation(ctx, reserved); apierrors.IsConflict(err) {
		return policy.Decision{}, true, nil
	} else if err != nil {
		return policy.Decision{}, false, fmt.Errorf("reserve permissiongrant %s/%s: %w", g.Namespace, g.Name, err)
	}
	pass(StepReserved, reserved)
	reason, live, err := p.changedSince(ctx, a, reserved)
	if err != nil {
		return policy.Decision{}, false, err
	}
	if reason == "" {
		pass(StepChecked, reserved)
		return decision, false, nil
	}
	// This review is refused, so it has no effect. Earlier and later attempts of the use may: they are looked after.
	if use := reservedUse(live); use != nil && len(use.Attempts) == 1 && use.Attempts[0].ReviewUID == a.ReviewUID {
		if err := ignoreConflict(p.closeUse(ctx, live, v1alpha1.UseReleased, "refused after it was reserved: "+string(reason))); err != nil {
			return policy.Decision{}, false, err
		}
	}
	refused := policy.Refuse(decision.Class, reason, "this changed while the use was reserved")
	refused.Details, refused.Grant = decision.Details, decision.Grant
	return refused, false, nil
}

// maxUses and maxAttempts bound what a grant remembers of its uses; the schema has the same bounds.
const (
	maxUses     = 16
	maxAttempts = 8
)

// reservation is the grant with one more attempt: of the use that is reserved, or of a new one. Connections and tokens
// leave nothing that could be looked for later: they are consumed at once.
func (p *Protocol) reservation(ctx context.Context, a *asked, g *v1alpha1.PermissionGrant) (*v1alpha1.PermissionGrant, error) {
	attempt, err := p.attempt(ctx, a)
	if err != nil {
		return nil, err
	}
	reserved := g.DeepCopy()
	if use := reservedUse(reserved); use != nil {
		// The oldest are proven dead, or deletions of an object that one of the others deletes.
		use.Attempts = append(use.Attempts[max(0, len(use.Attempts)-maxAttempts+1):], attempt)
		reserved.Status = Compute(reserved, p.Now())
		return reserved, nil
	}
	uses := reserved.Status.Uses
	use := v1alpha1.GrantUse{
		Index: 1, Outcome: v1alpha1.UseReserved, DecisionID: a.DecisionID, Attempts: []v1alpha1.UseAttempt{attempt}, ReservedTime: attempt.Time,
	}
	if len(uses) > 0 {
		use.Index = uses[len(uses)-1].Index + 1
	}
	if len(uses) >= maxUses {
		oldest := slices.IndexFunc(uses, func(u v1alpha1.GrantUse) bool { return u.Outcome == v1alpha1.UseReleased })
		if oldest < 0 {
			return nil, fmt.Errorf("permissiongrant %s/%s has %d uses that had effects", g.Namespace, g.Name, len(uses))
		}
		uses = slices.Delete(uses, oldest, oldest+1)
	}
	if a.Operation.Verb == policy.VerbConnect {
		use.Outcome, use.SettledTime, use.Effect = v1alpha1.UseConsumed, &attempt.Time, "connection opened"
	}
	uses = append(uses, use)
	reserved.Status.Uses = uses
	reserved.Status = Compute(reserved, p.Now())
	return reserved, nil
}

// attempt is what will tell later whether this review took effect.
func (p *Protocol) attempt(ctx context.Context, a *asked) (v1alpha1.UseAttempt, error) {
	attempt := v1alpha1.UseAttempt{ReviewUID: a.ReviewUID, TargetUID: types.UID(a.Operation.Target.UID), Time: metav1.NewTime(p.Now())}
	created := objectUID(&a.Request)
	switch {
	case a.target.object != nil:
		attempt.OldResourceVersion = a.target.object.GetResourceVersion()
	case created != "" && a.Request.Name != "" && a.target.readable:
		grantTarget := targetOf(&a.Operation)
		mark, err := p.historyOf(a.target.kind, &grantTarget).mark(ctx)
		if err != nil && !errors.Is(err, errHistoryGone) {
			return attempt, err
		}
		attempt.OldResourceVersion = mark // without one the outcome can be Unknown only
	}
	if created != "" {
		attempt.TargetUID = created
	}
	if a.Operation.Verb != policy.VerbUpdate || a.Request.Subresource != "" || !a.target.readable {
		return attempt, nil
	}
	var err error
	if attempt.ObjectDigest, err = kube.ObjectDigest(p.Key, a.Request.Group, a.Request.Resource, a.Request.Object); err != nil {
		return attempt, fmt.Errorf("digest of the object: %w", err)
	}
	if attempt.OldObjectDigest, err = kube.ObjectDigest(p.Key, a.Request.Group, a.Request.Resource, a.Request.OldObject); err != nil {
		return attempt, fmt.Errorf("digest of the old object: %w", err)
	}
	return attempt, nil
}

// objectUID of an object that is being created: the API server has given it by now.
func objectUID(req *kube.Request) types.UID {
	if req.Operation != "CREATE" || req.Subresource != "" {
		return ""
	}
	metadata, _ := req.Object["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	return types.UID(uid)
}

// changedSince reads the grant, the session and the policies live, after the reservation. It names what changed, empty
// when nothing did, and gives the grant as it is.
func (p *Protocol) changedSince(ctx context.Context, a *asked, reserved *v1alpha1.PermissionGrant) (policy.Reason, *v1alpha1.PermissionGrant, error) {
	live := &v1alpha1.PermissionGrant{}
	if err := p.Live.Get(ctx, client.ObjectKeyFromObject(reserved), live); err != nil {
		return "", nil, fmt.Errorf("read permissiongrant %s/%s: %w", reserved.Namespace, reserved.Name, err)
	}
	if live.Spec.Revocation != nil {
		return policy.ReasonGrantRevoked, live, nil
	}
	reason, err := p.sessionChanged(ctx, &a.Resolved.View)
	if err != nil || reason != "" {
		return reason, live, err
	}
	same, err := a.Snapshot.Current(ctx, p.Live, a.Resolved.View.Namespace, a.Operation.Target.Namespace)
	if err != nil || same {
		return "", live, err
	}
	return policy.ReasonGrantStale, live, nil
}

func (p *Protocol) sessionChanged(ctx context.Context, view *policy.SessionView) (policy.Reason, error) {
	session := &v1alpha1.AgentSession{}
	err := p.Live.Get(ctx, client.ObjectKey{Namespace: view.Namespace, Name: view.Name}, session)
	switch {
	case apierrors.IsNotFound(err):
		return policy.ReasonNoSession, nil
	case err != nil:
		return "", fmt.Errorf("read session %s/%s: %w", view.Namespace, view.Name, err)
	case string(session.UID) != view.UID:
		return policy.ReasonNoSession, nil
	case identity.Epoch(session) != view.Epoch:
		return policy.ReasonGrantSuperseded, nil
	}
	standing, err := identity.StandingOf(session, identity.Through(ctx, p.Live, session.Namespace), p.Now())
	switch {
	case err != nil:
		return "", err
	case standing.State == v1alpha1.SessionEnded:
		return policy.ReasonSessionEnded, nil
	case standing.State == v1alpha1.SessionSuspended:
		return policy.ReasonSuspended, nil
	default:
		return "", nil
	}
}
