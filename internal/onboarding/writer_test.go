package onboarding

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	applied "stepbeyond.dev/stepbeyond/internal/applyconfiguration/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

var k8s client.Client

func TestMain(m *testing.M) {
	env.Main(m, func(_ context.Context, plane *env.Env) (err error) {
		k8s, err = plane.Client()
		return err
	})
}

// audited makes namespace trial under a profile that only audits, and loads the policies.
func audited(t *testing.T) *policystore.Store {
	t.Helper()
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.SystemNamespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "trial", Labels: map[string]string{v1alpha1.LabelProfile: "onboarding"}}},
		&v1alpha1.ClusterAgentPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "default"},
			Spec: v1alpha1.ClusterAgentPolicySpec{
				BaselineVersion: "v1",
				Governed: v1alpha1.GovernedSubjects{NamespaceSelector: metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelProfile, Operator: metav1.LabelSelectorOpExists}},
				}},
				Profiles: []v1alpha1.ProfileBinding{{Name: "onboarding", AgentPolicyName: "standard", FloorEnforcement: v1alpha1.FloorEnforcementAudit}},
			},
		},
	} {
		if err := k8s.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	store := &policystore.Store{Reader: k8s}
	if err := store.Rebuild(t.Context(), metav1.Now()); err != nil {
		t.Fatal(err)
	}
	return store
}

func live(t *testing.T) v1alpha1.ClusterAgentPolicy {
	t.Helper()
	var object v1alpha1.ClusterAgentPolicy
	if err := k8s.Get(t.Context(), client.ObjectKey{Name: "default"}, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// Two replicas write at the same moment, and the leader's status stands beside.
func TestReplicasAddUpInOneReport(t *testing.T) {
	ctx, store := t.Context(), audited(t)
	leaders := applied.ClusterAgentPolicyStatus().WithObservedGeneration(1)
	if err := k8s.Status().Apply(ctx, applied.ClusterAgentPolicy("default").WithStatus(leaders), client.FieldOwner("leader"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	const rounds, reviews = 20, 50
	op, decision := asked("web")
	writers := make([]*Writer, 2)
	var wait sync.WaitGroup
	for i := range writers {
		w := &Writer{Client: k8s, Live: k8s, Store: store, Counter: NewCounter(NewMetric())}
		writers[i] = w
		wait.Go(func() {
			for range rounds {
				for range reviews {
					w.Counter.Add(ReviewOf(agent, op, decision), decision.Reason)
				}
				_ = w.Write(ctx, metav1.Now()) // what fails here is written by a later round
			}
		})
	}
	wait.Wait()
	for _, w := range writers {
		if err := w.Write(ctx, metav1.Now()); err != nil {
			t.Fatal(err)
		}
	}
	object := live(t)
	if object.Status.Onboarding == nil {
		t.Fatal("there is no report")
	}
	const all = 2 * rounds * reviews
	want := v1alpha1.OnboardingServiceAccount{
		Namespace: "trial", Name: "agent", Counts: v1alpha1.OnboardingCounts{WouldAsk: all, Ask: all},
		Findings: []v1alpha1.OnboardingFinding{{
			Operation: "delete deployments.apps", Reason: "PermissionPending", Because: "Destructive", Rule: "baseline/deletions", Count: all,
		}},
	}
	if diff := cmp.Diff([]v1alpha1.OnboardingServiceAccount{want}, object.Status.Onboarding.ServiceAccounts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if object.Status.ObservedGeneration != 1 {
		t.Error("the report took the leader's part of the status away")
	}

	t.Run("a write without anything new changes nothing", func(t *testing.T) {
		if err := writers[0].Write(ctx, metav1.Now()); err != nil {
			t.Fatal(err)
		}
		if again := live(t); again.ResourceVersion != object.ResourceVersion {
			t.Errorf("resource version %s, before %s", again.ResourceVersion, object.ResourceVersion)
		}
	})
	t.Run("without a namespace that is audited there is no report", func(t *testing.T) {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":null}}`))
		if err := k8s.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "trial"}}, patch); err != nil {
			t.Fatal(err)
		}
		if err := store.Rebuild(ctx, metav1.Now()); err != nil {
			t.Fatal(err)
		}
		writers[1].Counter.Add(ReviewOf(agent, op, decision), decision.Reason)
		for _, w := range writers {
			if err := w.Write(ctx, metav1.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if got := live(t); got.Status.Onboarding != nil || got.Status.ObservedGeneration != 1 {
			t.Errorf("status %+v", got.Status)
		}
	})
}
