package enforcement

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
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
