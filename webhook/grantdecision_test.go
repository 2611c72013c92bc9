package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	jsonpatchapply "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

const (
	shown   = "v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9"
	unshown = "v1:2706c619fe73f0cf112473c6ee02e66c04e1c01c110b0c37b88d8eb509630c9f"
	foreign = "v1:1111111111111111111111111111111111111111111111111111111111111111"
)

type grantChange func(*v1alpha1.PermissionGrant)

// question is a pending grant of the session of checkout/agent, which works for carla.
func question(changes ...grantChange) *v1alpha1.PermissionGrant {
	g := &v1alpha1.PermissionGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "pg-7l3yy3mzxzd4pzlg", UID: "grant-uid", Generation: 1},
		Spec: v1alpha1.PermissionGrantSpec{
			Request: v1alpha1.PermissionRequest{
				Type: v1alpha1.RequestExact, Digest: shown, Question: 1, Stage: v1alpha1.StageExecute,
				Session:   v1alpha1.GrantSession{Namespace: "checkout", Name: "fix-latency-9c1f0", UID: "session-uid", Epoch: 1},
				Requester: v1alpha1.Requester{Username: "system:serviceaccount:checkout:agent", OnBehalfOf: "carla@acme.example"},
				Operation: v1alpha1.GrantOperation{
					Capability: v1alpha1.CapabilityExecuteLocal, Verb: v1alpha1.VerbDelete, Summary: "delete persistentvolumeclaims checkout/data-postgres-0",
					Target: v1alpha1.GrantTarget{Version: "v1", Resource: "persistentvolumeclaims", Namespace: "checkout", Name: "data-postgres-0"},
				},
				Requirements: []v1alpha1.GrantRequirement{
					{Name: "one-person", Required: 1},
					{Name: "data-loss", Required: 2, ApproverGroups: []string{"acme:owners", "acme:sre"}},
				},
				MaxUses: 1, DecideByTime: metav1.NewTime(now.Add(time.Hour)), UseWithinSeconds: 14400,
			},
			RequesterComment: "The claim is full.",
			Decisions:        []v1alpha1.GrantDecision{},
		},
	}
	for _, change := range changes {
		change(g)
	}
	return g
}

// onePerson leaves one requirement.
func onePerson(g *v1alpha1.PermissionGrant) {
	g.Spec.Request.Requirements = g.Spec.Request.Requirements[:1]
}

// answer is what a client sends, changed as said.
func answer(changes ...func(*v1alpha1.GrantDecision)) grantChange {
	return func(g *v1alpha1.PermissionGrant) {
		d := v1alpha1.GrantDecision{Verdict: v1alpha1.VerdictApprove, ShownDigest: shown}
		for _, change := range changes {
			change(&d)
		}
		g.Spec.Decisions = append(g.Spec.Decisions, d)
	}
}

func by(user authenticationv1.UserInfo) func(*v1alpha1.GrantDecision) {
	return func(d *v1alpha1.GrantDecision) {
		d.Approver, d.ApproverUID, d.GrantUID, d.DecidedTime = user.Username, user.UID, "grant-uid", &metav1.Time{Time: now.Add(-time.Minute)}
		d.PolicyIdentity = foreign // of earlier policies
	}
}

func denies(d *v1alpha1.GrantDecision) { d.Verdict = v1alpha1.VerdictDeny }

func revocation(changes ...func(*v1alpha1.Revocation)) grantChange {
	return func(g *v1alpha1.PermissionGrant) {
		g.Spec.Revocation = &v1alpha1.Revocation{Reason: "wrong claim"}
		for _, change := range changes {
			change(g.Spec.Revocation)
		}
	}
}

// admit sends an update as the API server does: through the stamping entry, whose patch is applied, then through the
// validating one.
func admit(t *testing.T, objects *Objects, user authenticationv1.UserInfo, kind string, object, old client.Object, between ...func(*v1alpha1.PermissionGrant)) (*v1alpha1.PermissionGrant, string) {
	t.Helper()
	stamper := &ObjectsStamp{Store: objects.Store, Now: objects.Now}
	req := reviewOf(t, user, kind, object, old)
	if kind == "PermissionGrant" && old != nil || kind == "AgentSession" {
		response := stamper.Handle(t.Context(), req)
		if !response.Allowed {
			return nil, said(response)
		}
		req.Object.Raw = patched(t, req, response)
	}
	stamped := &v1alpha1.PermissionGrant{}
	if kind == "PermissionGrant" {
		if err := json.Unmarshal(req.Object.Raw, stamped); err != nil {
			t.Fatal(err)
		}
		for _, change := range between {
			change(stamped)
			req = reviewOf(t, user, kind, stamped, old)
		}
	}
	return stamped, said(objects.Handle(t.Context(), req))
}

