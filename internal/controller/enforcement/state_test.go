package enforcement

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
)

// Proves M-2, F-1.
func TestWhatWasProvenBeforeARepairCountsNoMore(t *testing.T) {
	admissionKind := func(kind string) admission.Guarded {
		return admission.Guarded{GroupVersionKind: schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind}, Name: "x"}
	}
	definition := admission.Guarded{GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, Name: "x"}
	tests := []struct {
		name           string
		object         admission.Guarded
		proof          time.Duration // when the newest proof began, from the repair on
		webhook, floor v1alpha1.EnforcementState
		reason         v1alpha1.ConditionReason
	}{
		{"a webhook configuration, not proven again", admissionKind("ValidatingWebhookConfiguration"), -time.Second,
			v1alpha1.EnforcementRepairing, v1alpha1.EnforcementInForce, v1alpha1.ReasonWebhookMissing},
		{"a binding, not proven again", admissionKind("ValidatingAdmissionPolicyBinding"), -time.Second,
			v1alpha1.EnforcementInForce, v1alpha1.EnforcementRepairing, v1alpha1.ReasonFloorMissing},
		{"a binding, proven again", admissionKind("ValidatingAdmissionPolicyBinding"), time.Second,
			v1alpha1.EnforcementInForce, v1alpha1.EnforcementInForce, v1alpha1.ReasonCanaryDenied},
		{"a definition, whose loss opens nothing", definition, -time.Second,
			v1alpha1.EnforcementInForce, v1alpha1.EnforcementInForce, v1alpha1.ReasonCanaryDenied},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			state := &State{}
			changed, repaired := state.Changed(), state.Repaired()
			state.repaired(admission.Repair{Guarded: tt.object, Missing: true})
			state.publish(Observation{Proof: admission.Proof{WebhookProven: true, FloorProven: true, Time: time.Now().Add(tt.proof)}})
			if len(changed) != 1 || len(repaired) != 1 {
				t.Errorf("told of a change %d times, of a repair %d times, want both once", len(changed), len(repaired))
			}
			in := input{observation: state.Current(), object: &v1alpha1.ClusterAgentPolicy{}}
			_, reason, message := in.enforcementReady()
			if got := in.enforcement(); got.Webhook != tt.webhook || got.Floor != tt.floor || reason != tt.reason {
				t.Errorf("webhook %s, floor %s, reason %s; want %s, %s, %s", got.Webhook, got.Floor, reason, tt.webhook, tt.floor, tt.reason)
			}
			if _, proven := state.Proven(); proven != (tt.reason == v1alpha1.ReasonCanaryDenied) {
				t.Errorf("proven: %t", proven)
			}
			if !strings.Contains(message, tt.object.String()+" was missing") {
				t.Errorf("message %q does not say what was repaired", message)
			}
		})
	}
}

func TestARepairOfLongAgoIsNotNews(t *testing.T) {
	repair := &Repair{Done: time.Now().Add(-2 * repairTold)}
	if got := (Observation{}).after(repair).Repair; got != nil {
		t.Errorf("%v is still told after two hours", got)
	}
}
