package webhook

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/onboarding"
	"stepbeyond.dev/stepbeyond/policy"
)

// countWithin is the deadline for deciding what is only counted, before the API server's of 1 s.
const countWithin = 800 * time.Millisecond

// Onboarding decides what Enforce would have answered, counts it, and lets everything pass without a word to the caller,
// whatever goes wrong.
type Onboarding struct {
	// Decider has no Grants: nobody is asked.
	Decider *Enforce
	Counter *onboarding.Counter
}

// Handle implements admission.Handler.
func (o *Onboarding) Handle(ctx context.Context, req admission.Request) (response admission.Response) {
	response = allowedObject()
	ctx, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	started := o.Decider.Now()
	id := newDecisionID(started)
	defer recovered(ctx, id, func() {})
	decision, op := o.decide(ctx, &req, id)
	observe(entryOnboarding, &decision, o.Decider.Now().Sub(started))
	namespace, name, _ := identity.Caller{UserInfo: req.UserInfo}.ServiceAccount()
	review := onboarding.ReviewOf(onboarding.Account{Namespace: namespace, Name: name}, &op, &decision)
	response.AuditAnnotations = annotations(&decision, id)
	// A verdict is what happened; what happened is that it passed.
	delete(response.AuditAnnotations, "verdict")
	response.AuditAnnotations["outcome"] = string(review.Outcome)
	o.Counter.Add(review, decision.Reason)
	return response
}

// decide is the decision and the operation as far as it was understood. A failure or a panic leaves it undecided.
func (o *Onboarding) decide(ctx context.Context, req *admission.Request, id string) (decision policy.Decision, op policy.Operation) {
	op = unread(req)
	undecided := func() { decision, op = policy.Refuse(0, policy.ReasonUndecided, ""), unread(req) }
	defer recovered(ctx, id, undecided)
	decision, err := o.Decider.decide(ctx, req, &op, id)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Deciding for the onboarding report failed", "decision", id)
		undecided()
	}
	return decision, op
}

// recovered ends a panic. Its value can hold request data: it is named by its type only.
func recovered(ctx context.Context, id string, then func()) {
	if r := recover(); r != nil {
		ctrl.LoggerFrom(ctx).Error(fmt.Errorf("panic of type %T", r), "Deciding for the onboarding report failed", "decision", id)
		then()
	}
}
