package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// maxAuthorizationReview bounds a review in bytes. The API server itself takes no larger headers, of which a review is
// made.
const maxAuthorizationReview = 1 << 20

// Authorize answers the API server's authorization webhook: what a governed identity does that no admission sees. It
// denies or has no opinion; it never allows, so RBAC stays what gives rights. Whatever goes wrong on the way is a denial
// with a reason.
type Authorize struct {
	Store    *policystore.Store
	Sessions *identity.Resolver
	// Scope in force, for callers whom no policy governs any more.
	Scope func(context.Context) (enforcement.Scope, error)
	// Mapper tells which kinds have namespaces. What it does not know is taken for one that has.
	Mapper meta.RESTMapper
	Now    func() time.Time
}

// ServeHTTP implements http.Handler: a SubjectAccessReview of authorization.k8s.io/v1 in and out. What is no such review
// gets status 400.
func (a *Authorize) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review, err := readAuthorization(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	review.Status = a.answer(ctx, &review.Spec)
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Answering an authorization review failed")
	}
}

var errAuthorization = errors.New("not a SubjectAccessReview of authorization.k8s.io/v1")

// readAuthorization never repeats the content in its errors.
func readAuthorization(r *http.Request) (*authorizationv1.SubjectAccessReview, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxAuthorizationReview+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: the body cannot be read", errAuthorization)
	case len(body) > maxAuthorizationReview:
		return nil, fmt.Errorf("%w: over %d bytes", errAuthorization, maxAuthorizationReview)
	}
	review := &authorizationv1.SubjectAccessReview{}
	if err := json.Unmarshal(body, review); err != nil {
		return nil, fmt.Errorf("%w: the body is not its JSON", errAuthorization)
	}
	if review.APIVersion != authorizationv1.SchemeGroupVersion.String() || review.Kind != "SubjectAccessReview" {
		return nil, fmt.Errorf("%w: apiVersion and kind are others", errAuthorization)
	}
	return review, nil
}

// answer decides and words the decision. A failure or a panic on the way is a denial.
func (a *Authorize) answer(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (status authorizationv1.SubjectAccessReviewStatus) {
	started := a.Now()
	id := newDecisionID(started)
	op := policy.Operation{}
	deny := func(d *policy.Decision) authorizationv1.SubjectAccessReviewStatus {
		return authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: message(d, &op, id)}
	}
	defer func() {
		if r := recover(); r != nil {
			// The value of a panic can hold request data: it is named by its type only.
			ctrl.LoggerFrom(ctx).Error(fmt.Errorf("panic of type %T", r), "Deciding failed", "decision", id)
			refused := policy.Refuse(0, policy.ReasonUndecided, "")
			status = deny(&refused)
		}
	}()
	decision, err := a.decide(ctx, spec, &op)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Deciding failed", "decision", id)
		decision = policy.Refuse(decision.Class, policy.ReasonUndecided, "")
	}
	if decision.Verdict == "" {
		return authorizationv1.SubjectAccessReviewStatus{} // not ours
	}
	observe(entryAuthorize, &decision, a.Now().Sub(started))
	if decision.Verdict == policy.VerdictAllow {
		return authorizationv1.SubjectAccessReviewStatus{}
	}
	return deny(&decision)
}

// decide asks the engine. A decision without a verdict is no opinion: the identity is not governed, or admission sees
// what it asks for.
func (a *Authorize) decide(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec, op *policy.Operation) (policy.Decision, error) {
	caller, snapshot := identity.Caller{UserInfo: userOf(spec)}, a.Store.Current()
	*op = unreadAuthorization(spec)
	switch governed, err := a.governed(ctx, caller, snapshot); {
	case err != nil:
		return policy.Decision{}, fmt.Errorf("find whether the caller is governed: %w", err)
	case !governed:
		return policy.Decision{}, nil
	}
	asked, err := authorizationOf(spec)
	if err != nil {
		return policy.Refuse(0, policy.ReasonMalformed, err.Error()), nil
	}
	understood, ours := asked.Operation(nil)
	if !ours {
		return policy.Decision{}, nil
	}
	asked.Cluster = asked.EveryNamespace() && a.cluster(&asked)
	*op = understood
	if snapshot == nil {
		return policy.Refuse(0, policy.ReasonPolicyNotLoaded, ""), nil
	}
	resolved, err := a.Sessions.Resolve(ctx, caller, snapshot, a.Now())
	if err != nil {
		return policy.Decision{}, fmt.Errorf("resolve session: %w", err)
	}
	namespaces := resolved.View.Authority.Namespaces
	if resolved.Session == nil {
		namespaces = []string{resolved.View.Namespace} // without a session the class is that of the caller's own namespace
	}
	*op, _ = asked.Operation(namespaces)
	decision := snapshot.Engine.Decide(*op, resolved.View, a.Now())
	if decision.Verdict == policy.VerdictPending {
		// Grants are bound to the exact form of a write, and are used up by its admission.
		decision.Verdict, decision.Reason, decision.Boundary = policy.VerdictDeny, policy.ReasonUngrantable, policy.ReasonUngrantable.Boundary()
	}
	return decision, nil
}

