package permissiongrant

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

// deletable is how long a closed grant stays; 0 or less when it goes now. never is true while what became of a use is not
// known: only the grant tells.
func (r *Reconciler) deletable(g *v1alpha1.PermissionGrant, now time.Time) (left time.Duration, never bool) {
	if reserved(g) {
		return 0, true
	}
	return finished(g).Add(r.retention(g)).Sub(now), false
}

// retention of finished grants: the profile's of the grant's namespace, or the default. A denied one is what keeps its
// question from being asked again (requirement G-7), so it stays as long as that rests.
func (r *Reconciler) retention(g *v1alpha1.PermissionGrant) time.Duration {
	keep := int32(v1alpha1.DefaultFinishedGrantSeconds)
	if settings, ok := r.namespace(g.Namespace); ok && settings.Policy != nil {
		keep = settings.Policy.Spec.WithProfileDefaults().Retention.FinishedGrantSeconds
	}
	if g.Status.State == v1alpha1.GrantDenied {
		keep = max(keep, r.longest(g, v1alpha1.DefaultAskAgainAfterSeconds, func(n *policystore.Namespace) int32 { return n.AskAgainAfterSeconds }))
	}
	return time.Duration(keep) * time.Second
}

// longest joins a setting of the session's and the grant's namespace, as the engine joins policies: the longest counts. A
// namespace that is not governed, or whose profile is not known, has the default.
func (r *Reconciler) longest(g *v1alpha1.PermissionGrant, byDefault int32, setting func(*policystore.Namespace) int32) int32 {
	most := int32(0)
	for _, name := range []string{g.Spec.Request.Session.Namespace, g.Namespace} {
		seconds := byDefault
		if settings, ok := r.namespace(name); ok && setting(&settings) > 0 {
			seconds = setting(&settings)
		}
		most = max(most, seconds)
	}
	return most
}

func (r *Reconciler) namespace(name string) (policystore.Namespace, bool) {
	snapshot := r.Store.Current()
	if snapshot == nil {
		return policystore.Namespace{}, false
	}
	return snapshot.Namespace(name)
}

// finished is when the grant reached its last state.
func finished(g *v1alpha1.PermissionGrant) time.Time {
	last := g.CreationTimestamp.Time
	for _, kind := range []v1alpha1.ConditionType{v1alpha1.ConditionDecided, v1alpha1.ConditionApproved, v1alpha1.ConditionSettled} {
		if c := meta.FindStatusCondition(g.Status.Conditions, string(kind)); c != nil && c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	return last
}
