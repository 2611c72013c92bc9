package identity

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// maxAncestors bounds how deep children have children.
const maxAncestors = 8

// Find reads a session of one namespace by name; nil when there is none.
type Find func(name string) (*v1alpha1.AgentSession, error)

// Through finds sessions by the reader.
func Through(ctx context.Context, reader client.Reader, namespace string) Find {
	return func(name string) (*v1alpha1.AgentSession, error) {
		session := &v1alpha1.AgentSession{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, session)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read session %s/%s: %w", namespace, name, err)
		}
		return session, nil
	}
}

// among finds sessions in a list.
func among(sessions []v1alpha1.AgentSession) Find {
	return func(name string) (*v1alpha1.AgentSession, error) {
		for i := range sessions {
			if sessions[i].Name == name {
				return &sessions[i], nil
			}
		}
		return nil, nil
	}
}

// Standing is whether a session may act, with what comes down from its ancestors.
type Standing struct {
	// State is never empty.
	State v1alpha1.SessionState
	// By is the session whose own state it is: the session itself, or an ancestor. An ancestor that is gone has ended.
	By string
	// Deadline is the earliest of the session's and its ancestors'.
	Deadline time.Time
	// Ancestors from the parent up, as far as they exist.
	Ancestors []*v1alpha1.AgentSession
}

// StandingOf walks up from the session: the end of any ancestor ends it, and so does the lack of one; the suspension of
// any suspends it (design section 5). Grants never come down: they are bound to the UID of the session that asked.
func StandingOf(session *v1alpha1.AgentSession, find Find, now time.Time) (Standing, error) {
	s := Standing{State: v1alpha1.SessionActive, By: session.Name, Deadline: session.Spec.DeadlineTime.Time}
	at := session
	for {
		switch {
		case Ended(at, now):
			s.State, s.By = v1alpha1.SessionEnded, at.Name
			return s, nil
		case at.Status.State == v1alpha1.SessionSuspended && s.State == v1alpha1.SessionActive:
			s.State, s.By = v1alpha1.SessionSuspended, at.Name
		}
		if deadline := at.Spec.DeadlineTime.Time; deadline.Before(s.Deadline) {
			s.Deadline = deadline
		}
		parent := at.Spec.Parent
		if parent == nil {
			return s, nil
		}
		found, err := find(parent.Name)
		if err != nil {
			return s, err
		}
		if found == nil || found.UID != parent.UID || len(s.Ancestors) == maxAncestors {
			s.State, s.By = v1alpha1.SessionEnded, parent.Name
			return s, nil
		}
		s.Ancestors = append(s.Ancestors, found)
		at = found
	}
}

// Descendants are the children of a session, their children, and so on, ended ones too. sessions are those of its
// namespace.
func Descendants(sessions []v1alpha1.AgentSession, of types.UID) []*v1alpha1.AgentSession {
	var found []*v1alpha1.AgentSession
	known := map[types.UID]bool{of: true}
	for grown := true; grown; {
		grown = false
		for i := range sessions {
			s := &sessions[i]
			if s.Spec.Parent != nil && known[s.Spec.Parent.UID] && !known[s.UID] {
				known[s.UID], grown = true, true
				found = append(found, s)
			}
		}
	}
	return found
}

// Family are the UIDs of the session, its ancestors and all descendants of its topmost ancestor: those whose questions
// count together. sessions are those of its namespace.
func Family(sessions []v1alpha1.AgentSession, session *v1alpha1.AgentSession) map[types.UID]bool {
	top := session
	for step := 0; top.Spec.Parent != nil && step < maxAncestors; step++ {
		parent, _ := among(sessions)(top.Spec.Parent.Name) // a list gives no error
		if parent == nil || parent.UID != top.Spec.Parent.UID {
			break
		}
		top = parent
	}
	family := map[types.UID]bool{top.UID: true, session.UID: true}
	for _, s := range Descendants(sessions, top.UID) {
		family[s.UID] = true
	}
	for i := range sessions {
		// With lifetime Pod the sessions of one workload are one after the other.
		if root := sessions[i].Labels[v1alpha1.LabelRootOwner]; root != "" && root == session.Labels[v1alpha1.LabelRootOwner] {
			family[sessions[i].UID] = true
		}
	}
	return family
}
