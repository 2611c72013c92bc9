package webhook

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/identity"
)

// kinOfRequester says how the caller belongs to the session that asks: it is the machine that opened it or a session
// above, or it works in a session of the same family (requirement G-3). Empty for anybody else. A person who opens a
// session may answer its questions. A session that is gone has no questions that an answer could open.
func (r *objectReview) kinOfRequester(ctx context.Context, g *v1alpha1.PermissionGrant) (string, error) {
	asks := &g.Spec.Request.Session
	var list v1alpha1.AgentSessionList
	if err := r.live.List(ctx, &list, client.InNamespace(asks.Namespace)); err != nil {
		return "", fmt.Errorf("list sessions of namespace %s: %w", asks.Namespace, err)
	}
	for i := range list.Items {
		if session := &list.Items[i]; session.UID == asks.UID {
			return r.kinOf(session, list.Items), nil
		}
	}
	return "", nil
}

func (r *objectReview) kinOf(session *v1alpha1.AgentSession, sessions []v1alpha1.AgentSession) string {
	_, _, machine := r.caller.ServiceAccount()
	family := identity.Family(sessions, session)
	for i := range sessions {
		s := &sessions[i]
		switch opener := s.Annotations[v1alpha1.AnnotationOpenedBy]; {
		case !family[s.UID]:
		case machine && (opener == r.caller.Username || s.Status.CreatedBy == r.caller.Username):
			return fmt.Sprintf("you opened session %s and do not answer what it asks", s.Name)
		case usernameOf(s) == r.caller.Username:
			return fmt.Sprintf("you work in session %s, which belongs to the one that asks", s.Name)
		}
	}
	return ""
}

// usernameOf is the authenticated name of whoever acts in the session.
func usernameOf(session *v1alpha1.AgentSession) string {
	id := &session.Spec.Identity
	if id.Type == v1alpha1.IdentityUser {
		return id.UserName
	}
	return enforcement.ServiceAccount{Namespace: session.Namespace, Name: id.ServiceAccountName}.Username()
}
