package webhook

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/grant"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

// verbApprove allows to approve, deny, revoke and reopen.
const verbApprove = "approve"

var (
	decisionsPath  = field.NewPath("spec", "decisions")
	revocationPath = field.NewPath("spec", "revocation")
)

// grant judges writes of a PermissionGrant: people add one answer, take the answer back or reopen a denial, and change
// nothing else.
func (r *objectReview) grant(ctx context.Context) (field.ErrorList, *policy.Decision, error) {
	g, old, err := read[v1alpha1.PermissionGrant](r.req)
	if err != nil {
		return nil, nil, err
	}
	if r.req.Operation != admissionv1.Update {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "request"),
			"only Step Beyond asks questions; the refused request of an agent opens one")}, nil, nil
	}
	if found := checkGrantChange(g, old); len(found) > 0 {
		return found, nil, nil
	}
	decides := len(g.Spec.Decisions) > len(old.Spec.Decisions)
	revokes := g.Spec.Revocation != nil && old.Spec.Revocation == nil
	reopens := g.Spec.Reopening != nil && old.Spec.Reopening == nil
	path := revocationPath
	switch {
	case !decides && !revokes && !reopens:
		return nil, nil, nil
	case decides && revokes:
		return field.ErrorList{field.Forbidden(revocationPath, "answer or revoke, not both in one request")}, nil, nil
	case reopens && (decides || revokes):
		return field.ErrorList{field.Forbidden(reopeningPath, "reopen and nothing else in one request")}, nil, nil
	case decides:
		path = decisionsPath.Index(len(old.Spec.Decisions))
	case reopens:
		path = reopeningPath
	}
	if found, refused, err := r.mayAnswer(ctx, path, old); err != nil || refused != nil || len(found) > 0 {
		return found, refused, err
	}
	switch {
	case revokes:
		return r.checkRevocation(g, old), nil, nil
	case reopens:
		return r.checkReopening(g, old), nil, nil
	}
	return r.checkDecision(path, &g.Spec.Decisions[len(old.Spec.Decisions)], old), nil, nil
}

// checkGrantChange lets nothing change but one more answer, the revocation and the reopening. The schema says the same of what it can
// see; this does not depend on it.
func checkGrantChange(g, old *v1alpha1.PermissionGrant) field.ErrorList {
	var found field.ErrorList
	if !equality.Semantic.DeepEqual(g.Spec.Request, old.Spec.Request) {
		found = append(found, field.Forbidden(field.NewPath("spec", "request"), "is immutable; another operation is another question"))
	}
	if g.Spec.RequesterComment != old.Spec.RequesterComment {
		found = append(found, field.Forbidden(field.NewPath("spec", "requesterComment"), "only the session that asked sets it"))
	}
	before := len(old.Spec.Decisions)
	switch {
	case len(g.Spec.Decisions) < before || !equality.Semantic.DeepEqual(g.Spec.Decisions[:before], old.Spec.Decisions):
		found = append(found, field.Forbidden(decisionsPath, `earlier answers can neither change nor go; append yours with path "/spec/decisions/-"`))
	case len(g.Spec.Decisions) > before+1:
		found = append(found, field.Forbidden(decisionsPath, "one request adds one answer; everybody answers for themselves"))
	}
	if old.Spec.Reopening != nil && !equality.Semantic.DeepEqual(g.Spec.Reopening, old.Spec.Reopening) {
		found = append(found, field.Forbidden(reopeningPath, "is set once"))
	}
	if old.Spec.Revocation != nil && !equality.Semantic.DeepEqual(g.Spec.Revocation, old.Spec.Revocation) {
		found = append(found, field.Forbidden(revocationPath, "is set once; a revoked grant stays revoked"))
	}
	return found
}

