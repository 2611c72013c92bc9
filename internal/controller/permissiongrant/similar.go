package permissiongrant

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// similar counts what people answered to earlier questions of the same verb and kind in the namespace, as far as the grants
// are still there. It is counted once, when the question is new, so that a list of questions costs nothing; nil when there
// is none. The cache may miss an answer of the last moment.
func (r *Reconciler) similar(ctx context.Context, g *v1alpha1.PermissionGrant) (*v1alpha1.SimilarGrants, error) {
	asked := &g.Spec.Request.Operation
	var list v1alpha1.PermissionGrantList
	err := r.Client.List(ctx, &list, client.InNamespace(g.Namespace), client.MatchingLabels{v1alpha1.LabelVerb: string(asked.Verb)},
		client.UnsafeDisableDeepCopy) // it is only read
	if err != nil {
		return nil, fmt.Errorf("list earlier grants of namespace %s: %w", g.Namespace, err)
	}
	var counted v1alpha1.SimilarGrants
	for i := range list.Items {
		earlier := &list.Items[i]
		if earlier.UID == g.UID || !sameKind(&earlier.Spec.Request.Operation, asked) {
			continue
		}
		switch verdictBefore(earlier, g.CreationTimestamp) {
		case v1alpha1.VerdictApprove:
			counted.Approved++
		case v1alpha1.VerdictDeny:
			counted.Denied++
		default:
			continue
		}
		if since := &counted.SinceTime; since.IsZero() || earlier.CreationTimestamp.Before(since) {
			*since = earlier.CreationTimestamp
		}
	}
	if counted.Approved+counted.Denied == 0 {
		return nil, nil
	}
	return &counted, nil
}

func sameKind(a, b *v1alpha1.GrantOperation) bool {
	x, y := &a.Target, &b.Target
	return a.Verb == b.Verb && x.Group == y.Group && x.Resource == y.Resource && x.Subresource == y.Subresource
}

// verdictBefore is what people answered until a moment; empty when the question was open then, or ended by itself. Later ends
// take nothing back: an approval that was revoked or not used was one.
func verdictBefore(g *v1alpha1.PermissionGrant, moment metav1.Time) v1alpha1.Verdict {
	decided := meta.FindStatusCondition(g.Status.Conditions, string(v1alpha1.ConditionDecided))
	if decided == nil || decided.Status != metav1.ConditionTrue || moment.Before(&decided.LastTransitionTime) {
		return ""
	}
	switch v1alpha1.ConditionReason(decided.Reason) {
	case v1alpha1.ReasonRequirementsMet:
		return v1alpha1.VerdictApprove
	case v1alpha1.ReasonApproverDenied:
		return v1alpha1.VerdictDeny
	default:
		return ""
	}
}
