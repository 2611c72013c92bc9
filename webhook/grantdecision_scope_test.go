package webhook

import (
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// wideCluster lets approvers in checkout give time boxes, and in payments answers for the session.
func wideCluster() *cluster {
	c := governedCluster()
	standard, production := c.profiles[0].Spec.Approvals, c.profiles[1].Spec.Approvals
	standard.WidestScope, standard.MaxTimeBoxSeconds, standard.MaxTimeBoxUses = v1alpha1.ScopeTimeBoxed, 1800, 20
	production.WidestScope, production.MaxTimeBoxUses = v1alpha1.ScopeSession, 3
	return c
}

func width(scope v1alpha1.GrantScope) grantChange {
	return answer(func(d *v1alpha1.GrantDecision) { d.Scope = scope })
}

func box(seconds, uses int32, match *v1alpha1.ScopeMatch) v1alpha1.GrantScope {
	return v1alpha1.GrantScope{Type: v1alpha1.ScopeTimeBoxed, DurationSeconds: seconds, Uses: uses, Match: match}
}

// Proves G-2, G-9: what is too wide is refused with the field, the bound and where it stands; the schema's own rules hold
// without the schema too. The strictest of the session's and the target's namespace counts.
func TestHowWideAnAnswerMayBe(t *testing.T) {
	ben := person("ben@acme.example", "acme:sre")
	objects := objectsFor(t, wideCluster(), verbs{"ben@acme.example approve": true}.access)
	inPayments := func(g *v1alpha1.PermissionGrant) { g.Spec.Request.Operation.Target.Namespace = "payments" }
	fromFree := func(g *v1alpha1.PermissionGrant) { g.Spec.Request.Session.Namespace = "free" }
	unnamed := func(g *v1alpha1.PermissionGrant) { g.Spec.Request.Operation.Target.Name = "" }
	exec := func(command ...string) grantChange {
		return func(g *v1alpha1.PermissionGrant) {
			o := &g.Spec.Request.Operation
			o.Verb, o.Target.Resource, o.Target.Subresource, o.Command = v1alpha1.VerbConnect, "pods", "exec", command
		}
	}
	names := func(pattern string) *v1alpha1.ScopeMatch { return &v1alpha1.ScopeMatch{Name: pattern} }
	commands := func(patterns ...string) *v1alpha1.ScopeMatch { return &v1alpha1.ScopeMatch{Commands: patterns} }
	session := v1alpha1.GrantScope{Type: v1alpha1.ScopeSession}
	for _, tt := range []struct {
		name   string
		asked  grantChange
		answer v1alpha1.GrantScope
		says   string // empty: taken
	}{
		{"the whole box", nil, box(1800, 20, names("data-*")), ""},
		{"the session", nil, session, ""},
		{"a second too long", nil, box(1801, 20, nil), "spec.decisions[0].scope.durationSeconds: Forbidden: is longer than 1800, which is approvals.maxTimeBoxSeconds of AgentPolicy stepbeyond-system/standard"},
		{"a use too many", nil, box(60, 21, nil), "spec.decisions[0].scope.uses: Forbidden: is more than 20, which is approvals.maxTimeBoxUses of AgentPolicy stepbeyond-system/standard"},
		{"a box without an end", nil, box(0, 1, nil), "scope.durationSeconds: Required"},
		{"an end for the session", nil, v1alpha1.GrantScope{Type: v1alpha1.ScopeSession, DurationSeconds: 60}, "only a TimeBoxed approval"},
		{"a pattern for the exact operation", nil, v1alpha1.GrantScope{Type: v1alpha1.ScopeExact, Match: names("data-*")}, "Exact is the one operation asked about"},
		{"a scope that nobody knows", nil, v1alpha1.GrantScope{Type: "Everything"}, "scope.type: Forbidden: is wider than TimeBoxed"},
		{"the target's namespace allows less", inPayments, box(60, 1, nil), "scope.type: Forbidden: is wider than Session, which is approvals.widestScope of AgentPolicy stepbeyond-system/production"},
		{"the target's namespace allows the session", inPayments, session, ""},
		{"the target's namespace allows fewer uses", inPayments, v1alpha1.GrantScope{Type: v1alpha1.ScopeSession, Uses: 4}, "is more than 3, which is approvals.maxTimeBoxUses of AgentPolicy stepbeyond-system/production"},
		{"the session's namespace is not governed any more", fromFree, session, "is wider than Exact"},
		{"a question that names no object", unnamed, session, "the question names no object"},
		{"every name", nil, box(60, 1, names("*")), "scope.match.name: Invalid value"},
		{"a way up", nil, box(60, 1, names("data-*/..")), "scope.match.name: Invalid value"},
		{"a letter that only looks alike", nil, box(60, 1, names("dаta-*")), "scope.match.name: Invalid value: must be lower-case letters"},
		{"another name", nil, box(60, 1, names("web-*")), "does not match the name in the question, data-postgres-0"},
		{"commands of a deletion", nil, box(60, 1, commands("ss")), "scope.match.commands: Forbidden: only an exec"},
		{"commands of an exec", exec("ss", "-l"), box(60, 1, commands("ip a", "ss *")), ""},
		{"commands that are not the question's", exec("ss", "-l"), box(60, 1, commands("ss")), "none of them matches the command"},
		{"every command", exec("ss"), box(60, 1, commands("ss", "*")), "scope.match.commands[1]: Invalid value"},
		{"commands where it cannot be told", exec(), box(60, 1, commands("ss")), "cannot be told word by word"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old := question()
			if tt.asked != nil {
				tt.asked(old)
			}
			g := old.DeepCopy()
			width(tt.answer)(g)
			stamped, got := admit(t, objects, ben, "PermissionGrant", g, old)
			if tt.says != "" {
				if !strings.Contains(got, tt.says) {
					t.Errorf("answer %s, want %q", got, tt.says)
				}
				return
			}
			if got != "allowed" {
				t.Fatal(got)
			}
			if scope := stamped.Spec.Decisions[0].Scope; scope.Uses < 1 || stamped.Labels[v1alpha1.LabelScope] != string(scope.Type) {
				t.Errorf("stored %+v with labels %v, want its uses and its label", scope, stamped.Labels)
			}
		})
	}
}