// mayAnswer tells whether the caller is somebody who may approve, deny and revoke (requirements G-3, G-4). Governed
// identities never come here.
func (r *objectReview) mayAnswer(ctx context.Context, path *field.Path, g *v1alpha1.PermissionGrant) (field.ErrorList, *policy.Decision, error) {
	if !r.caller.HasCredential() {
		if found, refused, err := r.mayBeCarried(ctx, path, g); err != nil || refused != nil || len(found) > 0 {
			return found, refused, err
		}
	}
	namespace, name, isServiceAccount := r.caller.ServiceAccount()
	switch {
	case r.caller.Username == g.Spec.Request.Requester.Username:
		return field.ErrorList{field.Forbidden(path, "the requester does not answer its own question; ask a person with the verb approve")}, nil, nil
	case isServiceAccount && !r.snapshot.MayApprove(namespace, name):
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
			"ServiceAccount %s/%s may not answer; a person answers, or the platform team lists it in spec.serviceAccountApprovers of a ClusterAgentPolicy", namespace, name))}, nil, nil
	}
	kin, err := r.kinOfRequester(ctx, g)
	if err != nil {
		return nil, nil, err
	}
	if kin != "" {
		return field.ErrorList{field.Forbidden(path, kin+"; ask a person with the verb approve")}, nil, nil
	}
	allowed, err := r.mayDo(ctx, verbApprove, resourceGrants)
	if err != nil {
		return nil, nil, err
	}
	if !allowed {
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
			"needs the verb approve on permissiongrants in namespace %s; ask who administers it, or leave it to another approver", r.req.Namespace))}, nil, nil
	}
	return nil, nil, nil
}

func (r *objectReview) checkDecision(path *field.Path, d *v1alpha1.GrantDecision, old *v1alpha1.PermissionGrant) field.ErrorList {
	request := &old.Spec.Request
	status := grant.Compute(old, r.now)
	same := func(earlier v1alpha1.GrantDecision) bool {
		return earlier.Approver == r.caller.Username || r.caller.UID != "" && earlier.ApproverUID == r.caller.UID
	}
	switch {
	case status.State == v1alpha1.GrantApproved:
		return field.ErrorList{field.Forbidden(path, "the grant is approved and cannot be decided again; to take the approval back set spec.revocation")}
	case status.State != v1alpha1.GrantPending:
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("the grant is closed: %s (%s); the agent opens a new question when it tries again", status.State, status.Reason))}
	case slices.ContainsFunc(old.Spec.Decisions, same):
		return field.ErrorList{field.Forbidden(path, "you have answered already and count once; to take your answer back set spec.revocation")}
	case d.Verdict == v1alpha1.VerdictApprove && r.caller.Username == request.Requester.OnBehalfOf && r.refusesSessionUser(request):
		return field.ErrorList{field.Forbidden(path, "the agent works for you, and the policy here wants another person to approve; ask another approver")}
	case d.ShownDigest != request.Digest:
		return field.ErrorList{field.Invalid(path.Child("shownDigest"), omitted,
			fmt.Sprintf("is not the digest of this question, which is %s; read the grant again and answer what it shows", request.Digest))}
	}
	if found := r.checkScope(path.Child("scope"), d, request); len(found) > 0 {
		return found
	}
	stamped, found := r.stampDecision(path, *d, old)
	if len(found) == 0 && !equality.Semantic.DeepEqual(stamped, *d) {
		found = append(found, field.Forbidden(path, "is not stamped with who answers; send it again"))
	}
	return found
}

func (r *objectReview) checkRevocation(g, old *v1alpha1.PermissionGrant) field.ErrorList {
	status := grant.Compute(old, r.now)
	if status.State != v1alpha1.GrantPending && status.State != v1alpha1.GrantApproved {
		return field.ErrorList{field.Forbidden(revocationPath, fmt.Sprintf("the grant is closed: %s (%s); there is nothing to take back", status.State, status.Reason))}
	}
	stamped, found := r.stampRevocation(*g.Spec.Revocation)
	if len(found) == 0 && !equality.Semantic.DeepEqual(stamped, *g.Spec.Revocation) {
		found = append(found, field.Forbidden(revocationPath, "is not stamped with who revokes; send it again"))
	}
	return found
}

// refusesSessionUser joins the profiles of the session's and the target's namespace. A namespace whose profile is not
// known refuses.
func (r *objectReview) refusesSessionUser(request *v1alpha1.PermissionRequest) bool {
	session, governed := r.snapshot.Namespace(request.Session.Namespace)
	if !governed || refusesSessionUser(&session) {
		return true
	}
	target, governed := r.snapshot.Namespace(request.Operation.Target.Namespace)
	return governed && refusesSessionUser(&target)
}

func refusesSessionUser(n *policystore.Namespace) bool {
	return n.Policy == nil || n.Policy.Spec.Approvals != nil && n.Policy.Spec.Approvals.SessionUser == v1alpha1.SessionUserRefuse
}
