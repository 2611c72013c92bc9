package policytest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

// session is a Session as the engine sees it.
type session struct {
	view           policy.SessionView
	serviceAccount string
	created        []objectKey
}

// objectKey names one object.
type objectKey struct{ group, resource, namespace, name string }

// states of sessions and the reason that goes with them.
var states = map[SessionState]struct {
	state  policy.SessionState
	reason policy.Reason
}{
	"":                                    {policy.SessionActive, ""},
	SessionState(policy.SessionActive):    {policy.SessionActive, ""},
	SessionPending:                        {policy.SessionActive, ""},
	SessionState(policy.SessionSuspended): {policy.SessionSuspended, policy.ReasonSuspended},
	SessionState(policy.SessionMissing):   {policy.SessionMissing, policy.ReasonNoSession},
	SessionState(policy.SessionAmbiguous): {policy.SessionAmbiguous, policy.ReasonSessionAmbiguous},
	SessionState(policy.SessionEnded):     {policy.SessionEnded, policy.ReasonSessionEnded},
}

// newSession makes the view that the manager would have of the session. Errors name the field.
func newSession(s *Session, snapshot *policystore.Snapshot, now time.Time) (*session, error) {
	state, known := states[s.State]
	switch {
	case s.Namespace == "":
		return nil, fmt.Errorf("namespace: is required")
	case !known:
		return nil, fmt.Errorf("state: unknown state %q", s.State)
	case s.Template != "" && s.Authority != nil:
		return nil, fmt.Errorf("authority: is not allowed beside template")
	}
	account, authority, err := s.identity(snapshot)
	if err != nil {
		return nil, err
	}
	made := &session{serviceAccount: account, view: policy.SessionView{
		State: state.state, StateReason: state.reason, Namespace: s.Namespace, Name: s.Name, UID: "uid-" + s.Name,
		Epoch: max(1, s.Epoch), Username: "system:serviceaccount:" + s.Namespace + ":" + account, Deadline: now.Add(time.Hour),
		StrictScope: s.StrictScope,
	}}
	if s.StateReason != "" {
		made.view.StateReason = s.StateReason
	}
	if s.State == SessionPending {
		made.view.UID = ""
	}
	if s.DeadlineTime != nil {
		made.view.Deadline = s.DeadlineTime.Time
	}
	if s.Hold != nil {
		if made.view.Hold, err = s.Hold.view(s.Namespace, now); err != nil {
			return nil, fmt.Errorf("hold.%w", err)
		}
	}
	switch made.view.State {
	case policy.SessionActive, policy.SessionSuspended:
		if authority == nil {
			return nil, fmt.Errorf("template: is required: a session that may act has a template or an authority")
		}
		made.view.Authority = policystore.AuthorityOf(authority, s.Namespace)
	default: // nobody's authority
	}
	for i, text := range s.Created {
		key, err := parseObjectKey(text)
		if err != nil {
			return nil, fmt.Errorf("created[%d]: %w", i, err)
		}
		made.created = append(made.created, key)
	}
	return made, nil
}

// identity is who acts and what it may do, from the session's template or its own fields. Errors name the field.
func (s *Session) identity(snapshot *policystore.Snapshot) (account string, authority *v1alpha1.Authority, err error) {
	account, authority = s.ServiceAccountName, s.Authority
	if s.Template != "" {
		settings, _ := snapshot.Namespace(s.Namespace)
		position := slices.IndexFunc(settings.Templates, func(t v1alpha1.SessionTemplate) bool { return t.Name == s.Template })
		if position < 0 {
			return "", nil, fmt.Errorf("template: namespace %s with profile %q has no session template %q", s.Namespace, settings.Profile, s.Template)
		}
		authority = &settings.Templates[position].Authority
		if account == "" {
			account = settings.Templates[position].ServiceAccountName
		}
	}
	if account == "" {
		return "", nil, fmt.Errorf("serviceAccountName: is required without template")
	}
	return account, authority, nil
}

// view is the hold as the engine sees it. Errors name the field.
func (h *Hold) view(namespace string, now time.Time) (*policy.Hold, error) {
	switch {
	case h.Name == "":
		return nil, fmt.Errorf("name: is required")
	case h.Author == "":
		return nil, fmt.Errorf("author: is required")
	}
	since := now
	if h.SinceTime != nil {
		since = h.SinceTime.Time
	}
	return &policy.Hold{Namespace: namespace, Name: h.Name, Author: h.Author, Since: since}, nil
}

func parseObjectKey(text string) (objectKey, error) {
	parts := strings.Split(text, "/")
	if len(parts) == 3 {
		parts = append([]string{""}, parts...)
	}
	if len(parts) != 4 || parts[1] == "" || parts[3] == "" {
		return objectKey{}, fmt.Errorf("%q is not [group/]kind/namespace/name", text)
	}
	return objectKey{group: parts[0], resource: pluralOf(parts[0], parts[1]), namespace: parts[2], name: parts[3]}, nil
}

// pluralOf guesses the resource of a kind, which begins with a capital; a resource is itself.
func pluralOf(group, kind string) string {
	if kind == strings.ToLower(kind) {
		return kind
	}
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Kind: kind})
	return plural.Resource
}
