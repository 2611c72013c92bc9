package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

// Resources of our own API group.
const (
	resourceGrants          = "permissiongrants"
	resourceSessions        = "agentsessions"
	resourceClusterPolicies = "clusteragentpolicies"
	resourcePolicies        = "agentpolicies"
)

// Objects answers every create and every update of a spec of our own kinds, whoever sends it, but for the manager. The
// schemas have the first word; this looks at what they cannot see: the caller, other objects and expressions.
type Objects struct {
	Store *policystore.Store
	// Reader reads cluster policies; a cache will do.
	Reader client.Reader
	// Live reads namespaces that a cache may not have yet.
	Live client.Reader
	// Access asks the API server what a caller may do.
	Access Access
	Now    func() time.Time
}

// Access tells whether the API server's authorizer allows what the spec asks. An error means that it is not known.
type Access func(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (allowed bool, err error)

// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// SubjectAccess asks by SubjectAccessReview.
func SubjectAccess(c client.Client) Access {
	return func(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		if err := c.Create(ctx, review); err != nil {
			return false, fmt.Errorf("review access of a caller: %w", err)
		}
		return review.Status.Allowed && !review.Status.Denied, nil
	}
}

// objectReview is one request and what it is judged by.
type objectReview struct {
	req      *admission.Request
	caller   identity.Caller
	snapshot *policystore.Snapshot
	reader   client.Reader
	live     client.Reader
	access   Access
	now      time.Time
}

// errUnreadable marks an object that is not what its kind says.
var errUnreadable = errors.New("cannot be read as its kind")

// Handle implements admission.Handler.
func (o *Objects) Handle(ctx context.Context, req admission.Request) admission.Response {
	return answerObject(ctx, entryObjects, &req, o.Now, func(ctx context.Context) (admission.Response, error) {
		r := &objectReview{
			req: &req, caller: identity.Caller{UserInfo: req.UserInfo}, snapshot: o.Store.Current(),
			reader: o.Reader, live: o.Live, access: o.Access, now: o.Now(),
		}
		if refused := r.refusedCaller(); refused != nil {
			return r.refuse(refused), nil
		}
		return r.validate(ctx)
	})
}

// answerObject bounds an answer in time and turns whatever goes wrong on the way into a refusal with a reason.
func answerObject(ctx context.Context, entry string, req *admission.Request, now func() time.Time, answer func(context.Context) (admission.Response, error)) (response admission.Response) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	started := now()
	id := newDecisionID(started)
	op := unread(req)
	defer func() {
		if r := recover(); r != nil {
			// The value of a panic can hold request data: it is named by its type only.
			ctrl.LoggerFrom(ctx).Error(fmt.Errorf("panic of type %T", r), "Validating an object failed", "decision", id)
			refused := policy.Refuse(0, policy.ReasonUndecided, "")
			response = respond(&refused, &op, id)
		}
		verdict := policy.Decision{Verdict: policy.VerdictDeny}
		if response.Allowed {
			verdict.Verdict = policy.VerdictAllow
		}
		observe(entry, &verdict, now().Sub(started))
	}()
	response, err := answer(ctx)
	if err == nil {
		return response
	}
	refused := policy.Refuse(0, policy.ReasonUndecided, "")
	if errors.Is(err, errUnreadable) {
		refused = policy.Refuse(0, policy.ReasonMalformed, err.Error())
	} else {
		ctrl.LoggerFrom(ctx).Error(err, "Validating an object failed", "decision", id)
	}
	return respond(&refused, &op, id)
}

// refusedCaller refuses before anything is looked at: until policies are loaded nobody knows who is governed, and a
// governed identity writes no object of ours, whatever RBAC says. For identities that the snapshot governs this is a
// second line behind the floor. One whose namespace lost its label is known to the floor alone, which keeps it in scope.
func (r *objectReview) refusedCaller() *policy.Decision {
	var refused policy.Decision
	switch {
	case r.snapshot == nil:
		refused = policy.Refuse(0, policy.ReasonPolicyNotLoaded, "")
	case r.governed():
		refused = policy.Refuse(policy.ClassForbidden, policy.ReasonForbidden, "")
		refused.Details = []policy.Detail{{Code: policy.EscalatesAuthority.String(), Rule: "baseline/own-objects", Class: policy.ClassForbidden}}
		refused.Recovery = "ask a person; an open question is answered with kubectl by its approver"
	default:
		return nil
	}
	return &refused
}

