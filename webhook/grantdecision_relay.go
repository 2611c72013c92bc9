package webhook

import (
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
// itself in an extra key that RBAC guards, the platform team has listed it, and it may speak for this very person.
func (r *objectReview) mayBeCarried(ctx context.Context, path *field.Path) (field.ErrorList, *policy.Decision, error) {
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
	speaks, err := r.maySpeakFor(ctx, enforcement.ServiceAccount{Namespace: namespace, Name: name})
	if err != nil {
		return nil, nil, err
	}
	if !speaks {
		return forbidden("ServiceAccount %s/%s may not impersonate this person; the platform team names the people of a relay in its ClusterRole", namespace, name)
	}
	return nil, nil, nil
}

// maySpeakFor asks whether RBAC lets the relay impersonate the caller, in either way that the API server knows.
func (r *objectReview) maySpeakFor(ctx context.Context, relay enforcement.ServiceAccount) (bool, error) {
	for _, way := range []authorizationv1.ResourceAttributes{
		{Verb: verbImpersonatePerson, Group: authenticationv1.GroupName, Resource: "users"},
		{Verb: verbImpersonate, Resource: "users"},
	} {
		way.Name = r.caller.Username
		allowed, err := r.access(ctx, authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: &way, User: relay.Username(),
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + relay.Namespace, "system:authenticated"},
		})
		if err != nil || allowed {
			return allowed, err
		}
	}
	return false, nil
}