// Proves G-2: nobody but an answer gives a grant the label by which wide answers are found, or takes it.
func TestTheLabelOfAWideAnswerIsTheServers(t *testing.T) {
	ben := person("ben@acme.example", "acme:sre")
	objects := objectsFor(t, wideCluster(), verbs{"ben@acme.example approve": true}.access)
	label := func(value string) grantChange {
		return func(g *v1alpha1.PermissionGrant) {
			g.Labels = map[string]string{}
			if value != "" {
				g.Labels[v1alpha1.LabelScope] = value
			}
		}
	}
	const refused = "403 Forbidden: metadata.labels[stepbeyond.dev/scope]: Forbidden: is written by the server; leave it as it is"
	session := width(v1alpha1.GrantScope{Type: v1alpha1.ScopeSession})
	for _, tt := range []struct {
		name    string
		old     *v1alpha1.PermissionGrant
		change  []grantChange
		between []func(*v1alpha1.PermissionGrant)
		want    string
	}{
		{"with an exact answer", question(), []grantChange{answer(), label("Session")}, nil, refused},
		{"without an answer", question(), []grantChange{label("Session")}, nil, refused},
		{"taken away on the way", question(), []grantChange{session}, []func(*v1alpha1.PermissionGrant){label("")}, refused},
		{"taken away later", question(label("Session")), []grantChange{label("")}, nil, refused},
		{"kept with a revocation", question(label("Session"), answer(by(person("dora@acme.example")))), []grantChange{revocation()}, nil, "allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := tt.old.DeepCopy()
			for _, change := range tt.change {
				change(g)
			}
			if _, got := admit(t, objects, ben, "PermissionGrant", g, tt.old, tt.between...); got != tt.want {
				t.Errorf("answer %s, want %s", got, tt.want)
			}
		})
	}
}

// Proves G-3, G-4, G-7: who may answer may reopen a denial, once, in their own name; nothing but a denial is reopened.
func TestWhoReopensAGrantAndWhich(t *testing.T) {
	ben, dora := person("ben@acme.example", "acme:sre"), person("dora@acme.example")
	objects := objectsFor(t, governedCluster(), verbs{"ben@acme.example approve": true}.access)
	denied := question(answer(by(dora), denies))
	reopening := func(r v1alpha1.Reopening) grantChange {
		return func(g *v1alpha1.PermissionGrant) { g.Spec.Reopening = &r }
	}
	stamped := question(answer(by(dora), denies), reopening(v1alpha1.Reopening{By: "ben@acme.example", Time: &metav1.Time{Time: now}}))
	for _, tt := range []struct {
		name   string
		who    authenticationv1.UserInfo
		old    *v1alpha1.PermissionGrant
		change grantChange
		says   string // empty: taken
	}{
		{"a denial", ben, denied, reopening(v1alpha1.Reopening{Reason: "Found the backup."}), ""},
		{"in another's name", ben, denied, reopening(v1alpha1.Reopening{By: "dora@acme.example"}), "spec.reopening.by: Forbidden"},
		{"at another time", ben, denied, reopening(v1alpha1.Reopening{Time: &metav1.Time{Time: now.Add(-time.Hour)}}), "spec.reopening.time: Forbidden"},
		{"without the verb", dora, denied, reopening(v1alpha1.Reopening{}), "spec.reopening: Forbidden: needs the verb approve"},
		{"a question", ben, question(), reopening(v1alpha1.Reopening{}), "the grant is Pending (AwaitingApproval); only a denied one is reopened"},
		{"an approval", ben, question(onePerson, answer(by(dora))), reopening(v1alpha1.Reopening{}), "the grant is Approved (RequirementsMet); only a denied one is reopened"},
		{"with an answer", ben, denied, func(g *v1alpha1.PermissionGrant) { reopening(v1alpha1.Reopening{})(g); answer()(g) }, "reopen and nothing else"},
		{"again", ben, stamped, reopening(v1alpha1.Reopening{Reason: "again"}), "spec.reopening: Forbidden: is set once"},
		{"taken back", ben, stamped, func(g *v1alpha1.PermissionGrant) { g.Spec.Reopening = nil }, "spec.reopening: Forbidden: is set once"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := tt.old.DeepCopy()
			tt.change(g)
			after, got := admit(t, objects, tt.who, "PermissionGrant", g, tt.old)
			switch {
			case tt.says != "" && !strings.Contains(got, tt.says):
				t.Errorf("answer %s, want %q", got, tt.says)
			case tt.says == "" && got != "allowed":
				t.Error(got)
			case tt.says == "" && (after.Spec.Reopening.By != "ben@acme.example" || after.Spec.Reopening.Time == nil):
				t.Errorf("stamped %+v", after.Spec.Reopening)
			}
		})
	}
}