// governed tells whether the caller is a governed identity, under a profile that only audits too. An exemption counts
// for the account's own credential alone.
func (r *objectReview) governed() bool {
	if _, listed := r.snapshot.GovernedUser(r.caller.Username); listed {
		return true
	}
	namespace, name, ok := r.caller.ServiceAccount()
	switch {
	case !ok:
		return false
	case namespace == enforcement.CanaryNamespace:
		return true
	case !r.snapshot.Governs(namespace):
		return false
	default:
		exempt := slices.Contains(r.snapshot.Scope.Exempt, enforcement.ServiceAccount{Namespace: namespace, Name: name})
		return !exempt || !r.caller.HasCredential()
	}
}

func (r *objectReview) validate(ctx context.Context) (admission.Response, error) {
	var (
		found   field.ErrorList
		refused *policy.Decision
		err     error
	)
	switch r.req.Resource.Resource {
	case resourceGrants:
		found, refused, err = r.grant(ctx)
		found = append(found, r.changedLabels(r.scopeLabelled())...)
	case resourceSessions:
		found, err = r.session(ctx)
		found = append(found, r.changedLabels(nil)...)
	case resourceClusterPolicies:
		found, err = r.clusterPolicy(ctx)
	case resourcePolicies:
		found, err = r.agentPolicy(ctx)
	default:
		// A kind that this binary does not know is not checked, so it is not let in.
		err = fmt.Errorf("resource %s: %w", r.req.Resource.Resource, errUnreadable)
	}
	switch {
	case err != nil:
		return admission.Response{}, err
	case refused != nil:
		return r.refuse(refused), nil
	case len(found) > 0:
		return r.invalid(found), nil
	default:
		return allowedObject(), nil
	}
}

// changedLabels refuses another value of a label by which the manager finds sessions and grants: the server writes them
// when it makes the object, and a session that a person opens has none. stamped are those that this request gives rise to.
func (r *objectReview) changedLabels(stamped map[string]string) field.ErrorList {
	object, old, err := read[metav1.PartialObjectMetadata](r.req)
	if err != nil {
		return nil // what cannot be read as its kind is refused for that
	}
	if old == nil {
		old = &metav1.PartialObjectMetadata{}
	}
	before := maps.Clone(old.Labels)
	for key, value := range stamped {
		if before == nil {
			before = map[string]string{}
		}
		before[key] = value
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(object.Labels)), maps.Keys(before))
	slices.Sort(keys)
	var found field.ErrorList
	for _, key := range slices.Compact(keys) {
		now, has := object.Labels[key]
		was, had := before[key]
		if strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/") && (has != had || now != was) {
			found = append(found, field.Forbidden(field.NewPath("metadata", "labels").Key(key), "is written by the server; leave it as it is"))
		}
	}
	return found
}

func allowedObject() admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
}

func (r *objectReview) refuse(d *policy.Decision) admission.Response {
	op := unread(r.req)
	return respond(d, &op, newDecisionID(r.now))
}

// invalid answers with the paths of the bad fields, as the API server does for its own kinds: 403 Forbidden when all of
// them are forbidden to this caller or in this state, else 422 Invalid.
func (r *objectReview) invalid(found field.ErrorList) admission.Response {
	kind := schema.GroupKind{Group: r.req.Kind.Group, Kind: r.req.Kind.Kind}
	status := apierrors.NewInvalid(kind, r.req.Name, found).Status()
	if !slices.ContainsFunc(found, func(e *field.Error) bool { return e.Type != field.ErrorTypeForbidden }) {
		status.Code, status.Reason, status.Message = http.StatusForbidden, metav1.StatusReasonForbidden, found.ToAggregate().Error()
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// mayDo asks whether the caller has a verb on an object of ours.
func (r *objectReview) mayDo(ctx context.Context, verb, resource string) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(r.caller.Extra))
	for key, values := range r.caller.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return r.access(ctx, authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: resource,
			Namespace: r.req.Namespace, Name: r.req.Name,
		},
		User: r.caller.Username, UID: r.caller.UID, Groups: r.caller.Groups, Extra: extra,
	})
}

// read decodes the new object, and on update the old one.
func read[T any](req *admission.Request) (object, old *T, err error) {
	parse := func(part string, raw runtime.RawExtension) (*T, error) {
		parsed := new(T)
		if err := json.Unmarshal(raw.Raw, parsed); err != nil {
			// The error of the decoder can quote the object.
			return nil, fmt.Errorf("%s %w", part, errUnreadable)
		}
		return parsed, nil
	}
	if object, err = parse("object", req.Object); err != nil {
		return nil, nil, err
	}
	if req.Operation == admissionv1.Update {
		if old, err = parse("oldObject", req.OldObject); err != nil {
			return nil, nil, err
		}
	}
	return object, old, nil
}

// omitted stands for a value that an error must not echo.
var omitted = field.OmitValueType{}
