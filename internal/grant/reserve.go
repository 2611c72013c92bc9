package grant

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// use reserves the use that the engine allowed, then reads live what could have changed in between, then allows.
// Whoever writes second loses: the write carries the resourceVersion that the decision was made on.
func (p *Protocol) use(ctx context.Context, a *asked, g *v1alpha1.PermissionGrant, decision policy.Decision) (policy.Decision, bool, error) {
	reserved, err := p.reservation(a, g)
	if err != nil {
		return policy.Decision{}, false, err
	}
	if err := p.writeReservation(ctx, reserved); apierrors.IsConflict(err) {
		return policy.Decision{}, true, nil
	} else if err != nil {
		return policy.Decision{}, false, fmt.Errorf("reserve permissiongrant %s/%s: %w", g.Namespace, g.Name, err)
	}
	reason, err := p.changedSince(ctx, a)
	if err != nil {
		return policy.Decision{}, false, err
	}
	if reason == "" {
		return decision, false, nil
	}
	// Nothing happened under this use, and nothing will; what it was stays visible, because a use is never given back
	// without proof.
	if err := p.closeUse(ctx, reserved, v1alpha1.UseUnknown, "refused after it was reserved: "+string(reason)); err != nil {
		return policy.Decision{}, false, err
	}
	refused := policy.Refuse(decision.Class, reason, "this changed while the use was reserved")
	refused.Details, refused.Grant = decision.Details, decision.Grant
	return refused, false, nil
}

// reservation is the grant with one more use. Connections and tokens leave nothing that could be looked for later: they
// are consumed at once.
func (p *Protocol) reservation(a *asked, g *v1alpha1.PermissionGrant) (*v1alpha1.PermissionGrant, error) {
	now := metav1.NewTime(p.Now())
	attempt := v1alpha1.UseAttempt{ReviewUID: a.ReviewUID, TargetUID: types.UID(a.Operation.Target.UID), Time: now}
	if a.target.object != nil {
		attempt.OldResourceVersion = a.target.object.GetResourceVersion()
	}
	if created := objectUID(&a.Request); created != "" {
		attempt.TargetUID = created
	}
	if a.Request.Operation != "DELETE" && a.Request.Operation != "CONNECT" && a.Request.Subresource == "" && a.target.readable {
		digest, err := kube.ObjectDigest(p.Key, a.Request.Group, a.Request.Resource, a.Request.Object)
		if err != nil {
			return nil, fmt.Errorf("digest of the object: %w", err)
		}
		attempt.ObjectDigest = digest
	}
	use := v1alpha1.GrantUse{
		Index: int32(len(g.Status.Uses)) + 1, Outcome: v1alpha1.UseReserved, DecisionID: a.DecisionID,
		Attempts: []v1alpha1.UseAttempt{attempt}, ReservedTime: now,
	}
	if a.Operation.Verb == policy.VerbConnect {
		use.Outcome, use.SettledTime, use.Effect = v1alpha1.UseConsumed, &now, "connection opened"
	}
	reserved := g.DeepCopy()
	reserved.Status.Uses = append(reserved.Status.Uses, use)
	reserved.Status = Compute(reserved, p.Now())
	return reserved, nil
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

// changedSince reads the session and the policies live, after the reservation. It names what changed; empty when nothing
// did.
func (p *Protocol) changedSince(ctx context.Context, a *asked) (policy.Reason, error) {
	view := &a.Resolved.View
	session := &v1alpha1.AgentSession{}
	err := p.Live.Get(ctx, client.ObjectKey{Namespace: view.Namespace, Name: view.Name}, session)
	switch {
	case apierrors.IsNotFound(err):
		return policy.ReasonNoSession, nil
	case err != nil:
		return "", fmt.Errorf("read session %s/%s: %w", view.Namespace, view.Name, err)
	case string(session.UID) != view.UID:
		return policy.ReasonNoSession, nil
	case identity.Ended(session, p.Now()):
		return policy.ReasonSessionEnded, nil
	case session.Status.State == v1alpha1.SessionSuspended:
		return policy.ReasonSuspended, nil
	case identity.Epoch(session) != view.Epoch:
		return policy.ReasonGrantSuperseded, nil
	}
	same, err := a.Snapshot.Current(ctx, p.Live, view.Namespace, a.Operation.Target.Namespace)
	if err != nil {
		return "", err
	}
	if !same {
		return policy.ReasonGrantStale, nil
	}
	return "", nil
}
