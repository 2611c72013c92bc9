package webhook

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// sessionIn is a session of namespace checkout; parent is empty for none.
func sessionIn(name, account, parent string, changes ...sessionChange) v1alpha1.AgentSession {
	s := opened(changes...)
	s.Name, s.UID, s.Spec.Identity.ServiceAccountName = name, types.UID(name+"-uid"), account
	if parent != "" {
		s.Spec.Parent = &v1alpha1.ParentSession{Name: parent, UID: types.UID(parent + "-uid")}
	}
	return *s
}

func openedBy(username string) sessionChange {
	return func(s *v1alpha1.AgentSession) {
		s.Annotations = map[string]string{v1alpha1.AnnotationOpenedBy: username}
	}
}

// Proves G-3: who launched the session that asks, and who belongs to it, does not answer, whatever RBAC and the list of
// approvers say.
func TestWhoLaunchedASessionAndWhoBelongsToItDoNotAnswer(t *testing.T) {
	const bot = "system:serviceaccount:ci:bot"
	first := `spec.decisions[0]: Forbidden: `
	refused := func(why string) string {
		return "403 Forbidden: " + first + why + "; ask a person with the verb approve"
	}
	createdBy := func(username string) sessionChange {
		return func(s *v1alpha1.AgentSession) { s.Status.CreatedBy = username }
	}
	user := func(name string) sessionChange {
		return func(s *v1alpha1.AgentSession) {
			s.Spec.Identity = v1alpha1.SessionIdentity{Type: v1alpha1.IdentityUser, UserName: name}
		}
	}
	asked := question(func(g *v1alpha1.PermissionGrant) {
		g.Spec.Request.Session.Name, g.Spec.Request.Session.UID = "asks", "asks-uid"
		g.Spec.Request.Requester.Username = "system:serviceaccount:checkout:helper"
	})
	for _, tt := range []struct {
		name     string
		who      authenticationv1.UserInfo
		sessions []v1alpha1.AgentSession
		want     string
	}{
		{"a machine that has nothing to do with it", serviceAccount("ci", "bot"), []v1alpha1.AgentSession{sessionIn("asks", "helper", "")}, "allowed"},
		{"the machine that opened it", serviceAccount("ci", "bot"), []v1alpha1.AgentSession{sessionIn("asks", "helper", "", openedBy(bot))},
			refused("you opened session asks and do not answer what it asks")},
		{"the machine that opened it, by the session's status", serviceAccount("ci", "bot"), []v1alpha1.AgentSession{sessionIn("asks", "helper", "", createdBy(bot))},
			refused("you opened session asks and do not answer what it asks")},
		{"the machine that opened its parent", serviceAccount("ci", "bot"), []v1alpha1.AgentSession{sessionIn("parent", "helper", "", openedBy(bot)), sessionIn("asks", "helper", "parent")},
			refused("you opened session parent and do not answer what it asks")},
		{"the machine that opened another session", serviceAccount("ci", "bot"), []v1alpha1.AgentSession{sessionIn("other", "helper", "", openedBy(bot)), sessionIn("asks", "helper", "")}, "allowed"},
		{"a person who opened it", person("ben@acme.example"), []v1alpha1.AgentSession{sessionIn("asks", "helper", "", openedBy("ben@acme.example"))}, "allowed"},
		{"a user of its parent", person("ben@acme.example"), []v1alpha1.AgentSession{sessionIn("parent", "", "", user("ben@acme.example")), sessionIn("asks", "helper", "parent")},
			refused("you work in session parent, which belongs to the one that asks")},
		{"a user of its child", person("ben@acme.example"), []v1alpha1.AgentSession{sessionIn("asks", "helper", ""), sessionIn("child", "", "asks", user("ben@acme.example"))},
			refused("you work in session child, which belongs to the one that asks")},
		{"a user of another session", person("ben@acme.example"), []v1alpha1.AgentSession{sessionIn("asks", "helper", ""), sessionIn("other", "", "", user("ben@acme.example"))}, "allowed"},
		{"of a session of its name that was opened anew", serviceAccount("ci", "bot"), []v1alpha1.AgentSession{func() v1alpha1.AgentSession {
			s := sessionIn("asks", "helper", "", openedBy(bot))
			s.UID = "anew"
			return s
		}()}, "allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			governed := governedCluster()
			governed.sessions = tt.sessions
			objects := objectsFor(t, governed, verbs{"ben@acme.example approve": true, bot + " approve": true}.access)
			decided := asked.DeepCopy()
			answer()(decided)
			if _, got := admit(t, objects, tt.who, "PermissionGrant", decided, asked); got != tt.want {
				t.Errorf("answer (-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

// Proves G-3 for children that people open.
func TestAChildThatAPersonOpensIsWithinItsParent(t *testing.T) {
	invalid := func(why string) string {
		return `422 Invalid: AgentSession.stepbeyond.dev "child" is invalid: ` + why
	}
	parent := sessionIn("parent", "agent", "")
	child := func(changes ...sessionChange) *v1alpha1.AgentSession {
		s := sessionIn("child", "agent", "parent", changes...)
		s.UID = ""
		s.Spec.Identity.RootOwner = &v1alpha1.RootOwner{Kind: "Deployment", Name: "web", UID: "web-uid"}
		s.Spec.Authority.Budgets.MaxChildSessions = new(int32(v1alpha1.DefaultMaxChildSessionsPerSession - 1))
		return &s
	}
	with := func(s *v1alpha1.AgentSession, change sessionChange) *v1alpha1.AgentSession { change(s); return s }
	ended := sessionIn("parent", "agent", "", func(s *v1alpha1.AgentSession) { s.Spec.DeadlineTime = metav1.NewTime(now) })
	for _, tt := range []struct {
		name     string
		sessions []v1alpha1.AgentSession
		child    *v1alpha1.AgentSession
		want     string
	}{
		{"one that fits", []v1alpha1.AgentSession{parent}, child(), "allowed"},
		{"of a session that does not exist", nil, child(), invalid("spec.parent: Invalid value: no session of this namespace has this name and uid")},
		{"of a session that was made anew", []v1alpha1.AgentSession{parent}, with(child(), func(s *v1alpha1.AgentSession) { s.Spec.Parent.UID = "older" }),
			invalid("spec.parent: Invalid value: no session of this namespace has this name and uid")},
		{"of a session that has ended", []v1alpha1.AgentSession{ended}, child(), invalid("spec.parent: Invalid value: session parent has ended")},
		{"one more than the parent may have", []v1alpha1.AgentSession{parent, sessionIn("a", "x", "parent"), sessionIn("b", "x", "parent"), sessionIn("c", "x", "a"), sessionIn("d", "x", "c")}, child(),
			invalid("spec.parent: Invalid value: session parent has 4 of 4 child sessions (maxChildSessions)")},
		{"for another user", []v1alpha1.AgentSession{parent}, with(child(), func(s *v1alpha1.AgentSession) { s.Spec.UserName = "ben@acme.example" }),
			invalid(`spec.userName: Invalid value: must be that of parent session "parent"`)},
		{"after the parent's deadline", []v1alpha1.AgentSession{parent}, with(child(), func(s *v1alpha1.AgentSession) { s.Spec.DeadlineTime.Time = parent.Spec.DeadlineTime.Add(time.Second) }),
			invalid(`spec.deadlineTime: Invalid value: is later than that of parent session "parent"`)},
		{"with as many children as the parent", []v1alpha1.AgentSession{parent}, with(child(), func(s *v1alpha1.AgentSession) { *s.Spec.Authority.Budgets.MaxChildSessions = 4 }),
			invalid(`spec.authority.budgets.maxChildSessions: Invalid value: must be at most 3: it exceeds parent session "parent"; leave it out`)},
		{"of no workload", []v1alpha1.AgentSession{parent}, with(child(), func(s *v1alpha1.AgentSession) { s.Spec.Identity.RootOwner = nil }),
			invalid("spec.identity.rootOwner: Required value: a child session follows a workload")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			governed := governedCluster()
			governed.sessions = tt.sessions
			objects := objectsFor(t, governed, verbs{}.access)
			if _, got := admit(t, objects, person("petra@acme.example"), "AgentSession", tt.child, nil); got != tt.want {
				t.Errorf("answer (-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}
