package crd_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	ac "stepbeyond.dev/stepbeyond/internal/applyconfiguration/api/v1alpha1"
)

// Controllers write status by server-side apply with the generated configurations, so these must name kind and version
// as the API server does.
func TestStatusIsWrittenByServerSideApply(t *testing.T) {
	ready := metav1ac.Condition().WithType(string(v1alpha1.ConditionReady)).WithStatus("True").
		WithReason(string(v1alpha1.ReasonCompiled)).WithMessage("").WithObservedGeneration(1).
		WithLastTransitionTime(metav1.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC))
	for _, test := range []struct {
		example string
		apply   func(namespace, name string) runtime.ApplyConfiguration
		path    []string
		want    string
	}{
		{
			example: "testdata/clusteragentpolicy/valid/minimal.yaml",
			apply: func(_, name string) runtime.ApplyConfiguration {
				return ac.ClusterAgentPolicy(name).WithStatus(ac.ClusterAgentPolicyStatus().WithConditions(ready))
			},
			path: []string{"status", "conditions"},
			want: `[{type: Ready, status: "True", reason: Compiled, message: "", observedGeneration: 1,
				lastTransitionTime: "2026-11-30T18:00:00Z"}]`,
		},
		{
			example: "testdata/agentpolicy/valid/minimal.yaml",
			apply: func(namespace, name string) runtime.ApplyConfiguration {
				return ac.AgentPolicy(name, namespace).WithStatus(ac.AgentPolicyStatus().WithSessions(0))
			},
			path: []string{"status"},
			want: `{sessions: 0}`,
		},
		{
			example: "testdata/agentsession/valid/from-pod.yaml",
			apply: func(namespace, name string) runtime.ApplyConfiguration {
				return ac.AgentSession(name, namespace).WithStatus(ac.AgentSessionStatus().
					WithState(v1alpha1.SessionActive).WithEpoch(1).WithPendingGrants(0).
					WithLivePods(ac.LivePod().WithName("web").WithUID("1")))
			},
			path: []string{"status"},
			want: `{state: Active, epoch: 1, pendingGrants: 0, livePods: [{name: web, uid: "1"}]}`,
		},
		{
			example: "testdata/permissiongrant/valid/exec.yaml",
			apply: func(namespace, name string) runtime.ApplyConfiguration {
				return ac.PermissionGrant(name, namespace).WithStatus(ac.PermissionGrantStatus().
					WithState(v1alpha1.GrantExhausted).WithReason(v1alpha1.ReasonEffectSeen).WithUsesLeft(0))
			},
			path: []string{"status"},
			want: `{state: Exhausted, reason: EffectSeen, usesLeft: 0}`,
		},
	} {
		t.Run(test.example, func(t *testing.T) {
			object := create(t, test.example)
			configuration := test.apply(object.GetNamespace(), object.GetName())
			if err := k8s.Status().Apply(t.Context(), configuration, client.FieldOwner("crd-test")); err != nil {
				t.Fatal(err)
			}
			if err := k8s.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			expectField(t, object, test.path, test.want)
		})
	}
}
