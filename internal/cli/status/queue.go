package status

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/span"
)

// addGrants counts questions. A grant is deleted some time after its end, so that only what is still there counts.
func (r *Report) addGrants(all []v1alpha1.PermissionGrant) {
	q := &Queue{SinceTime: metav1.NewTime(r.now.Add(-lookBack)), whole: true, none: len(all) == 0}
	r.Queue = q
	oldest := metav1.NewTime(r.now)
	for i := range all {
		if asked := all[i].CreationTimestamp; asked.Before(&oldest) {
			oldest = asked
		}
	}
	if q.SinceTime.Before(&oldest) {
		q.SinceTime, q.whole = oldest, false
	}
	var took []time.Duration
	for i := range all {
		g := &all[i]
		if g.Status.State == v1alpha1.GrantPending || g.Status.State == "" {
			r.addPending(g)
			continue
		}
		decided := meta.FindStatusCondition(g.Status.Conditions, string(v1alpha1.ConditionDecided))
		if decided == nil || decided.LastTransitionTime.Before(&q.SinceTime) {
			continue
		}
		switch v1alpha1.ConditionReason(decided.Reason) {
		case v1alpha1.ReasonRequirementsMet:
			q.Approved++
		case v1alpha1.ReasonApproverDenied:
			q.Denied++
		case v1alpha1.ReasonNotDecidedInTime:
			q.Expired++
			continue
		default:
			continue
		}
		took = append(took, decided.LastTransitionTime.Sub(g.CreationTimestamp.Time))
	}
	if len(took) > 0 {
		slices.Sort(took)
		q.MedianAnswerSeconds = new(int64(took[len(took)/2] / time.Second))
	}
}

func (r *Report) addPending(g *v1alpha1.PermissionGrant) {
	r.Queue.Pending++
	if r.Queue.OldestTime == nil || g.CreationTimestamp.Before(r.Queue.OldestTime) {
		r.Queue.OldestTime = &g.CreationTimestamp
	}
	if left := g.Spec.Request.DecideByTime.Sub(r.now); left < soon {
		r.Attention = append(r.Attention, Attention{
			Object:  "PermissionGrant " + g.Namespace + "/" + g.Name,
			Message: fmt.Sprintf("%s expires unanswered in %s", g.Spec.Request.Operation.Summary, span.Text(left)),
			Command: fmt.Sprintf("kubectl -n %s describe permissiongrant %s", g.Namespace, g.Name),
		})
	}
}