// governed tells whether the caller is governed now. The match conditions of the API server are as old as the file that
// they stand in: who is in no scope any more is not to notice. Before the first snapshot the scope in force says so.
func (a *Authorize) governed(ctx context.Context, caller identity.Caller, snapshot *policystore.Snapshot) (bool, error) {
	if snapshot != nil && snapshot.Scope.Governs(caller.Username, caller.HasCredential()) {
		return true, nil
	}
	scope, err := a.Scope(ctx)
	if err != nil {
		return false, err
	}
	if snapshot != nil {
		// What is let go is in the policies before it is out of the scope in force.
		scope.Exempt = append(scope.Exempt, snapshot.Scope.Exempt...)
		scope.Namespaces = slices.DeleteFunc(scope.Namespaces, func(ns string) bool { return slices.Contains(snapshot.Released, ns) })
	}
	return scope.Governs(caller.Username, caller.HasCredential()), nil
}

// cluster tells whether the kind is known to have no namespaces.
func (a *Authorize) cluster(asked *kube.Authorization) bool {
	resource := schema.GroupVersionResource{Group: asked.Group, Version: asked.Version, Resource: asked.Resource}
	if resource.Version == "*" {
		resource.Version = "" // of a review that no request made: any version
	}
	kind, err := a.Mapper.KindFor(resource)
	if err != nil {
		return false
	}
	mapping, err := a.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil && mapping.Resource.Group == asked.Group && mapping.Scope.Name() == meta.RESTScopeNameRoot
}

var errAttributes = errors.New("spec: must have either resourceAttributes or nonResourceAttributes")

func authorizationOf(spec *authorizationv1.SubjectAccessReviewSpec) (kube.Authorization, error) {
	resource, other := spec.ResourceAttributes, spec.NonResourceAttributes
	switch {
	case (resource == nil) == (other == nil):
		return kube.Authorization{}, errAttributes
	case other != nil && other.Path == "":
		return kube.Authorization{}, errors.New("spec.nonResourceAttributes.path: must be set")
	case other != nil:
		return kube.Authorization{Verb: other.Verb, Path: other.Path}, nil
	case resource.Resource == "":
		return kube.Authorization{}, errors.New("spec.resourceAttributes.resource: must be set")
	default:
		return kube.Authorization{
			Verb: resource.Verb, Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
			Subresource: resource.Subresource, Namespace: resource.Namespace, Name: resource.Name,
		}, nil
	}
}

// unreadAuthorization is the operation of a review that could not be translated: enough for a message.
func unreadAuthorization(spec *authorizationv1.SubjectAccessReviewSpec) policy.Operation {
	op := policy.Operation{Verb: policy.VerbRead, Target: policy.Target{Resource: kube.NonResourceURLs}}
	if r := spec.ResourceAttributes; r != nil {
		op.Target = policy.Target{Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name}
	}
	return op
}

func userOf(spec *authorizationv1.SubjectAccessReviewSpec) authenticationv1.UserInfo {
	user := authenticationv1.UserInfo{Username: spec.User, UID: spec.UID, Groups: spec.Groups}
	if len(spec.Extra) > 0 {
		user.Extra = make(map[string]authenticationv1.ExtraValue, len(spec.Extra))
		for key, values := range spec.Extra {
			user.Extra[key] = authenticationv1.ExtraValue(values)
		}
	}
	return user
}
