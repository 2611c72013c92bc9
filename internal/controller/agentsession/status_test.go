package agentsession_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

func inAnHour() time.Time { return time.Now().Add(time.Hour).Truncate(time.Second) }
func past() time.Time     { return time.Now().Add(-time.Hour).Truncate(time.Second) }

func conditions(status v1alpha1.AgentSessionStatus) []string {
	var lines []string
	for _, c := range status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	return lines
}

func want(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestTheStatusOfASessionFromATemplate(t *testing.T) {
	checkout := namespace(t, "standard")
	o := start(t)
	agent := pod(checkout, "agent-0", nil, "")
	create(t, agent)
	o.bear(t, agent)
	session := &sessions(t, checkout)[0]
	got := o.observe(t, session)
	want(t, "conditions", []string{"Ready=True/Active", "GuaranteeMet=True/EnforcementProven"}, conditions(got))
	var kinds []string
	for _, reference := range got.Policies {
		kinds = append(kinds, reference.Kind+" "+reference.Name)
	}
	want(t, "policies", []string{"ClusterAgentPolicy default", "AgentPolicy standard"}, kinds)
	got.Policies, got.Conditions = nil, nil
	want(t, "status", v1alpha1.AgentSessionStatus{
		ObservedGeneration: 1, State: v1alpha1.SessionActive, Guarantee: v1alpha1.GuaranteeRuntimeBacked,
		Degraded:  []v1alpha1.LostGuarantee{v1alpha1.LostContext, v1alpha1.LostMemory, v1alpha1.LostProtectedRecord},
		CreatedBy: manager, UserSource: v1alpha1.UserSourceFixed, LivePods: []v1alpha1.LivePod{{Name: "agent-0", UID: agent.UID}},
		Epoch: 1, StartTime: &session.CreationTimestamp, PendingGrants: new(int32(0)),
	}, got)

	before := session.ResourceVersion
	o.observe(t, session)
	want(t, "resourceVersion after a second look, which writes nothing", before, session.ResourceVersion)
}

func TestASessionOpenedByAPersonNamesThePersonOnce(t *testing.T) {
	checkout := namespace(t, "standard")
	o := start(t)
	session := opened(t, checkout, "by-hand", inAnHour(), map[string]string{v1alpha1.AnnotationOpenedBy: "carla@acme.example"})
	o.observe(t, session)
	session.Annotations[v1alpha1.AnnotationOpenedBy] = "mallory"
	if err := k8s.Update(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	got := o.observe(t, session)
	want(t, "createdBy and userSource", []any{"carla@acme.example", v1alpha1.UserSourceExplicit}, []any{got.CreatedBy, got.UserSource})
}

// Proves M-1.
func TestTheGuaranteeIsComputedAndNeverTakenFromAClient(t *testing.T) {
	tests := []struct {
		name      string
		proof     proof
		profile   string
		guarantee v1alpha1.Guarantee
		degraded  []v1alpha1.LostGuarantee
		condition string
	}{
		{
			name: "webhook and floor are proven for the identity", profile: "standard",
			proof:     proof{asked: time.Now(), proven: true, covers: true},
			guarantee: v1alpha1.GuaranteeRuntimeBacked, condition: "GuaranteeMet=True/EnforcementProven",
		},
		{
			name: "nothing was proven yet", profile: "standard", proof: proof{covers: true},
			guarantee: v1alpha1.GuaranteePromptOnly, degraded: []v1alpha1.LostGuarantee{v1alpha1.LostEnforcement},
			condition: "GuaranteeMet=Unknown/NotProvenYet",
		},
		{
			name: "the last proof failed", profile: "standard", proof: proof{asked: time.Now(), covers: true},
			guarantee: v1alpha1.GuaranteePromptOnly, degraded: []v1alpha1.LostGuarantee{v1alpha1.LostEnforcement},
			condition: "GuaranteeMet=False/EnforcementLost",
		},
		{
			name: "the scope in force does not cover the identity", profile: "standard", proof: proof{asked: time.Now(), proven: true},
			guarantee: v1alpha1.GuaranteePromptOnly, degraded: []v1alpha1.LostGuarantee{v1alpha1.LostEnforcement},
			condition: "GuaranteeMet=False/FloorAudited",
		},
		{
			name: "the namespace's profile does not exist", profile: "no-such-profile",
			proof:     proof{asked: time.Now(), proven: true, covers: true},
			guarantee: v1alpha1.GuaranteePromptOnly, degraded: []v1alpha1.LostGuarantee{v1alpha1.LostPolicy},
			condition: "GuaranteeMet=False/NoPolicy",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			session := opened(t, namespace(t, tt.profile), "by-hand", inAnHour(), nil)
			patchStatus(t, session, `{"status":{"guarantee":"verified"}}`)
			o := start(t)
			*o.proof = tt.proof
			got := o.observe(t, session)
			want(t, "guarantee", tt.guarantee, got.Guarantee)
			want(t, "degraded", append(tt.degraded, v1alpha1.LostContext, v1alpha1.LostMemory, v1alpha1.LostProtectedRecord), got.Degraded)
			want(t, "condition", tt.condition, conditions(got)[1])
		})
	}
}

// Proves M-1.
func TestARestartChangesNoGuaranteeUntilItsFirstProof(t *testing.T) {
	session := opened(t, namespace(t, "standard"), "by-hand", inAnHour(), nil)
	proven := start(t).observe(t, session)
	want(t, "guarantee", v1alpha1.GuaranteeRuntimeBacked, proven.Guarantee)

	restarted := start(t)
	*restarted.proof = proof{}
	provenAt(t, time.Now())
	want(t, "status after a restart", proven, restarted.observe(t, session))

	provenAt(t, time.Now().Add(-2*time.Minute))
	got := restarted.observe(t, session)
	want(t, "when the last proof is too old", []any{v1alpha1.GuaranteePromptOnly, "GuaranteeMet=Unknown/NotProvenYet"}, []any{got.Guarantee, conditions(got)[1]})

	*restarted.proof = proof{asked: time.Now(), covers: true}
	lost := restarted.observe(t, session)
	want(t, "after the first proof", []any{v1alpha1.GuaranteePromptOnly, "GuaranteeMet=False/EnforcementLost"}, []any{lost.Guarantee, conditions(lost)[1]})
	*restarted.proof = proof{}
	want(t, "what was lost, after a restart", lost, restarted.observe(t, session))
}

// provenAt writes when an earlier leader proved enforcement.
func provenAt(t *testing.T, at time.Time) {
	t.Helper()
	object := &v1alpha1.ClusterAgentPolicy{}
	if err := k8s.Get(t.Context(), client.ObjectKey{Name: "default"}, object); err != nil {
		t.Fatal(err)
	}
	object.Status.Enforcement = &v1alpha1.EnforcementStatus{
		Webhook: v1alpha1.EnforcementInForce, Floor: v1alpha1.EnforcementInForce, LastProvenTime: new(metav1.NewTime(at)),
	}
	if err := k8s.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func TestASessionEndsAtItsDeadlineForGood(t *testing.T) {
	o := start(t)
	checkout := namespace(t, "standard")
	o.load(t)
	session := opened(t, checkout, "over", past(), nil)
	got := o.observe(t, session)
	want(t, "state", v1alpha1.SessionEnded, got.State)
	want(t, "end", true, got.EndTime.Equal(&session.Spec.DeadlineTime))
	want(t, "condition", "Ready=False/DeadlinePassed", conditions(got)[0])

	session.Spec.DeadlineTime = metav1.NewTime(inAnHour())
	if err := k8s.Update(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	got = o.observe(t, session)
	want(t, "after the deadline was moved", []any{v1alpha1.SessionEnded, "Ready=False/DeadlinePassed"}, []any{got.State, conditions(got)[0]})
}

func TestSuspensionAndEpochAreKept(t *testing.T) {
	checkout := namespace(t, "standard")
	o := start(t)
	session := opened(t, checkout, "by-hand", inAnHour(), nil)
	o.observe(t, session)
	patchStatus(t, session, `{"status":{"state":"Suspended","epoch":3}}`)
	got := o.observe(t, session)
	want(t, "state, epoch and condition", []any{v1alpha1.SessionSuspended, int64(3), "Ready=False/Suspended"},
		[]any{got.State, got.Epoch, conditions(got)[0]})
}

func TestASuspensionThatTheCacheHasNotSeenIsNotOverwritten(t *testing.T) {
	checkout := namespace(t, "standard")
	o := start(t)
	session := opened(t, checkout, "by-hand", inAnHour(), nil)
	seen := session.DeepCopy()
	patchStatus(t, session, `{"status":{"state":"Suspended","epoch":2}}`)
	o.status.Client = interceptor.NewClient(k8s, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if late, ok := object.(*v1alpha1.AgentSession); ok {
				seen.DeepCopyInto(late)
				return nil
			}
			return c.Get(ctx, key, object, opts...)
		},
	})
	_, err := o.status.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(session)})
	if !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict, so that it is tried again on the newer object", err)
	}
	if err := k8s.Get(t.Context(), client.ObjectKeyFromObject(session), session); err != nil {
		t.Fatal(err)
	}
	want(t, "state and epoch", []any{v1alpha1.SessionSuspended, int64(2)}, []any{session.Status.State, session.Status.Epoch})
}

