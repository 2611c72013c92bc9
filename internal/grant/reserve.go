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
	if use := reservedUse(live, a.Operation.Digest); use != nil && len(use.Attempts) == 1 && use.Attempts[0].ReviewUID == a.ReviewUID {
		if err := ignoreConflict(p.closeUse(ctx, live, use, v1alpha1.UseReleased, "refused after it was reserved: "+string(reason))); err != nil {
			return policy.Decision{}, false, err
		}
	}
	refused := policy.Refuse(decision.Class, reason, "this changed while the use was reserved")
	refused.Details, refused.Grant = decision.Details, decision.Grant
	return refused, false, nil
}

// What a grant remembers of its uses, so that it stays small; the schema bounds the same.
const (
	// maxReleased are the uses that are proven to have had no effect. The others are bounded by the approval.
	maxReleased = 16
	maxAttempts = 8
	// maxUseLines of a change are kept while a use is reserved; of a longer one none.
	maxUseLines = 8
)

// reservation is the grant with one more attempt: of the use of this operation that is reserved, or of a new one.
// Connections and tokens leave nothing that could be looked for later: they are consumed at once.
func (p *Protocol) reservation(ctx context.Context, a *asked, g *v1alpha1.PermissionGrant) (*v1alpha1.PermissionGrant, error) {
	attempt, err := p.attempt(ctx, a)
	if err != nil {
		return nil, err
	}
	reserved := g.DeepCopy()
	if use := reservedUse(reserved, a.Operation.Digest); use != nil {
		// The oldest are proven dead, or deletions of an object that one of the others deletes.
		use.Attempts = append(use.Attempts[max(0, len(use.Attempts)-maxAttempts+1):], attempt)
		reserved.Status = Compute(reserved, p.Now())
		return reserved, nil
	}
	use := v1alpha1.GrantUse{
		Index: 1, Outcome: v1alpha1.UseReserved, DecisionID: a.DecisionID, Attempts: []v1alpha1.UseAttempt{attempt}, ReservedTime: attempt.Time,
		Digest: a.Operation.Digest,
	}
	a.describe(&use, g)
	uses := reserved.Status.Uses
	if len(uses) > 0 {
		use.Index = uses[len(uses)-1].Index + 1
	}
	if a.Operation.Verb == policy.VerbConnect {
		use.Outcome, use.SettledTime, use.Effect, use.Change = v1alpha1.UseConsumed, &attempt.Time, "connection opened", nil
	}
	reserved.Status.Uses = append(withoutOldest(uses), use)
	reserved.Status = Compute(reserved, p.Now())
	return reserved, nil
}

// describe writes what the question does not say of the use: another object, another change.
func (a *asked) describe(use *v1alpha1.GrantUse, g *v1alpha1.PermissionGrant) {
	if use.Digest == g.Spec.Request.Digest {
		return
	}
	if name := a.Operation.Target.Name; name != g.Spec.Request.Operation.Target.Name {
		use.Name = name
	}
	if a.Operation.Verb == policy.VerbUpdate && len(a.exact.Lines) <= maxUseLines {
		use.Change = a.exact.Lines
	}
}

// withoutOldest forgets the oldest released use when there are as many as a grant remembers.
func withoutOldest(uses []v1alpha1.GrantUse) []v1alpha1.GrantUse {
	oldest, released := -1, 0
	for i := range uses {
		if uses[i].Outcome != v1alpha1.UseReleased {
			continue
		}
		if released++; oldest < 0 {
			oldest = i
		}
	}
	if released < maxReleased {
		return uses
	}
	return slices.Delete(uses, oldest, oldest+1)
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
