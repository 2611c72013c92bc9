package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// Proves G-3, G-4: a relay carries answers of people, when the platform team lists it and RBAC lets it speak for them, and
// the grant says who carried them.
func TestARelayCarriesAnswersOfThePeopleItMaySpeakFor(t *testing.T) {
	const chat, stranger, inside = "system:serviceaccount:chat:relay", "system:serviceaccount:chat:stranger", "system:serviceaccount:checkout:relay"
	carried := func(name, relay string) authenticationv1.UserInfo {
		user := person(name)
		user.Extra = map[string]authenticationv1.ExtraValue{v1alpha1.ExtraRelay: {relay}}
		return user
	}
	two := carried("ben@acme.example", chat)
	two.Extra[v1alpha1.ExtraRelay] = authenticationv1.ExtraValue{chat, stranger}
	signedIn := person("ben@acme.example")
	signedIn.Extra[v1alpha1.ExtraRelay] = authenticationv1.ExtraValue{chat}
	constrained, whole := verbs{chat + " impersonate:user-info": true}, verbs{chat + " impersonate": true}
	first := "403 Forbidden: spec.decisions[0]: Forbidden: "
	for _, tt := range []struct {
		name        string
		who         authenticationv1.UserInfo
		may         verbs
		want, relay string
	}{
		{"a relay of a person", carried("ben@acme.example", chat), constrained, "allowed", chat},
		{"a relay where the cluster knows only whole impersonation", carried("ben@acme.example", chat), whole, "allowed", chat},
		{"a relay that may not speak for the person", carried("ben@acme.example", chat), verbs{}, first + "ServiceAccount chat/relay may not impersonate this person; the platform team names the people of a relay in its ClusterRole", ""},
		{"a relay that nobody listed", carried("ben@acme.example", stranger), verbs{stranger + " impersonate": true},
			first + "the relay that carries this answer is not known; the platform team lists it in spec.answerRelays of a ClusterAgentPolicy, or answer with your own credential", ""},
		{"a relay in a governed namespace", carried("ben@acme.example", inside), verbs{inside + " impersonate": true},
			first + "ServiceAccount checkout/relay is governed and carries nobody's answers; run the relay in a namespace that is not governed", ""},
		{"a relay that the agent which asks may name", carried("ben@acme.example", chat), verbs{chat + " impersonate:user-info": true, "system:serviceaccount:checkout:agent impersonate": true},
			first + "the agent that asks may impersonate the relay, so a carried answer proves nothing; answer with your own credential, and take impersonate from the agent's role", ""},
		{"a relay of a ServiceAccount", carried("system:serviceaccount:ci:bot", chat), constrained, first + "a relay carries answers of people only", ""},
		{"a relay of the requester", carried("system:serviceaccount:checkout:agent", chat), constrained, "403 Forbidden", ""},
		{"a relay of the session's user, where another person is wanted", carried("dora@acme.example", chat), constrained,
			first + "the agent works for you, and the policy here wants another person to approve; ask another approver", ""},
		{"a relay of a person without the verb approve", carried("eve@acme.example", chat), constrained,
			first + "needs the verb approve on permissiongrants in namespace checkout; ask who administers it, or leave it to another approver", ""},
		{"two relays at once", two, constrained, "403 CredentialUnbound", ""},
		{"a person with a credential is no relay's", signedIn, verbs{}, "allowed", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			governed := governedCluster()
			governed.policies[0].Spec.AnswerRelays = []v1alpha1.ServiceAccountReference{{Namespace: "chat", Name: "relay"}, {Namespace: "checkout", Name: "relay"}}
			if tt.who.Username == "dora@acme.example" {
				governed.profiles[0].Spec.Approvals.SessionUser = v1alpha1.SessionUserRefuse
			}
			may := verbs{"ben@acme.example approve": true, "dora@acme.example approve": true, "system:serviceaccount:ci:bot approve": true}
			for verb := range tt.may {
				may[verb] = true
			}
			asked := question(onePerson, func(g *v1alpha1.PermissionGrant) { g.Spec.Request.Requester.OnBehalfOf = "dora@acme.example" })
			decided := asked.DeepCopy()
			answer()(decided)
			stamped, got := admit(t, objectsFor(t, governed, may.access), tt.who, "PermissionGrant", decided, asked)
			if len(got) > len(tt.want) && (tt.want == "403 CredentialUnbound" || tt.want == "403 Forbidden") {
				got = got[:len(tt.want)]
			}
			if got != tt.want {
				t.Errorf("answer (-want +got):\n%s", cmp.Diff(tt.want, got))
			}
			if tt.want != "allowed" {
				return
			}
			if d := stamped.Spec.Decisions[0]; d.Approver != tt.who.Username || d.Relay != tt.relay {
				t.Errorf("stamped %q carried by %q, want %q carried by %q", d.Approver, d.Relay, tt.who.Username, tt.relay)
			}
		})
	}
	t.Run("an agent whose groups nobody knows", func(t *testing.T) {
		governed := governedCluster()
		governed.policies[0].Spec.AnswerRelays = []v1alpha1.ServiceAccountReference{{Namespace: "chat", Name: "relay"}}
		asked := question(onePerson, func(g *v1alpha1.PermissionGrant) { g.Spec.Request.Requester.Username = "oidc:release-notes-agent" })
		decided := asked.DeepCopy()
		answer()(decided)
		may := verbs{"ben@acme.example approve": true, chat + " impersonate:user-info": true}
		_, got := admit(t, objectsFor(t, governed, may.access), carried("ben@acme.example", chat), "PermissionGrant", decided, asked)
		if want := first + "the agent that asks is no ServiceAccount, so nobody can tell whether it may impersonate the relay; answer with your own credential"; got != want {
			t.Errorf("answer (-want +got):\n%s", cmp.Diff(want, got))
		}
	})
	t.Run("a reopening is stamped with its relay, and nobody claims one", func(t *testing.T) {
		for _, claimed := range []string{"", chat} {
			denied := question(onePerson, answer(by(person("dora@acme.example")), denies))
			reopened := denied.DeepCopy()
			reopened.Spec.Reopening = &v1alpha1.Reopening{Relay: claimed}
			governed := governedCluster()
			governed.policies[0].Spec.AnswerRelays = []v1alpha1.ServiceAccountReference{{Namespace: "chat", Name: "relay"}}
			may := verbs{"ben@acme.example approve": true, chat + " impersonate:user-info": true}
			stamped, got := admit(t, objectsFor(t, governed, may.access), carried("ben@acme.example", chat), "PermissionGrant", reopened, denied)
			if got != "allowed" || stamped.Spec.Reopening.Relay != chat {
				t.Errorf("carried, claiming %q: %s", claimed, got)
			}
		}
		denied := question(onePerson, answer(by(person("dora@acme.example")), denies))
		reopened := denied.DeepCopy()
		reopened.Spec.Reopening = &v1alpha1.Reopening{Relay: chat}
		_, got := admit(t, objectsFor(t, governedCluster(), verbs{"ben@acme.example approve": true}.access), person("ben@acme.example"), "PermissionGrant", reopened, denied)
		if want := "403 Forbidden: spec.reopening.relay: Forbidden: is written by the server and is not who or what this request comes from; leave it out"; got != want {
			t.Errorf("answer (-want +got):\n%s", cmp.Diff(want, got))
		}
	})
	t.Run("nobody claims a relay", func(t *testing.T) {
		asked := question(onePerson)
		decided := asked.DeepCopy()
		answer(func(d *v1alpha1.GrantDecision) { d.Relay = chat })(decided)
		_, got := admit(t, objectsFor(t, governedCluster(), verbs{"ben@acme.example approve": true}.access), person("ben@acme.example"), "PermissionGrant", decided, asked)
		if want := "403 Forbidden: spec.decisions[0].relay: Forbidden: is written by the server and is not who or what this request comes from; leave it out"; got != want {
			t.Errorf("answer (-want +got):\n%s", cmp.Diff(want, got))
		}
	})
}
