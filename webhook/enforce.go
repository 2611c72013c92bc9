package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"stepbeyond.dev/stepbeyond/internal/grant"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/origin"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/stamp"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// answerWithin is the webhook's own deadline, before the API server's of 3 s: a refusal with a reason is better than
// "failed calling webhook".
const answerWithin = 2 * time.Second

// Enforce answers every write of a governed identity. Whatever goes wrong on the way is a refusal with a reason.
type Enforce struct {
	Store    *policystore.Store
	Sessions *identity.Resolver
	Origins  *origin.Finder
	// Grants answers what depends on a grant. Omitted: nobody is asked, and the engine's answer stays.
	Grants  *grant.Protocol
	Stamper stamp.Stamper
	Now     func() time.Time
}

// Handle implements admission.Handler.
func (e *Enforce) Handle(ctx context.Context, req admission.Request) admission.Response {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	started := e.Now()
	id := newDecisionID(started)
	decision, response := e.answer(ctx, &req, id)
	observe(entryEnforce, &decision, e.Now().Sub(started))
	return response
}

// answer decides and words the decision. A failure or a panic on the way is a refusal; what is known of the class stays.
func (e *Enforce) answer(ctx context.Context, req *admission.Request, id string) (decision policy.Decision, response admission.Response) {
	op := unread(req)
	defer func() {
		if r := recover(); r != nil {
			// The value of a panic can hold request data: it is named by its type only.
			reviewLogger(ctrl.LoggerFrom(ctx), req).Error(fmt.Errorf("panic of type %T", r), "Deciding failed", "decision", id)
			decision, op = policy.Refuse(decision.Class, policy.ReasonUndecided, ""), unread(req)
			response = respond(&decision, &op, id)
		}
	}()
	decision, err := e.decide(ctx, req, &op, id)
	if err != nil {
		reviewLogger(ctrl.LoggerFrom(ctx), req).Error(err, "Deciding failed", "decision", id)
		decision = policy.Refuse(decision.Class, policy.ReasonUndecided, "")
	}
	return decision, respond(&decision, &op, id)
}

// decide asks the engine, and the grant protocol where the engine's answer depends on a grant. It writes the operation
// as far as it understood it.
func (e *Enforce) decide(ctx context.Context, req *admission.Request, op *policy.Operation, id string) (policy.Decision, error) {
	snapshot := e.Store.Current()
	if snapshot == nil {
		return policy.Refuse(0, policy.ReasonPolicyNotLoaded, ""), nil
	}
	request, err := decode(req)
	if err != nil {
		return policy.Refuse(0, policy.ReasonMalformed, err.Error()), nil
	}
	resolved, err := e.Sessions.Resolve(ctx, identity.Caller{UserInfo: req.UserInfo}, snapshot, e.Now())
	if err != nil {
		return policy.Decision{}, fmt.Errorf("resolve session: %w", err)
	}
	if err := e.understand(ctx, &request, &resolved, op); err != nil {
		var malformed *kube.MalformedError
		if errors.As(err, &malformed) {
			return policy.Refuse(0, policy.ReasonMalformed, malformed.Error()), nil
		}
		return policy.Decision{}, err
	}
	decision := snapshot.Engine.Decide(*op, resolved.View, e.Now())
	if decision.Class == policy.ClassForbidden || resolved.Session == nil {
		return decision, nil
	}
	if !e.stamped(&request, resolved.Key()) {
		return policy.Refuse(decision.Class, policy.ReasonUnstamped, ""), nil
	}
	if !decision.AskNew || op.DryRun || e.Grants == nil {
		return decision, nil
	}
	answer, err := e.Grants.Answer(ctx, grant.Ask{
		Snapshot: snapshot, Operation: *op, Request: request, Resolved: resolved, ReviewUID: req.UID, DecisionID: id,
	})
	if err != nil {
		return decision, fmt.Errorf("answer with grants: %w", err)
	}
	return answer, nil
}

// understand translates the request, with what the API server's own data say about its target.
func (e *Enforce) understand(ctx context.Context, request *kube.Request, resolved *identity.Resolved, op *policy.Operation) error {
	found, err := e.Origins.Of(ctx, request, resolved.Key())
	if err != nil {
		return fmt.Errorf("find origin: %w", err)
	}
	request.Parent = found.Parent
	namespaces := resolved.View.Authority.Namespaces
	if resolved.Session == nil {
		namespaces = []string{resolved.View.Namespace} // without a session the class is that of the caller's own namespace
	}
	followed, err := e.followed(ctx, request, resolved)
	if err != nil {
		return fmt.Errorf("find whose workload it is: %w", err)
	}
	understood, err := kube.Operation(*request, kube.Known{
		Followed: followed,
		Origin:   found.Origin, LastWriter: found.LastWriter, Recreated: found.Recreated,
		ScaleTarget: found.ScaleTarget, OwnClaims: found.OwnClaims,
		Serves: found.Serves, Adopted: found.Adopted, Adopts: found.Adopts,
		SessionNamespaces: namespaces,
	})
	if err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	if understood.Target.UID == "" {
		understood.Target.UID = found.UID
	}
	*op = understood
	return nil
}

// followed tells whether the request changes what another agent's session follows.
func (e *Enforce) followed(ctx context.Context, request *kube.Request, resolved *identity.Resolved) (bool, error) {
	_, holdsPods := stamp.TemplateOf(request.OldObject, schema.GroupResource{Group: request.Group, Resource: request.Resource})
	if request.Operation != "UPDATE" || !holdsPods || resolved.Session == nil {
		return false, nil
	}
	return e.Sessions.Followed(ctx, resolved.Session, &unstructured.Unstructured{Object: request.OldObject}, e.Now())
}

// stamped tells whether the object carries exactly the stamps that the server would write. The mutating entry writes
// them, but is ignored when it fails; without this the failure would leave an object that nobody made.
func (e *Enforce) stamped(request *kube.Request, session string) bool {
	if request.Object == nil || request.Subresource != "" || request.Operation == "CONNECT" {
		return true
	}
	want := stampsOf(e.Stamper, request, session)
	return want.present(request.Object)
}
