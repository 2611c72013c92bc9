package status_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	applied "stepbeyond.dev/stepbeyond/internal/applyconfiguration/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/status"
)

var (
	before = metav1.Date(2026, time.November, 30, 7, 0, 0, 0, time.UTC)
	now    = metav1.Date(2026, time.November, 30, 8, 0, 0, 0, time.UTC)
)

func TestConditions(t *testing.T) {
	observed := []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Compiled", LastTransitionTime: before},
		{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "InvalidRule", LastTransitionTime: before},
	}
	tests := []struct {
		name string
		set  metav1.ConditionStatus
		want metav1.Time
	}{
		{"a condition whose status stays keeps its transition time, whatever its reason", metav1.ConditionTrue, before},
		{"a condition whose status changes has transitioned now", metav1.ConditionFalse, now},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := status.NewConditions(observed, 3, now)
			c.Set(v1alpha1.ConditionReady, tt.set, v1alpha1.ReasonActive, "text")
			want := []metav1.Condition{{
				Type: "Ready", Status: tt.set, Reason: "Active", Message: "text", ObservedGeneration: 3, LastTransitionTime: tt.want,
			}}
			if diff := cmp.Diff(want, c.List()); diff != "" {
				t.Errorf("conditions; what is not set is absent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigurationHoldsWhatTheStatusHolds(t *testing.T) {
	computed := v1alpha1.AgentSessionStatus{
		State: v1alpha1.SessionActive, Epoch: 2, PendingGrants: new(int32(0)),
		LivePods: []v1alpha1.LivePod{{Name: "agent-0", UID: "u"}},
	}
	got, err := status.Configuration[applied.AgentSessionStatusApplyConfiguration](computed)
	if err != nil {
		t.Fatal(err)
	}
	want := applied.AgentSessionStatus().WithState(v1alpha1.SessionActive).WithEpoch(2).WithPendingGrants(0).
		WithLivePods(applied.LivePod().WithName("agent-0").WithUID("u"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}
