package permissiongrant

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

var asked = time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)

// open is a grant in a state that ends so long after the question.
func openFor(state v1alpha1.GrantState, whole time.Duration, conditions ...metav1.Condition) *v1alpha1.PermissionGrant {
	g := &v1alpha1.PermissionGrant{ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "pg", UID: "uid", CreationTimestamp: metav1.NewTime(asked)}}
	g.Spec.Request.Session.Namespace = "checkout"
	g.Status.State, g.Status.ExpirationTime, g.Status.Conditions = state, &metav1.Time{Time: asked.Add(whole)}, conditions
	return g
}

func condition(kind v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.ConditionReason, at time.Time) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: status, Reason: string(reason), LastTransitionTime: metav1.NewTime(at)}
}

// Proves G-6: people are told before either end, once for each.
func TestExpiringIsSetNearEitherEnd(t *testing.T) {
	approved := condition(v1alpha1.ConditionApproved, metav1.ConditionTrue, v1alpha1.ReasonRequirementsMet, asked.Add(10*time.Hour))
	warned := condition(v1alpha1.ConditionExpiring, metav1.ConditionTrue, v1alpha1.ReasonDecisionDue, asked.Add(9*time.Hour))
	type want struct {
		Reason string
		Since  time.Duration
	}
	for _, tt := range []struct {
		name  string
		grant *v1alpha1.PermissionGrant
		after time.Duration
		want  *want
	}{
		{"long before", openFor(v1alpha1.GrantPending, 16*time.Hour), time.Hour, nil},
		{"just before the half hour", openFor(v1alpha1.GrantPending, 16*time.Hour), 15*time.Hour + 30*time.Minute - time.Second, nil},
		{"half an hour before", openFor(v1alpha1.GrantPending, 16*time.Hour), 15*time.Hour + 30*time.Minute, &want{"DecisionDue", 15*time.Hour + 30*time.Minute}},
		{"a short question, in its first half", openFor(v1alpha1.GrantPending, 10*time.Minute), 5*time.Minute - time.Second, nil},
		{"a short question, in its second half", openFor(v1alpha1.GrantPending, 10*time.Minute), 5 * time.Minute, &want{"DecisionDue", 5 * time.Minute}},
		{"told already", openFor(v1alpha1.GrantPending, 9*time.Hour+time.Minute, warned), 9*time.Hour + 10*time.Second, &want{"DecisionDue", 9 * time.Hour}},
		{"told, and then approved", openFor(v1alpha1.GrantApproved, 14*time.Hour, approved, warned), 10 * time.Hour, nil},
		{"an approval, half an hour before", openFor(v1alpha1.GrantApproved, 14*time.Hour, approved), 13*time.Hour + 30*time.Minute, &want{"UseDue", 13*time.Hour + 30*time.Minute}},
		{"an approval after a warned question", openFor(v1alpha1.GrantApproved, 14*time.Hour, approved, warned), 13*time.Hour + 45*time.Minute, &want{"UseDue", 13*time.Hour + 45*time.Minute}},
		{"a short approval counts from the approval", openFor(v1alpha1.GrantApproved, 10*time.Hour+20*time.Minute, approved), 10*time.Hour + 9*time.Minute, nil},
		{"a closed grant", func() *v1alpha1.PermissionGrant {
			g := openFor(v1alpha1.GrantExpired, time.Hour, warned)
			g.Status.ExpirationTime = nil
			return g
		}(), time.Hour, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &Reconciler{Store: &policystore.Store{}, Now: func() time.Time { return asked.Add(tt.after) }}
			status := tt.grant.Status.DeepCopy()
			r.warn(tt.grant, status)
			var got *want
			if c := meta.FindStatusCondition(status.Conditions, string(v1alpha1.ConditionExpiring)); c != nil {
				got = &want{c.Reason, c.LastTransitionTime.Sub(asked)}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Expiring (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves G-5, G-7: what only the grant knows is not deleted before it is known elsewhere, or counts no more.
func TestAClosedGrantStaysAsLongAsItIsNeeded(t *testing.T) {
	decided := condition(v1alpha1.ConditionDecided, metav1.ConditionTrue, v1alpha1.ReasonApproverDenied, asked.Add(time.Hour))
	week := time.Duration(v1alpha1.DefaultFinishedGrantSeconds) * time.Second
	closed := func(state v1alpha1.GrantState, uses ...v1alpha1.GrantUse) *v1alpha1.PermissionGrant {
		g := openFor(state, 0, decided)
		g.Status.ExpirationTime, g.Status.Uses = nil, uses
		return g
	}
	r := &Reconciler{Store: &policystore.Store{}}
	for _, tt := range []struct {
		name  string
		grant *v1alpha1.PermissionGrant
		left  time.Duration
		never bool
	}{
		{"a denied one", closed(v1alpha1.GrantDenied), week + time.Hour, false},
		{"a used one", closed(v1alpha1.GrantExhausted, v1alpha1.GrantUse{Outcome: v1alpha1.UseConsumed}), week + time.Hour, false},
		{"one whose use is not settled", closed(v1alpha1.GrantRevoked, v1alpha1.GrantUse{Outcome: v1alpha1.UseConsumed}, v1alpha1.GrantUse{Outcome: v1alpha1.UseReserved}), 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			left, never := r.deletable(tt.grant, asked)
			if left != tt.left || never != tt.never {
				t.Errorf("stays %s (never deleted: %v), want %s (%v)", left, never, tt.left, tt.never)
			}
		})
	}
}

// The longest of what two namespaces say counts, and one that says nothing has the default.
func TestTheLongestSettingCounts(t *testing.T) {
	g := openFor(v1alpha1.GrantPending, time.Hour)
	r := &Reconciler{Store: &policystore.Store{}}
	if got := r.longest(g, 1800, func(*policystore.Namespace) int32 { return 7 }); got != 1800 {
		t.Errorf("without any policy %d, want the default", got)
	}
}
