package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

// ObjectsStamp writes who decided, revoked or reopened a grant and who opened a session, from the authenticated request. Whether
// they may, Objects says.
type ObjectsStamp struct {
	Store *policystore.Store
	Now   func() time.Time
}

// Handle implements admission.Handler.
func (o *ObjectsStamp) Handle(ctx context.Context, req admission.Request) admission.Response {
	return answerObject(ctx, entryObjectsStamp, &req, o.Now, func(context.Context) (admission.Response, error) {
		r := &objectReview{req: &req, caller: identity.Caller{UserInfo: req.UserInfo}, snapshot: o.Store.Current(), now: o.Now()}
		if r.snapshot == nil {
			refused := policy.Refuse(0, policy.ReasonPolicyNotLoaded, "")
			return r.refuse(&refused), nil
		}
		if r.governed() {
			return allowedObject(), nil // the floor and Objects refuse it; their answer is the one to read
		}
		patches, found, err := r.stamps()
		if err != nil {
			return admission.Response{}, err
		}
		if len(found) > 0 {
			return r.invalid(found), nil
		}
		response := allowedObject()
		response.Patches = patches
		return response, nil
	})
}

func (r *objectReview) stamps() ([]jsonpatch.Operation, field.ErrorList, error) {
	switch {
	case r.req.Resource.Resource == resourceGrants && r.req.Operation == admissionv1.Update:
		return r.stampGrant()
	case r.req.Resource.Resource == resourceSessions:
		return r.stampSession()
	default:
		return nil, nil, nil
	}
}

func (r *objectReview) stampGrant() ([]jsonpatch.Operation, field.ErrorList, error) {
	g, old, err := read[v1alpha1.PermissionGrant](r.req)
	if err != nil {
		return nil, nil, err
	}
	var (
		patches []jsonpatch.Operation
		found   field.ErrorList
	)
	// Answers that were there before are Objects' to guard, also when somebody cut the list.
	for i := len(old.Spec.Decisions); i < len(g.Spec.Decisions); i++ {
		stamped, wrong := r.stampDecision(decisionsPath.Index(i), g.Spec.Decisions[i], old)
		found = append(found, wrong...)
		if !equality.Semantic.DeepEqual(stamped, g.Spec.Decisions[i]) {
			patches = append(patches, jsonpatch.NewOperation("replace", fmt.Sprintf("/spec/decisions/%d", i), stamped))
		}
	}
	if len(g.Spec.Decisions) > len(old.Spec.Decisions) {
		patches = append(patches, stampScope(g)...)
	}
	if g.Spec.Reopening != nil && old.Spec.Reopening == nil {
		stamped, wrong := r.stampReopening(*g.Spec.Reopening)
		found = append(found, wrong...)
		if !equality.Semantic.DeepEqual(stamped, *g.Spec.Reopening) {
			patches = append(patches, jsonpatch.NewOperation("replace", "/spec/reopening", stamped))
		}
	}
	if g.Spec.Revocation != nil && old.Spec.Revocation == nil {
		stamped, wrong := r.stampRevocation(*g.Spec.Revocation)
		found = append(found, wrong...)
		if !equality.Semantic.DeepEqual(stamped, *g.Spec.Revocation) {
			patches = append(patches, jsonpatch.NewOperation("replace", "/spec/revocation", stamped))
		}
	}
	return patches, found, nil
}

// stampSession writes the opener on create, and on update keeps what was there: kubectl replace would drop it.
func (r *objectReview) stampSession() ([]jsonpatch.Operation, field.ErrorList, error) {
	session, old, err := read[v1alpha1.AgentSession](r.req)
	if err != nil {
		return nil, nil, err
	}
	opener := r.caller.Username
	switch {
	case old != nil:
		opener = old.Annotations[v1alpha1.AnnotationOpenedBy]
	case session.Annotations[v1alpha1.AnnotationOpenedBy] != "":
		if found := checkOpener(session, opener); len(found) > 0 {
			return nil, found, nil
		}
	}
	var raw map[string]any
	if err := json.Unmarshal(r.req.Object.Raw, &raw); err != nil {
		return nil, nil, fmt.Errorf("object %w", errUnreadable)
	}
	metadata, _ := raw["metadata"].(map[string]any)
	p := patcher{made: map[string]bool{}}
	p.set("/metadata", metadata, v1alpha1.AnnotationOpenedBy, opener)
	return p.operations, nil, nil
}

// checkOpener compares the stamp with the caller.
func checkOpener(session *v1alpha1.AgentSession, caller string) field.ErrorList {
	if session.Annotations[v1alpha1.AnnotationOpenedBy] == caller {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationOpenedBy),
		"is written by the server; leave it out")}
}
