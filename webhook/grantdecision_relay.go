package webhook

import (
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/policy"
)

// Verbs of impersonation: the whole, and that of constrained impersonation (Kubernetes 1.36 and later) for people.
const (
	verbImpersonate       = "impersonate"
	verbImpersonatePerson = "impersonate:user-info"
)

// mayBeCarried lets an answer without a credential of its author pass when a relay carries it. An impersonated identity
// looks like its owner in everything but the credential, and admission never sees who impersonates. So a relay names
// itself in an extra key that RBAC guards, the platform team has listed it, it may speak for this very person, and the agent
// that asks may not name it.
func (r *objectReview) mayBeCarried(ctx context.Context, path *field.Path, g *v1alpha1.PermissionGrant) (field.ErrorList, *policy.Decision, error) {
	relay := r.caller.Relay()
	if relay == "" {
		refused := policy.Refuse(0, policy.ReasonCredentialUnbound, "")
		refused.Recovery = "answer with your own certificate or token, without --as"
		return nil, &refused, nil
	}
	forbidden := func(format string, args ...any) (field.ErrorList, *policy.Decision, error) {
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf(format, args...))}, nil, nil
	}
	namespace, name, ok := identity.Caller{UserInfo: authenticationv1.UserInfo{Username: relay}}.ServiceAccount()
	switch {
	case !ok || !r.snapshot.MayRelay(namespace, name):
		return forbidden("the relay that carries this answer is not known; the platform team lists it in spec.answerRelays of a ClusterAgentPolicy, or answer with your own credential")
	case r.snapshot.Governs(namespace):
		return forbidden("ServiceAccount %s/%s is governed and carries nobody's answers; run the relay in a namespace that is not governed", namespace, name)
	case strings.HasPrefix(r.caller.Username, "system:"):
		return forbidden("a relay carries answers of people only")
	}
	account := enforcement.ServiceAccount{Namespace: namespace, Name: name}
	if speaks, err := r.impersonates(ctx, account.Username(), users, r.caller.Username); err != nil {
		return nil, nil, err
	} else if !speaks {
		return forbidden("ServiceAccount %s/%s may not impersonate this person; the platform team names the people of a relay in its ClusterRole", namespace, name)
	}
	// Who may name the relay could have sent this itself: of the agent that asks, its own approval. What a user that is no
	// ServiceAccount may do hangs on groups too, which only its own requests tell.
	if _, _, ok := (identity.Caller{UserInfo: authenticationv1.UserInfo{Username: g.Spec.Request.Requester.Username}}).ServiceAccount(); !ok {
		return forbidden("the agent that asks is no ServiceAccount, so nobody can tell whether it may impersonate the relay; answer with your own credential")
	}
	if forged, err := r.impersonates(ctx, g.Spec.Request.Requester.Username, relays, relay); err != nil {
		return nil, nil, err
	} else if forged {
		return forbidden("the agent that asks may impersonate the relay, so a carried answer proves nothing; answer with your own credential, and take impersonate from the agent's role")
	}
	return nil, nil, nil
}

// What can be impersonated, as constrained impersonation asks for it; the whole way has users in the core group.
var (
	users  = authorizationv1.ResourceAttributes{Group: authenticationv1.GroupName, Resource: "users"}
	relays = authorizationv1.ResourceAttributes{Group: authenticationv1.GroupName, Resource: "userextras", Subresource: v1alpha1.ExtraRelay}
)

// impersonates asks whether RBAC lets somebody impersonate a name, in either way that the API server knows.
func (r *objectReview) impersonates(ctx context.Context, username string, what authorizationv1.ResourceAttributes, name string) (bool, error) {
	groups := []string{"system:authenticated"}
	if namespace, _, ok := (identity.Caller{UserInfo: authenticationv1.UserInfo{Username: username}}).ServiceAccount(); ok {
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	for _, verb := range []string{verbImpersonatePerson, verbImpersonate} {
		way := what
		way.Verb, way.Name = verb, name
		if verb == verbImpersonate && what == users {
			way.Group = ""
		}
		allowed, err := r.access(ctx, authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &way, User: username, Groups: groups})
		if err != nil || allowed {
			return allowed, err
		}
	}
	return false, nil
}
