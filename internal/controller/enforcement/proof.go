package enforcement

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
)

// enforcement is the state of both halves. Before the first proof of this process both are being written.
func (in input) enforcement() *v1alpha1.EnforcementStatus {
	o := in.observation
	e := &v1alpha1.EnforcementStatus{
		Webhook: half(o, o.Proof.WebhookProven), Floor: half(o, o.Proof.FloorProven), FloorPolicies: int32(o.Proof.FloorPolicies),
	}
	switch before := in.object.Status.Enforcement; {
	case !o.LastProven.IsZero():
		e.LastProvenTime = new(metav1.NewTime(o.LastProven).Rfc3339Copy())
	case before != nil:
		e.LastProvenTime = before.LastProvenTime // proven by an earlier leader
	}
	return e
}

func half(o Observation, proven bool) v1alpha1.EnforcementState {
	switch {
	case proven:
		return v1alpha1.EnforcementInForce
	case o.Proof.Time.IsZero() || o.Repairing:
		return v1alpha1.EnforcementRepairing
	default:
		return v1alpha1.EnforcementLost
	}
}

// enforcementReady is the condition EnforcementReady.
func (in input) enforcementReady() (metav1.ConditionStatus, v1alpha1.ConditionReason, string) {
	o := in.observation
	switch {
	case scopeReason(o.Problem) != "":
		return metav1.ConditionFalse, scopeReason(o.Problem), o.Problem.Error() + "; the last scope stays in force."
	case o.Problem != nil:
		return metav1.ConditionFalse, v1alpha1.ReasonWebhookMissing, "The configuration is not the wanted one: " + o.Problem.Error()
	case o.Proof.Time.IsZero():
		return metav1.ConditionUnknown, v1alpha1.ReasonNotProvenYet, "No canary request was answered since the manager started."
	case o.Failure == nil:
		return metav1.ConditionTrue, v1alpha1.ReasonCanaryDenied, o.provenBy()
	default:
		return metav1.ConditionFalse, failureReason(o.Failure), describe(o.Failure)
	}
}

// provenBy is the sentence about a good proof, and about what was repaired before it.
func (o Observation) provenBy() string {
	sentence := "Webhook and floor refused the canary requests"
	if servers := len(o.Proof.Servers); servers > 1 {
		sentence += fmt.Sprintf(" on each of %d API servers", servers)
	}
	if o.Repair != nil {
		sentence += fmt.Sprintf(". Last repair at %s: %s", o.Repair.Done.UTC().Format(time.RFC3339), o.Repair)
	}
	return sentence + "."
}

// failureReason is the gravest: a request that was let through before one that was not answered as it should.
func failureReason(err error) v1alpha1.ConditionReason {
	reason := v1alpha1.ReasonCanaryFailed
	if unproven, is := errors.AsType[*Unproven](err); is {
		if unproven.Repair.ofWebhook() {
			return v1alpha1.ReasonWebhookMissing
		}
		return v1alpha1.ReasonFloorMissing
	}
	for _, failure := range failures(err) {
		switch {
		case failure.Answer == admission.AnswerAllowed:
			return v1alpha1.ReasonCanaryAdmitted
		case failure.Enforcer == admission.EntryEnforce && failure.Err != nil && failure.Answered() && strings.Contains(failure.Err.Error(), "x509:"):
			reason = v1alpha1.ReasonCertificateNotServed
		}
	}
	return reason
}

// failures finds every failure in an error of a Prover, however it is wrapped and joined.
func failures(err error) []*admission.Failure {
	if failure, ok := err.(*admission.Failure); ok { //nolint:errorlint // errors.As finds the first of a joined error only
		return []*admission.Failure{failure}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*admission.Failure
		for _, one := range joined.Unwrap() {
			all = append(all, failures(one)...)
		}
		return all
	}
	if inner := errors.Unwrap(err); inner != nil {
		return failures(inner)
	}
	return nil
}

// describe says which enforcers are not proven, and at which API server. What the API server answered is left out but
// for its reason: when it cannot reach a webhook its answer holds the webhook's secret path.
func describe(err error) string {
	if unproven, is := errors.AsType[*Unproven](err); is {
		return unproven.Error() + "."
	}
	var parts []string
	for _, failure := range failures(err) {
		part := fmt.Sprintf("%s: %s", failure.Enforcer, failure.Answer)
		if reason := apierrors.ReasonForError(failure.Err); reason != metav1.StatusReasonUnknown {
			part += fmt.Sprintf(" (%s)", reason)
		} else if !failure.Answered() {
			part += fmt.Sprintf(" (%s)", failure.Err)
		}
		if failure.Address != "" {
			part += " at " + failure.Address
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "The canary could not ask: " + err.Error()
	}
	return "Not refused as it should be: " + strings.Join(parts, ", ")
}