func TestASessionEndsWithItsPod(t *testing.T) {
	checkout := namespace(t, "capped") // sessions with lifetime Pod
	o := start(t)
	agent := pod(checkout, "agent-0", nil, "")
	create(t, agent)
	o.bear(t, agent)
	session := &sessions(t, checkout)[0]
	want(t, "state while the pod is there", v1alpha1.SessionActive, o.observe(t, session).State)
	remove(t, agent)
	create(t, pod(checkout, "agent-0", nil, "")) // another pod under the same name
	got := o.observe(t, session)
	want(t, "state and condition", []any{v1alpha1.SessionEnded, "Ready=False/OwnerGone"}, []any{got.State, conditions(got)[0]})
	if got.EndTime == nil {
		t.Error("endTime is missing")
	}
}

func TestTwoSessionsForOneCallerAreBothStalled(t *testing.T) {
	checkout := namespace(t, "standard")
	o := start(t)
	create(t, pod(checkout, "agent-0", nil, ""))
	first, second := opened(t, checkout, "first", inAnHour(), nil), opened(t, checkout, "second", inAnHour(), nil)
	for _, session := range []*v1alpha1.AgentSession{first, second} {
		want(t, session.Name, []string{
			"Ready=False/DuplicateSession", "GuaranteeMet=True/EnforcementProven", "Stalled=True/DuplicateSession",
		}, conditions(o.observe(t, session)))
	}
}

func TestAnEndedSessionIsDeletedAfterItsRetention(t *testing.T) {
	tests := []struct {
		name  string
		ended time.Time
		pods  string
		gone  bool
		wait  bool
	}{
		{name: "within the retention it stays", ended: time.Now(), pods: "null", wait: true},
		{name: "after the retention it goes", ended: time.Now().Add(-25 * time.Hour), pods: "null", gone: true},
		{name: "while a pod of it lives it stays, so that the pod gets no fresh session", ended: time.Now().Add(-25 * time.Hour), pods: `[{"name":"agent-0","uid":"u"}]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkout := namespace(t, "standard")
			o := start(t)
			session := opened(t, checkout, "over", past(), nil)
			patchStatus(t, session, fmt.Sprintf(`{"status":{"state":"Ended","endTime":%q,"livePods":%s}}`, tt.ended.UTC().Format(time.RFC3339), tt.pods))
			result, err := o.retention.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(session)})
			if err != nil {
				t.Fatal(err)
			}
			want(t, "gone", tt.gone, len(sessions(t, checkout)) == 0)
			want(t, "looked at again", tt.wait, result.RequeueAfter > 0)
		})
	}
}
