package grant

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// EffectDeadline is how long after its last attempt an effect can still appear: the API server's fixed 34 s for a write,
// and 15 s for clocks and lists.
const EffectDeadline = 49 * time.Second

// closeEarlierUse closes a use that another review reserved: one attempt is all that a use has here. The effect is
// looked for once more; what is not seen is Unknown, never free again. closed is true when the grant was written.
func (p *Protocol) closeEarlierUse(ctx context.Context, g *v1alpha1.PermissionGrant) (closed bool, err error) {
	use := reservedUse(g)
	if use == nil {
		return false, nil
	}
	seen, effect, err := p.effectOf(ctx, g, use)
	if err != nil {
		return false, err
	}
	outcome := v1alpha1.UseConsumed
	if !seen {
		outcome, effect = v1alpha1.UseUnknown, "a second attempt came before an effect was seen"
	}
	if err := p.closeUse(ctx, g, outcome, effect); err != nil {
		if apierrors.IsConflict(err) {
			return true, nil // somebody else closed it or decided: look again
		}
		return false, err
	}
	return true, nil
}

// Settle looks for the effect of a reserved use and closes the use when it is seen, or as Unknown when it can no longer
// appear. again is when to look next; 0 means that nothing is reserved any more.
func (p *Protocol) Settle(ctx context.Context, g *v1alpha1.PermissionGrant) (again time.Duration, err error) {
	use := reservedUse(g)
	if use == nil {
		return 0, nil
	}
	seen, effect, err := p.effectOf(ctx, g, use)
	switch last := use.Attempts[len(use.Attempts)-1].Time; {
	case err != nil:
		return 0, err
	case seen:
		return 0, p.closeUse(ctx, g, v1alpha1.UseConsumed, effect)
	case p.Now().Sub(last.Time) >= EffectDeadline:
		return 0, p.closeUse(ctx, g, v1alpha1.UseUnknown, "no effect was seen within "+EffectDeadline.String())
	default:
		return time.Second, nil
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
	if err := p.Client.Status().Update(ctx, closed); err != nil {
		return fmt.Errorf("close use %d of permissiongrant %s/%s: %w", use.Index, g.Namespace, g.Name, err)
	}
	return nil
}

// effectOf looks whether what was approved is there now.
func (p *Protocol) effectOf(ctx context.Context, g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse) (seen bool, effect string, err error) {
	operation := &g.Spec.Request.Operation
	attempt := &use.Attempts[len(use.Attempts)-1]
	at := &operation.Target
	if at.Name == "" {
		return false, "", nil // a generated name cannot be looked for
	}
	found, err := p.read(ctx, schema.GroupVersionResource{Group: at.Group, Version: at.Version, Resource: at.Resource}, at.Namespace, at.Name)
	if err != nil || !found.readable {
		return false, "", err
	}
	object := found.object
	name := fmt.Sprintf("%s uid %s", at.Resource, attempt.TargetUID)
	switch {
	case operation.Verb == v1alpha1.VerbDelete:
		switch {
		case object == nil || object.GetUID() != attempt.TargetUID:
			return true, name + " is gone", nil
		case object.GetDeletionTimestamp() != nil:
			return true, name + " is deleting", nil
		}
	case object == nil || object.GetUID() != attempt.TargetUID || at.Subresource != "" || attempt.ObjectDigest == "":
	case operation.Verb == v1alpha1.VerbCreate:
		return true, name + " exists", nil
	case object.GetResourceVersion() != attempt.OldResourceVersion:
		digest, err := kube.ObjectDigest(p.Key, at.Group, at.Resource, object.Object)
		if err != nil {
			return false, "", fmt.Errorf("digest of %s %s/%s: %w", at.Resource, at.Namespace, at.Name, err)
		}
		if digest == attempt.ObjectDigest {
			return true, name + " carries the change", nil
		}
	}
	return false, "", nil
}