func patched(t *testing.T, req admission.Request, response admission.Response) []byte {
	t.Helper()
	if err := response.Complete(req); err != nil {
		t.Fatal(err)
	}
	if len(response.Patch) == 0 {
		return req.Object.Raw
	}
	patch, err := jsonpatchapply.DecodePatch(response.Patch)
	if err != nil {
		t.Fatal(err)
	}
	object, err := patch.Apply(req.Object.Raw)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// Proves G-3, G-4.
func TestWhoMayAnswerAGrantAndHow(t *testing.T) {
	ben, carla, dora := person("ben@acme.example", "acme:sre"), person("carla@acme.example"), person("dora@acme.example")
	approver := verbs{}
	for _, user := range []authenticationv1.UserInfo{ben, carla, dora, serviceAccount("ci", "bot"), serviceAccount("ci", "other"),
		serviceAccount("checkout", "bot"), serviceAccount("checkout", "agent")} {
		approver[user.Username+" approve"] = true
	}
	objects := objectsFor(t, governedCluster(), approver.access)
	forbidden := func(path, why string) string { return "403 Forbidden: " + path + ": Forbidden: " + why }
	first, second := "spec.decisions[0]", "spec.decisions[1]"
	expired := func(g *v1alpha1.PermissionGrant) { g.Spec.Request.DecideByTime = metav1.NewTime(now) }
	closedQuestion := func(g *v1alpha1.PermissionGrant) {
		g.Status.State, g.Status.Reason = v1alpha1.GrantSuperseded, v1alpha1.ReasonEpochRaised
	}
	inPayments := func(g *v1alpha1.PermissionGrant) { g.Spec.Request.Operation.Target.Namespace = "payments" }
	tests := []struct {
		name string
		user authenticationv1.UserInfo
		old  *v1alpha1.PermissionGrant
		// change is what the client sends.
		change []grantChange
		want   string
	}{
		{"an approver approves", ben, question(), []grantChange{answer()}, "allowed"},
		{"an approver denies", ben, question(), []grantChange{answer(denies)}, "allowed"},
		{"a second approver approves", dora, question(answer(by(ben))), []grantChange{answer()}, "allowed"},
		{"an approver says their own name", ben, question(), []grantChange{answer(func(d *v1alpha1.GrantDecision) { d.Approver = ben.Username })}, "allowed"},
		{"without the verb approve", person("eve@acme.example"), question(), []grantChange{answer()},
			forbidden(first, "needs the verb approve on permissiongrants in namespace checkout; ask who administers it, or leave it to another approver")},
		{"impersonated", impersonated(ben), question(), []grantChange{answer()},
			"403 CredentialUnbound: Denied: update permissiongrants checkout/pg-7l3yy3mzxzd4pzlg is refused: the request carries no credential-id, as impersonated identities and legacy tokens do not. Next: answer with your own certificate or token, without --as."},
		{"the agent itself, with the verb and on the list", serviceAccount("checkout", "agent"), question(), []grantChange{answer()},
			"403 Forbidden: Forbidden: update permissiongrants checkout/pg-7l3yy3mzxzd4pzlg is closed to agents and no approval opens it (EscalatesAuthority; rule baseline/own-objects). Next: ask a person; an open question is answered with kubectl by its approver."},
		{"the agent under a person's name", serviceAccount("checkout", "agent"), question(), []grantChange{answer(func(d *v1alpha1.GrantDecision) { d.Approver = ben.Username })},
			"403 Forbidden: Forbidden: update permissiongrants checkout/pg-7l3yy3mzxzd4pzlg is closed to agents and no approval opens it (EscalatesAuthority; rule baseline/own-objects). Next: ask a person; an open question is answered with kubectl by its approver."},
		{"the requester, when it is not governed any more", serviceAccount("free", "agent"),
			question(func(g *v1alpha1.PermissionGrant) {
				g.Spec.Request.Requester.Username = "system:serviceaccount:free:agent"
			}), []grantChange{answer()},
			forbidden(first, "the requester does not answer its own question; ask a person with the verb approve")},
		{"a ServiceAccount on the list", serviceAccount("ci", "bot"), question(), []grantChange{answer()}, "allowed"},
		{"a ServiceAccount that is not on the list", serviceAccount("ci", "other"), question(), []grantChange{answer()},
			forbidden(first, "ServiceAccount ci/other may not answer; a person answers, or the platform team lists it in spec.serviceAccountApprovers of a ClusterAgentPolicy")},
		{"an exempt ServiceAccount that is not on the list", serviceAccount("checkout", "bot"), question(), []grantChange{answer()},
			forbidden(first, "ServiceAccount checkout/bot may not answer; a person answers, or the platform team lists it in spec.serviceAccountApprovers of a ClusterAgentPolicy")},
		{"the session's user, where the policy allows it", carla, question(), []grantChange{answer()}, "allowed"},
		{"the session's user, where the target's policy refuses it", carla, question(inPayments), []grantChange{answer()},
			forbidden(first, "the agent works for you, and the policy here wants another person to approve; ask another approver")},
		{"the session's user, whose session's namespace is not governed any more", carla,
			question(func(g *v1alpha1.PermissionGrant) { g.Spec.Request.Session.Namespace = "free" }), []grantChange{answer()},
			forbidden(first, "the agent works for you, and the policy here wants another person to approve; ask another approver")},
		{"the session's user denies, whatever the policy", carla, question(inPayments), []grantChange{answer(denies)}, "allowed"},

		{"another digest than the one shown", ben, question(), []grantChange{answer(func(d *v1alpha1.GrantDecision) { d.ShownDigest = unshown })},
			`422 Invalid: PermissionGrant.stepbeyond.dev "pg-7l3yy3mzxzd4pzlg" is invalid: spec.decisions[0].shownDigest: Invalid value: is not the digest of this question, which is ` + shown + "; read the grant again and answer what it shows"},
		{"another approver's name", ben, question(), []grantChange{answer(func(d *v1alpha1.GrantDecision) { d.Approver = dora.Username })},
			forbidden(first+".approver", "is written by the server and is not who or what this request comes from; leave it out")},
		{"another grant's uid", ben, question(), []grantChange{answer(func(d *v1alpha1.GrantDecision) { d.GrantUID = "another" })},
			forbidden(first+".grantUID", "is written by the server and is not who or what this request comes from; leave it out")},
		{"groups that the approver is not in", ben, question(), []grantChange{answer(func(d *v1alpha1.GrantDecision) { d.ApproverGroups = []string{"acme:owners"} })},
			forbidden(first+".approverGroups", "is written by the server and is not what the caller has; leave it out")},
		{"a time of the approver's choice", ben, question(), []grantChange{answer(func(d *v1alpha1.GrantDecision) { d.DecidedTime = &metav1.Time{Time: now.Add(time.Hour)} })},
			forbidden(first+".decidedTime", "is written by the server; leave it out")},
		{"policies of the approver's choice", ben, question(), []grantChange{answer(func(d *v1alpha1.GrantDecision) { d.PolicyIdentity = foreign })},
			forbidden(first+".policyIdentity", "is written by the server, and the policies are others now; leave it out and answer again")},

		{"two answers at once", ben, question(), []grantChange{answer(), answer()}, forbidden("spec.decisions", "one request adds one answer; everybody answers for themselves")},
		{"an earlier answer changed", ben, question(answer(by(dora), denies)), []grantChange{func(g *v1alpha1.PermissionGrant) { g.Spec.Decisions[0].Verdict = v1alpha1.VerdictApprove }},
			forbidden("spec.decisions", `earlier answers can neither change nor go; append yours with path "/spec/decisions/-"`)},
		{"an earlier answer replaced by one's own", ben, question(answer(by(dora), denies)), []grantChange{func(g *v1alpha1.PermissionGrant) { g.Spec.Decisions = nil }, answer()},
			forbidden("spec.decisions", `earlier answers can neither change nor go; append yours with path "/spec/decisions/-"`)},
		{"an earlier answer taken out", ben, question(answer(by(dora))), []grantChange{func(g *v1alpha1.PermissionGrant) { g.Spec.Decisions = nil }},
			forbidden("spec.decisions", `earlier answers can neither change nor go; append yours with path "/spec/decisions/-"`)},
		{"a second answer of one person", ben, question(answer(by(ben))), []grantChange{answer()},
			forbidden(second, "you have answered already and count once; to take your answer back set spec.revocation")},
		{"the question changed", ben, question(), []grantChange{func(g *v1alpha1.PermissionGrant) { g.Spec.Request.MaxUses = 2 }, answer()},
			forbidden("spec.request", "is immutable; another operation is another question")},
		{"the agent's comment changed", ben, question(), []grantChange{func(g *v1alpha1.PermissionGrant) { g.Spec.RequesterComment = "Approved by the CTO." }},
			forbidden("spec.requesterComment", "only the session that asked sets it")},

		{"an approved grant is not decided again", ben, question(onePerson, answer(by(dora))), []grantChange{answer(denies)},
			forbidden(second, "the grant is approved and cannot be decided again; to take the approval back set spec.revocation")},
		{"a denied grant is not approved", ben, question(answer(by(dora), denies)), []grantChange{answer()},
			forbidden(second, "the grant is closed: Denied (ApproverDenied); the agent opens a new question when it tries again")},
		{"an expired question is not approved", ben, question(expired), []grantChange{answer()},
			forbidden(first, "the grant is closed: Expired (NotDecidedInTime); the agent opens a new question when it tries again")},
		{"a superseded question is not approved", ben, question(closedQuestion), []grantChange{answer()},
			forbidden(first, "the grant is closed: Superseded (EpochRaised); the agent opens a new question when it tries again")},

		{"an approval is revoked", ben, question(onePerson, answer(by(dora))), []grantChange{revocation()}, "allowed"},
		{"a question is revoked", ben, question(), []grantChange{revocation()}, "allowed"},
		{"the session's user revokes, whatever the policy", carla, question(inPayments), []grantChange{revocation()}, "allowed"},
		{"revoked without the verb", person("eve@acme.example"), question(), []grantChange{revocation()},
			forbidden("spec.revocation", "needs the verb approve on permissiongrants in namespace checkout; ask who administers it, or leave it to another approver")},
		{"revoked in another's name", ben, question(), []grantChange{revocation(func(r *v1alpha1.Revocation) { r.By = dora.Username })},
			forbidden("spec.revocation.by", "is written by the server and is not who or what this request comes from; leave it out")},
		{"a denied grant has nothing to revoke", ben, question(answer(by(dora), denies)), []grantChange{revocation()},
			forbidden("spec.revocation", "the grant is closed: Denied (ApproverDenied); there is nothing to take back")},
		{"a revocation is not taken back", ben, question(revocation()), []grantChange{func(g *v1alpha1.PermissionGrant) { g.Spec.Revocation = nil }},
			forbidden("spec.revocation", "is set once; a revoked grant stays revoked")},
		{"answered and revoked at once", ben, question(), []grantChange{answer(), revocation()},
			forbidden("spec.revocation", "answer or revoke, not both in one request")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := tt.old.DeepCopy()
			for _, change := range tt.change {
				change(g)
			}
			if _, got := admit(t, objects, tt.user, "PermissionGrant", g, tt.old); got != tt.want {
				t.Errorf("answer (-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

func TestNobodyElseAsksAQuestion(t *testing.T) {
	objects := objectsFor(t, governedCluster(), verbs{"petra@acme.example create": true}.access)
	want := "403 Forbidden: spec.request: Forbidden: only Step Beyond asks questions; the refused request of an agent opens one"
	if _, got := admit(t, objects, person("petra@acme.example"), "PermissionGrant", question(), nil); got != want {
		t.Errorf("answer (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// Proves G-4.
func TestAnAnswerIsStampedFromTheRequest(t *testing.T) {
	ben := person("ben@acme.example", "acme:private", "acme:sre", "system:authenticated")
	objects := objectsFor(t, governedCluster(), verbs{"ben@acme.example approve": true}.access)
	_, identity := objects.Store.Current().Engine.Identity("checkout", "checkout")
	old := question()
	g := question(answer(func(d *v1alpha1.GrantDecision) { d.Reason = "Snapshot checked." }))
	stamped, got := admit(t, objects, ben, "PermissionGrant", g, old)
	if got != "allowed" {
		t.Fatal(got)
	}
	want := []v1alpha1.GrantDecision{{
		Approver: "ben@acme.example", ApproverUID: "uid-ben@acme.example", ApproverGroups: []string{"acme:sre"},
		Verdict: v1alpha1.VerdictApprove, ShownDigest: shown, Reason: "Snapshot checked.", Scope: v1alpha1.GrantScope{Type: v1alpha1.ScopeExact},
		DecidedTime: &metav1.Time{Time: now}, GrantUID: "grant-uid", PolicyIdentity: identity,
	}}
	if diff := cmp.Diff(want, stamped.Spec.Decisions); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
	again := (&ObjectsStamp{Store: objects.Store, Now: func() time.Time { return now.Add(10 * time.Second) }}).
		Handle(t.Context(), reviewOf(t, ben, "PermissionGrant", stamped, old))
	if !again.Allowed || len(again.Patches) > 0 {
		t.Errorf("stamping again: %s with %d patches, want allowed and none", said(again), len(again.Patches))
	}
}

// What other mutating webhooks do after the stamp is found out.
func TestAStampThatSomebodyChangedIsRefused(t *testing.T) {
	ben := person("ben@acme.example", "acme:sre")
	objects := objectsFor(t, governedCluster(), verbs{"ben@acme.example approve": true}.access)
	tests := []struct {
		name   string
		change func(*v1alpha1.PermissionGrant)
		want   string
	}{
		{"another name", func(g *v1alpha1.PermissionGrant) { g.Spec.Decisions[0].Approver = "dora@acme.example" },
			"403 Forbidden: spec.decisions[0].approver: Forbidden: is written by the server and is not who or what this request comes from; leave it out"},
		{"no name", func(g *v1alpha1.PermissionGrant) { g.Spec.Decisions[0].Approver = "" },
			"403 Forbidden: spec.decisions[0]: Forbidden: is not stamped with who answers; send it again"},
		{"no uid of the grant", func(g *v1alpha1.PermissionGrant) { g.Spec.Decisions[0].GrantUID = "" },
			"403 Forbidden: spec.decisions[0]: Forbidden: is not stamped with who answers; send it again"},
		{"no groups", func(g *v1alpha1.PermissionGrant) { g.Spec.Decisions[0].ApproverGroups = nil },
			"403 Forbidden: spec.decisions[0]: Forbidden: is not stamped with who answers; send it again"},
		{"a time to come", func(g *v1alpha1.PermissionGrant) {
			g.Spec.Decisions[0].DecidedTime = &metav1.Time{Time: now.Add(time.Minute)}
		},
			"403 Forbidden: spec.decisions[0].decidedTime: Forbidden: is written by the server; leave it out"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, got := admit(t, objects, ben, "PermissionGrant", question(answer()), question(), tt.change); got != tt.want {
				t.Errorf("answer (-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

func TestARevocationIsStampedFromTheRequest(t *testing.T) {
	objects := objectsFor(t, governedCluster(), verbs{"ben@acme.example approve": true}.access)
	stamped, got := admit(t, objects, person("ben@acme.example"), "PermissionGrant", question(revocation()), question())
	if got != "allowed" {
		t.Fatal(got)
	}
	want := &v1alpha1.Revocation{Reason: "wrong claim", By: "ben@acme.example", Time: &metav1.Time{Time: now}}
	if diff := cmp.Diff(want, stamped.Spec.Revocation); diff != "" {
		t.Errorf("revocation (-want +got):\n%s", diff)
	}
}

func TestTheAuthorizerIsAskedAboutTheWholeCaller(t *testing.T) {
	var asked authorizationv1.SubjectAccessReviewSpec
	objects := objectsFor(t, governedCluster(), func(_ context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
		asked = spec
		return true, nil
	})
	if _, got := admit(t, objects, person("ben@acme.example", "acme:sre"), "PermissionGrant", question(answer()), question()); got != "allowed" {
		t.Fatal(got)
	}
	want := authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "approve", Group: "stepbeyond.dev", Version: "v1alpha1", Resource: "permissiongrants", Namespace: "checkout", Name: "pg-7l3yy3mzxzd4pzlg",
		},
		User: "ben@acme.example", UID: "uid-ben@acme.example", Groups: []string{"acme:sre"},
		Extra: map[string]authorizationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"JTI=1"}},
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// Proves F-1.
func TestAnAnswerIsRefusedWhileTheAuthorizerCannotBeAsked(t *testing.T) {
	objects := objectsFor(t, governedCluster(), func(context.Context, authorizationv1.SubjectAccessReviewSpec) (bool, error) {
		return true, errors.New("connection refused")
	})
	want := "403 Undecided: Denied: update permissiongrants checkout/pg-7l3yy3mzxzd4pzlg is refused: deciding failed. Next: run this command again in 10 seconds; if it stays, a person reads the manager's log under this decision."
	if _, got := admit(t, objects, person("ben@acme.example"), "PermissionGrant", question(answer()), question()); got != want {
		t.Errorf("answer (-want +got):\n%s", cmp.Diff(want, got))
	}
}
