package permissiongrant

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

// warn sets Expiring while the end of the question or of the approval is near, and takes it away otherwise.
func (r *Reconciler) warn(g *v1alpha1.PermissionGrant, status *v1alpha1.PermissionGrantStatus) {
	now := r.Now()
	reason := expiryReason(status.State)
	if reason == "" || status.ExpirationTime == nil || now.Before(r.warnAt(g, status)) {
		meta.RemoveStatusCondition(&status.Conditions, string(v1alpha1.ConditionExpiring))
		return
	}
	message := "Approvals are missing; the question ends at "
	if reason == v1alpha1.ReasonUseDue {
		message = "The approval is not used up; it ends at "
	}
	condition := metav1.Condition{
		Type: string(v1alpha1.ConditionExpiring), Status: metav1.ConditionTrue, Reason: string(reason), ObservedGeneration: g.Generation,
		Message: message + status.ExpirationTime.UTC().Format(time.RFC3339) + ".", LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}
	if before := meta.FindStatusCondition(status.Conditions, condition.Type); before != nil && before.Reason != condition.Reason {
		meta.RemoveStatusCondition(&status.Conditions, condition.Type) // another end, at another time
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}

// expiryReason is what Expiring says in a state; empty for one that does not expire.
func expiryReason(state v1alpha1.GrantState) v1alpha1.ConditionReason {
	switch state {
	case v1alpha1.GrantPending:
		return v1alpha1.ReasonDecisionDue
	case v1alpha1.GrantApproved:
		return v1alpha1.ReasonUseDue
	default:
		return ""
	}
}

// warnAt is when people are told that an open grant expires: warnBeforeExpirySeconds before it does, but never before half
// of its time is over, so that a short one is not told of twice at once. Only for a status with an expirationTime.
func (r *Reconciler) warnAt(g *v1alpha1.PermissionGrant, status *v1alpha1.PermissionGrantStatus) time.Time {
	began := g.CreationTimestamp.Time
	if c := meta.FindStatusCondition(status.Conditions, string(v1alpha1.ConditionApproved)); status.State == v1alpha1.GrantApproved && c != nil {
		began = c.LastTransitionTime.Time
	}
	seconds := r.longest(g, v1alpha1.DefaultWarnBeforeExpirySeconds, func(n *policystore.Namespace) int32 { return n.WarnBeforeExpirySeconds })
	end := status.ExpirationTime.Time
	return end.Add(-min(time.Duration(seconds)*time.Second, max(0, end.Sub(began)/2)))
}
