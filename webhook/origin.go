package webhook

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/stamp"
	"stepbeyond.dev/stepbeyond/policy"
)

// Origin writes the stamps. It never refuses: what it cannot stamp, the enforcing entry refuses.
type Origin struct {
	Store    *policystore.Store
	Sessions *identity.Resolver
	Stamper  stamp.Stamper
	Now      func() time.Time
}

// Handle implements admission.Handler.
func (o *Origin) Handle(ctx context.Context, req admission.Request) (response admission.Response) {
	allowed := allowedObject()
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	started := o.Now()
	defer func() {
		if r := recover(); r != nil {
			// The value of a panic can hold request data: it is named by its type only.
			reviewLogger(ctrl.LoggerFrom(ctx), &req).Error(fmt.Errorf("panic of type %T", r), "Stamping failed")
			response = allowed // unstamped: the enforcing entry refuses it
		}
		observe(entryOrigin, &policy.Decision{Verdict: policy.VerdictAllow}, o.Now().Sub(started))
	}()
	snapshot := o.Store.Current()
	request, err := decode(&req)
	if snapshot == nil || err != nil || request.Object == nil || request.Subresource != "" {
		return allowed
	}
	resolved, err := o.Sessions.Resolve(ctx, identity.Caller{UserInfo: req.UserInfo}, snapshot, o.Now())
	if err != nil {
		reviewLogger(ctrl.LoggerFrom(ctx), &req).Error(err, "Resolving the session for a stamp failed")
		return allowed
	}
	if resolved.Session == nil {
		return allowed
	}
	want := stampsOf(o.Stamper, &request, resolved.Key())
	allowed.Patches = want.patches(request.Object)
	return allowed
}
