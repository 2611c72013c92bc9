package permissiongrant

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

func TestWhatWaitsIsCountedByNamespaceUpToABound(t *testing.T) {
	at := func(namespace string, state v1alpha1.GrantState, minutes int) v1alpha1.PermissionGrant {
		g := v1alpha1.PermissionGrant{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, CreationTimestamp: metav1.NewTime(asked.Add(time.Duration(minutes) * time.Minute))}}
		g.Status.State = state
		return g
	}
	grants := []v1alpha1.PermissionGrant{
		at("a", v1alpha1.GrantPending, 5), at("a", v1alpha1.GrantPending, 3), at("a", v1alpha1.GrantApproved, 0), at("a", "", 9),
		at("b", v1alpha1.GrantPending, 1), at("c", v1alpha1.GrantPending, 2), at("c", v1alpha1.GrantPending, 8), at("d", v1alpha1.GrantDenied, 0), at("e", v1alpha1.GrantPending, 7),
	}
	minute := func(n int) time.Time { return asked.Add(time.Duration(n) * time.Minute) }
	everything := []waits{{"a", 3, minute(3)}, {"c", 2, minute(2)}, {"b", 1, minute(1)}, {"e", 1, minute(7)}}
	if diff := cmp.Diff(everything, pending(grants, 100), cmp.AllowUnexported(waits{})); diff != "" {
		t.Errorf("below the bound (-want +got):\n%s", diff)
	}
	bounded := []waits{{"a", 3, minute(3)}, {"c", 2, minute(2)}, {other, 2, minute(1)}}
	if diff := cmp.Diff(bounded, pending(grants, 2), cmp.AllowUnexported(waits{})); diff != "" {
		t.Errorf("above the bound (-want +got):\n%s", diff)
	}
	if got := pending(nil, 2); len(got) != 0 {
		t.Errorf("nothing waits: %v", got)
	}
}

func TestGroupsBeyondABoundShareALabel(t *testing.T) {
	b := bounded{most: 2}
	var got []string
	for _, group := range []string{"sre", "owners", "third", "sre", "fourth", "owners"} {
		got = append(got, b.label(group))
	}
	if diff := cmp.Diff([]string{"sre", "owners", other, "sre", other, "owners"}, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// answer is a decision some minutes after the question.
func answer(verdict v1alpha1.Verdict, minutes int, groups ...string) v1alpha1.GrantDecision {
	at := metav1.NewTime(asked.Add(time.Duration(minutes) * time.Minute))
	return v1alpha1.GrantDecision{Verdict: verdict, ApproverGroups: groups, DecidedTime: &at}
}

// Proves K-4: an answer is told and counted once, also when admission wrote the grant before the reconciler saw the answer;
// and never again after a restart.
func TestAnAnswerIsToldAndCountedOnce(t *testing.T) {
	recorder, metrics, h := events.NewFakeRecorder(20), NewMetrics(), &history{}
	grant := func(name string, decided v1alpha1.ConditionReason, minutes int, decisions ...v1alpha1.GrantDecision) *v1alpha1.PermissionGrant {
		g := openFor(v1alpha1.GrantPending, time.Hour)
		g.Name, g.UID = name, types.UID(name)
		g.Spec.Decisions = decisions
		g.Spec.Request.Operation.Summary = "delete configmaps checkout/" + name
		status := metav1.ConditionTrue
		if decided == v1alpha1.ReasonAwaitingApproval {
			status = metav1.ConditionFalse
		}
		g.Status.Conditions = []metav1.Condition{condition(v1alpha1.ConditionDecided, status, decided, asked.Add(time.Duration(minutes)*time.Minute))}
		return g
	}
	start := asked.Add(10 * time.Minute)
	see := func(g *v1alpha1.PermissionGrant) { h.observe(g, start, recorder, metrics) }
	before := grant("before", v1alpha1.ReasonRequirementsMet, 9, answer(v1alpha1.VerdictApprove, 9))
	see(before) // an earlier leader's
	see(grant("two", v1alpha1.ReasonAwaitingApproval, 0))
	see(grant("two", v1alpha1.ReasonAwaitingApproval, 0, answer(v1alpha1.VerdictApprove, 20, "acme:sre")))
	two := grant("two", v1alpha1.ReasonRequirementsMet, 30, answer(v1alpha1.VerdictApprove, 20, "acme:sre"), answer(v1alpha1.VerdictApprove, 30, "acme:sre", "acme:owners"))
	see(two)
	see(two)
	see(grant("denied", v1alpha1.ReasonApproverDenied, 12, answer(v1alpha1.VerdictDeny, 12)))
	see(grant("late", v1alpha1.ReasonNotDecidedInTime, 40))
	see(grant("replaced", v1alpha1.ReasonEpochRaised, 41))
	close(recorder.Events)
	var got []string
	for event := range recorder.Events {
		got = append(got, event)
	}
	want := []string{
		"Normal GrantApproved delete configmaps checkout/two: ", "Normal GrantDenied delete configmaps checkout/denied: ", "Warning GrantExpired delete configmaps checkout/late: ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	counts := map[string]float64{}
	for _, group := range []string{"", "acme:sre", "acme:owners"} {
		for _, verdict := range []string{"Approve", "Deny"} {
			if n := testutil.ToFloat64(metrics.Decisions.WithLabelValues(group, verdict)); n > 0 {
				counts[fmt.Sprintf("%s %s", verdict, group)] = n
			}
		}
	}
	if diff := cmp.Diff(map[string]float64{"Approve acme:sre": 2, "Approve acme:owners": 1, "Deny ": 1}, counts); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
	if n := testutil.CollectAndCount(metrics.AnswerSeconds); n != 3 {
		t.Errorf("%d series of answer times, want that of each group of the approval that decided, and of the denial", n)
	}
	h.forget(types.NamespacedName{Namespace: "checkout", Name: "two"})
	if len(h.known) != 4 {
		t.Errorf("%d grants are remembered, want 4", len(h.known))
	}
}
