package enforcement

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/policy"
)

func TestAFailureIsNamedByItsGravestAnswer(t *testing.T) {
	unreachable := apierrors.NewInternalError(errors.New(`failed calling webhook: Post "https://10.0.0.1/secret/enforce": connection refused`))
	untrusted := apierrors.NewInternalError(errors.New("failed calling webhook: tls: failed to verify certificate: x509: unknown authority"))
	tests := []struct {
		name    string
		failure error
		reason  v1alpha1.ConditionReason
		message string
	}{
		{
			name:    "a webhook that cannot be reached, without what the API server tried to call",
			failure: fmt.Errorf("within 10s: %w", errors.Join(&admission.Failure{Enforcer: "enforce.stepbeyond.dev", Answer: admission.AnswerFailed, Err: unreachable})),
			reason:  v1alpha1.ReasonCanaryFailed,
			message: "Not refused as it should be: enforce.stepbeyond.dev: Failed (InternalError)",
		},
		{
			name:    "a certificate that the API server does not trust",
			failure: &admission.Failure{Enforcer: admission.EntryEnforce, Answer: admission.AnswerFailed, Err: untrusted},
			reason:  v1alpha1.ReasonCertificateNotServed,
			message: "Not refused as it should be: enforce.stepbeyond.dev: Failed (InternalError)",
		},
		{
			name: "one request that was let through is graver than one that failed",
			failure: errors.Join(
				&admission.Failure{Enforcer: admission.EntryEnforce, Answer: admission.AnswerFailed, Err: untrusted},
				&admission.Failure{Enforcer: admission.FloorPods, Answer: admission.AnswerAllowed}),
			reason:  v1alpha1.ReasonCanaryAdmitted,
			message: "Not refused as it should be: enforce.stepbeyond.dev: Failed (InternalError), stepbeyond-floor-pods: Allowed",
		},
		{
			name:    "a canary without a token",
			failure: errors.New("token of ServiceAccount stepbeyond-canary/canary: not found"),
			reason:  v1alpha1.ReasonCanaryFailed,
			message: "The canary could not ask: token of ServiceAccount stepbeyond-canary/canary: not found",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.reason, failureReason(tt.failure)); diff != "" {
				t.Errorf("reason (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.message, describe(tt.failure)); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALossIsToldOfWhatWasLastKnownProven(t *testing.T) {
	tests := []struct {
		name   string
		before metav1.ConditionStatus // empty for a status that was never written
		proven bool                   // at some time before
		now    metav1.ConditionStatus
		want   string
	}{
		{"proven, then lost", metav1.ConditionTrue, true, metav1.ConditionFalse, EventEnforcementLost},
		{"proven, too old to be known, then lost", metav1.ConditionUnknown, true, metav1.ConditionFalse, EventEnforcementLost},
		{"never proven", metav1.ConditionUnknown, false, metav1.ConditionFalse, ""},
		{"new and not proven", "", false, metav1.ConditionFalse, ""},
		{"lost already", metav1.ConditionFalse, true, metav1.ConditionFalse, ""},
		{"proven, then too old to be known", metav1.ConditionTrue, true, metav1.ConditionUnknown, ""},
		{"lost, then proven", metav1.ConditionFalse, true, metav1.ConditionTrue, EventEnforcementProven},
		{"proven still", metav1.ConditionTrue, true, metav1.ConditionTrue, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(1)
			ready := func(status metav1.ConditionStatus) []metav1.Condition {
				return []metav1.Condition{{Type: string(v1alpha1.ConditionEnforcementReady), Status: status}}
			}
			object := &v1alpha1.ClusterAgentPolicy{}
			if tt.before != "" {
				object.Status.Conditions, object.Status.Enforcement = ready(tt.before), &v1alpha1.EnforcementStatus{}
			}
			if tt.proven {
				object.Status.Enforcement.LastProvenTime = new(metav1.Now())
			}
			(&Status{Recorder: recorder}).tell(object, v1alpha1.ClusterAgentPolicyStatus{Conditions: ready(tt.now)})
			got := ""
			if len(recorder.Events) > 0 {
				got = strings.Fields(<-recorder.Events)[1]
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAScopeThatIsRefusedSaysWhy(t *testing.T) {
	large := make([]string, 10_000)
	for i := range large {
		large[i] = fmt.Sprintf("team-%d", i)
	}
	tests := []struct {
		name  string
		scope admission.Scope
		want  v1alpha1.ConditionReason
	}{
		{"one that fits", admission.Scope{Namespaces: large[:1]}, ""},
		{"one that is too large", admission.Scope{Namespaces: large}, v1alpha1.ReasonScopeTooLarge},
		{"an identity of the cluster", admission.Scope{Users: []string{"system:admin"}}, v1alpha1.ReasonInvalidScope},
		{"an exempt canary", admission.Scope{Exempt: []admission.ServiceAccount{{Namespace: admission.CanaryNamespace, Name: "canary"}}}, v1alpha1.ReasonInvalidScope},
		{"no name of a namespace", admission.Scope{Namespaces: []string{"Team"}}, v1alpha1.ReasonInvalidScope},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.scope.Expressions()
			in := input{observation: Observation{Problem: err}, object: &v1alpha1.ClusterAgentPolicy{}}
			ready, _ := in.ready()
			_, enforced, _ := in.enforcementReady()
			got := []v1alpha1.ConditionReason{ready, enforced}
			want := []v1alpha1.ConditionReason{tt.want, tt.want}
			if tt.want == "" {
				want = []v1alpha1.ConditionReason{v1alpha1.ReasonCompiled, v1alpha1.ReasonNotProvenYet}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("reasons of Ready and EnforcementReady (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABadEntryOfTheScopeIsNoBadRule(t *testing.T) {
	for field, want := range map[string]v1alpha1.ConditionReason{
		"governed.users[0].name":            v1alpha1.ReasonInvalidScope,
		"governed.exemptServiceAccounts[1]": v1alpha1.ReasonInvalidScope,
		"governed.namespaceSelector":        v1alpha1.ReasonInvalidSelector,
		"rules[0].when":                     v1alpha1.ReasonInvalidRule,
	} {
		if got := reasonOf(policy.Problem{Field: field}); got != want {
			t.Errorf("%s: %s, want %s", field, got, want)
		}
	}
}

func TestAnOldProofProvesNothing(t *testing.T) {
	tests := []struct {
		name string
		age  time.Duration
		want bool
	}{
		{"the last proof is new", proveEvery, true},
		{"three proofs are missing", staleAfter + time.Second, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			state := &State{}
			state.publish(Observation{Proof: admission.Proof{Time: time.Now().Add(-tt.age)}})
			if _, got := state.Proven(); got != tt.want {
				t.Errorf("proven: %t, want %t", got, tt.want)
			}
		})
	}
}

func TestChangedTellsOutcomesAndNotTimes(t *testing.T) {
	state := &State{}
	changed := state.Changed()
	received := func() bool {
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	proof := admission.Proof{WebhookProven: true, FloorProven: true, Time: time.Now()}
	steps := []struct {
		name        string
		observation Observation
		want        bool
	}{
		{"the first proof", Observation{Proof: proof}, true},
		{"the same outcome later", Observation{Proof: admission.Proof{WebhookProven: true, FloorProven: true, Time: proof.Time.Add(proveEvery)}}, false},
		{"a namespace joins", Observation{Proof: proof, Scope: admission.Scope{Namespaces: []string{"checkout"}}}, true},
		{"the webhook is lost", Observation{Proof: admission.Proof{FloorProven: true, Time: proof.Time}, Failure: errors.New("x"), Scope: admission.Scope{Namespaces: []string{"checkout"}}}, true},
	}
	for _, step := range steps {
		state.publish(step.observation)
		if got := received(); got != step.want {
			t.Errorf("%s: told %t, want %t", step.name, got, step.want)
		}
	}
}
