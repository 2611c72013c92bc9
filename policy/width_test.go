package policy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/policy"
)

// reasonsOf is what a question shows of the reasons and requirements of an answer.
func reasonsOf(d *policy.Decision, asked *policy.Asked) {
	for i := range d.Details {
		if detail := &d.Details[i]; detail.Fact != "" {
			asked.Facts = append(asked.Facts, policy.AskedFact{Fact: detail.Fact, Value: detail.Presence.String(), Why: detail.Why})
		}
		if name := d.Details[i].ReasonName(); name != "" {
			asked.Rules = append(asked.Rules, name)
		}
	}
	asked.Requirements = d.Approvals.Requirements
}

// wide is an approval of what was asked about op, and of everything that the width adds to it.
func wide(engine *policy.Engine, op policy.Operation, by policy.SessionView, width policy.Width) policy.Grant {
	d := engine.Decide(op, by, now)
	_, identity := engine.Identity(by.Namespace, op.Target.Namespace)
	target := &op.Target
	width.Asked.SessionUID, width.Asked.Epoch, width.Asked.Requester, width.Asked.Stage = by.UID, by.Epoch, by.Username, op.Stage
	width.Asked.Verb, width.Asked.Group, width.Asked.Resource, width.Asked.Subresource = op.Verb, target.Group, target.Resource, target.Subresource
	width.Asked.Namespace, width.Asked.Name = target.Namespace, target.Name
	reasonsOf(&d, &width.Asked)
	return policy.Grant{
		Name: "pg-wide", State: policy.GrantApproved, Digest: "v1:wide", Stage: op.Stage, Requester: by.Username, SessionUID: by.UID, Epoch: by.Epoch,
		PolicyIdentity: identity, Expiration: now.Add(time.Hour), UsesLeft: 2, Required: 1, Width: &width,
	}
}

// Proves G-1, G-2: a wider approval covers another operation only when everything that binds it is the same, and when
// nothing asks for a person that the approvers did not see.
func TestAWiderApprovalCoversOnlyWhatWasShown(t *testing.T) {
	type attempt struct {
		op      policy.Operation
		session policy.SessionView
		wide    policy.Wide
	}
	sameObject, manyObjects := policy.Width{}, policy.Width{Name: "web-*"}
	command := func(own ...string) policy.Width { return policy.Width{Asked: policy.Asked{Command: own}} }
	for name, test := range map[string]struct {
		width  policy.Width
		change func(*attempt)
		covers bool
	}{
		"another change of the object":         {sameObject, func(*attempt) {}, true},
		"an object that the pattern matches":   {manyObjects, func(a *attempt) { a.op.Target.Name = "web-1" }, true},
		"another object":                       {sameObject, func(a *attempt) { a.op.Target.Name = "api" }, false},
		"an object beside the pattern":         {manyObjects, func(a *attempt) { a.op.Target.Name = "web" }, false},
		"what names no object":                 {manyObjects, func(a *attempt) { a.op.Target.Name = "" }, false},
		"what names no object, asked the same": {sameObject, func(a *attempt) { a.op.Target.Name, a.wide.Grants[0].Width.Asked.Name = "", "" }, false},
		"another verb":                         {sameObject, func(a *attempt) { a.op.Verb = policy.VerbDelete }, false},
		"another group":                        {sameObject, func(a *attempt) { a.op.Target.Group = "apps" }, false},
		"another resource":                     {sameObject, func(a *attempt) { a.op.Target.Resource = "widgets" }, false},
		"a subresource":                        {sameObject, func(a *attempt) { a.op.Target.Subresource = "status" }, false},
		"another namespace":                    {sameObject, func(a *attempt) { a.wide.Grants[0].Width.Asked.Namespace = "payments" }, false},
		"another stage":                        {sameObject, func(a *attempt) { a.op.Stage = policy.StagePublish }, false},
		"another manner":                       {sameObject, func(a *attempt) { a.wide.Manner = "v1:orphan" }, false},
		"the same manner":                      {policy.Width{Asked: policy.Asked{Manner: "v1:orphan"}}, func(a *attempt) { a.wide.Manner = "v1:orphan" }, true},
		"the same command":                     {command("ss", "-l"), func(a *attempt) { a.wide.Command = []string{"ss", "-l"} }, true},
		"another command":                      {command("ss"), func(a *attempt) { a.wide.Command = []string{"sh"} }, false},
		"a command where none was":             {sameObject, func(a *attempt) { a.wide.Command = []string{"sh"} }, false},
		"no command where one was":             {command("ss"), func(*attempt) {}, false},
		"a command of a pattern": {policy.Width{Asked: policy.Asked{Command: []string{"ss"}}, Commands: []string{"ip a", "ss *"}},
			func(a *attempt) { a.wide.Command = []string{"ss", "-lntp"} }, true},
		"another session":   {sameObject, func(a *attempt) { a.session.UID = "uid-child" }, false},
		"another requester": {sameObject, func(a *attempt) { a.session.Username = "system:serviceaccount:checkout:other" }, false},
		"a newer epoch":     {sameObject, func(a *attempt) { a.session.Epoch = 2 }, false},
		"an older epoch":    {sameObject, func(a *attempt) { a.session.Epoch = 0 }, false},
		"a reason that was not shown": {sameObject, func(a *attempt) {
			a.op.Facts.Add(policy.Security, policy.FactValue{Presence: policy.Present, Provenance: policy.Parsed})
		}, false},
		"the same reason for another cause": {sameObject, func(a *attempt) {
			a.op.Facts.Add(policy.Destructive, policy.FactValue{Presence: policy.Present, Provenance: policy.Authoritative, Why: "another"})
		}, false},
		"a rule that was not shown":        {sameObject, func(a *attempt) { a.wide.Grants[0].Width.Asked.Rules = nil }, false},
		"a requirement that was not shown": {sameObject, func(a *attempt) { a.wide.Grants[0].Width.Asked.Requirements = nil }, false},
		"fewer approvers than are needed": {sameObject, func(a *attempt) {
			a.wide.Grants[0].Width.Asked.Requirements = []policy.Requirement{{Name: "baseline/one-person"}}
		}, false},
		"fewer reasons than were shown": {sameObject, func(a *attempt) {
			w := a.wide.Grants[0].Width
			w.Asked.Rules = append(w.Asked.Rules, "default/another")
		}, true},
		"no use left":         {sameObject, func(a *attempt) { a.wide.Grants[0].UsesLeft = 0 }, false},
		"the end of its time": {sameObject, func(a *attempt) { a.wide.Grants[0].Expiration = now }, false},
		"other policies":      {sameObject, func(a *attempt) { a.wide.Grants[0].PolicyIdentity = "v1:other" }, false},
		"a revoked approval":  {sameObject, func(a *attempt) { a.wide.Grants[0].State = policy.GrantRevoked }, false},
		"a question":          {sameObject, func(a *attempt) { a.wide.Grants[0].State = policy.GrantPending }, false},
		"an exact approval":   {sameObject, func(a *attempt) { a.wide.Grants[0].Width = nil }, false},
		"a second that covers it": {sameObject, func(a *attempt) {
			a.wide.Grants = append([]policy.Grant{{Name: "pg-other", State: policy.GrantApproved}}, a.wide.Grants...)
		}, true},
		"a question about it that waits": {sameObject, func(a *attempt) {
			a.session.Grant = &policy.Grant{
				Name: "pg-1", State: policy.GrantPending, Digest: a.op.Digest, Stage: a.op.Stage, Requester: a.session.Username,
				SessionUID: a.session.UID, Epoch: a.session.Epoch, Expiration: now.Add(time.Hour),
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			rule := policy.Rule{Name: "ask", Class: policy.ClassAsk, Enforcement: policy.EnforcementEnforce, Match: everything()}
			f := harmless()
			f.Add(policy.Destructive, policy.FactValue{Presence: policy.Present, Provenance: policy.Parsed, Why: "cause"})
			engine, op := compile(t, under(policy.Policy{Rules: []policy.Rule{rule}})), update(f)
			grant := wide(engine, op, session(), test.width)
			if test.width.Name != "" {
				grant.Width.Asked.Name = "web-0"
			}
			a := attempt{op: op, session: session(), wide: policy.Wide{Grants: []policy.Grant{grant}}}
			test.change(&a)
			a.session.Wide = &a.wide
			d := engine.Decide(a.op, a.session, now)
			if got := d.Reason == policy.ReasonGranted; got != test.covers {
				t.Fatalf("answer %s %s, want it covered: %v", d.Verdict, d.Reason, test.covers)
			}
			if test.covers && (d.Verdict != policy.VerdictAllow || d.AskNew || d.Grant == nil || d.Grant.Name != "pg-wide") {
				t.Errorf("answer %s about %+v, want Allow by pg-wide and no question", d.Verdict, d.Grant)
			}
			if !test.covers && d.Verdict == policy.VerdictAllow {
				t.Errorf("answer %s %s, want a refusal", d.Verdict, d.Reason)
			}
		})
	}
}

// Proves G-4, G-7: who denied the exact operation saw precisely this, so no wider approval opens it while the denial rests.
// When a person reopens it, it is asked anew at once.
func TestADenialOutweighsAWiderApprovalUntilItIsReopened(t *testing.T) {
	engine, op := asked(t)
	by, exact := session(), approved(engine, &op)
	exact.State, exact.Closed = policy.GrantDenied, now
	by.Grant = &exact
	by.Wide = &policy.Wide{Grants: []policy.Grant{wide(engine, op, session(), policy.Width{})}}
	if d := engine.Decide(op, by, now); d.Verdict != policy.VerdictDeny || d.Reason != policy.ReasonGrantDenied {
		t.Errorf("denied: answer %s %s, want Deny GrantDenied", d.Verdict, d.Reason)
	}
	exact.Reopened = true
	if d := engine.Decide(op, by, now); d.Reason != policy.ReasonGranted {
		t.Errorf("reopened: answer %s %s, want the wider approval", d.Verdict, d.Reason)
	}
	by.Wide = nil
	want := answer{policy.VerdictPending, policy.ReasonPermissionPending, true}
	d := engine.Decide(op, by, now)
	if diff := cmp.Diff(want, answer{d.Verdict, d.Reason, d.AskNew}); diff != "" {
		t.Errorf("reopened, without a wider approval (-want +got):\n%s", diff)
	}
}

// A question that a wider approval took the place of is asked anew when that one is spent, as though it never had been.
func TestAQuestionThatWasCoveredIsAskedAnewWithoutBlame(t *testing.T) {
	engine, op := asked(t)
	by, exact := session(), approved(engine, &op)
	exact.State, exact.CoveredBy = policy.GrantSuperseded, "pg-wide"
	by.Grant = &exact
	want := answer{policy.VerdictPending, policy.ReasonPermissionPending, true}
	d := engine.Decide(op, by, now)
	if diff := cmp.Diff(want, answer{d.Verdict, d.Reason, d.AskNew}); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

// Proves C-6, G-2: whatever the operation, the session and the width, a wider approval of one operation opens nothing that
// is FORBIDDEN, changes no class, opens only what a person would have been asked about, and only the same verb, kind,
// namespace, stage and session for no further reason.
func TestAWiderApprovalOpensNothingThatItsQuestionDidNotShow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := drawQuestion(t)
		first.session.Grant = nil
		second := first
		second.op = drawOperation(t)
		if rapid.Bool().Draw(t, "much alike") {
			second.op = first.op
			second.op.Target.Name = rapid.SampledFrom(names).Draw(t, "another name")
			second.op.Digest = "v1:second"
		}
		if rapid.IntRange(0, 3).Draw(t, "another session") == 0 {
			second.session = drawSession(t)
			second.session.Grant = nil
			second.session.UID = rapid.SampledFrom([]string{"uid-agent", "uid-child"}).Draw(t, "uid")
			second.session.Epoch = rapid.Int64Range(1, 2).Draw(t, "epoch")
		}
		width := policy.Width{Name: rapid.SampledFrom([]string{"", "", "web*", "w*", "*", "prod"}).Draw(t, "pattern")}
		grant := wide(first.engine, first.op, first.session, width)
		without, shown := second.decide(), first.decide()
		second.session.Wide = &policy.Wide{Grants: []policy.Grant{grant}}
		with := second.decide()
		if with.Class != without.Class {
			t.Fatalf("it changes the class from %s to %s", without.Class, with.Class)
		}
		if with.Verdict != policy.VerdictAllow || without.Verdict == policy.VerdictAllow {
			return
		}
		a, b := &first.op, &second.op
		switch {
		case with.Class != policy.ClassAsk, !without.AskNew:
			t.Fatalf("it opens %s, answered %s %s without it", with.Class, without.Verdict, without.Reason)
		case shown.Class < policy.ClassAsk:
			t.Fatalf("nobody would have been asked about the first: %s", shown.Class)
		case first.session.UID != second.session.UID, first.session.Epoch != second.session.Epoch, a.Stage != b.Stage, a.Verb != b.Verb,
			a.Target.Group != b.Target.Group, a.Target.Resource != b.Target.Resource, a.Target.Subresource != b.Target.Subresource,
			a.Target.Namespace != b.Target.Namespace, b.Target.Name == "", width.Name == "" && a.Target.Name != b.Target.Name:
			t.Fatalf("it opens %+v for session %s, asked about %+v", b.Target, second.session.UID, a.Target)
		}
		for _, detail := range with.Details {
			known := false
			for _, other := range shown.Details {
				known = known || other.Rule == detail.Rule && other.Code == detail.Code && other.Presence == detail.Presence
			}
			if detail.Class >= policy.ClassAsk && !known {
				t.Fatalf("the question did not show %+v", detail)
			}
		}
	})
}

func TestPatternsOfNamesAndCommands(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"web-*", "web-1", true}, {"web-*", "web-", true}, {"web-*", "web", false}, {"web-*", "xweb-1", false}, {"web", "web", true},
		{"web", "web-1", false}, {"w*b", "wb", true}, {"w*b", "w", false}, {"we*eb", "web", false}, {"a*b*c", "a-b-c", true},
		{"a*b*c", "a-c-b-c", true}, {"a*b*c", "acc", false}, {"a**", "a", true}, {"*", "web", false}, {"*b", "web", false},
		{"", "", false}, {"", "web", false}, {"wеb-*", "web-1", false}, {"w.b", "wxb", false},
	} {
		if got := policy.MatchName(test.pattern, test.name); got != test.want {
			t.Errorf("name %q with %q: %v", test.name, test.pattern, got)
		}
	}
	for _, test := range []struct {
		pattern string
		command []string
		want    bool
	}{
		{"ss", []string{"ss"}, true},
		{"ss", []string{"ss", "-l"}, false},
		{"ss *", []string{"ss", "-l"}, true},
		{"ss *", []string{"ss"}, false},
		{"ss *", []string{"ss", "-l", "-n"}, false},
		{"cat /etc/nginx/*", []string{"cat", "/etc/nginx/nginx.conf"}, true},
		{"cat /etc/nginx/*", []string{"cat", "/etc/nginx/a", "/etc/shadow"}, false},
		{"cat /etc/nginx/*", []string{"cat", "/etc/nginx/../shadow"}, false},
		{"cat /etc/nginx/.*", []string{"cat", "/etc/nginx/../shadow"}, false},
		{"cat /etc/nginx/*", []string{"cat", "/etc/nginx/a /etc/shadow"}, false},
		{"cat ../a", []string{"cat", "../a"}, true},
		{"* a", []string{"rm", "a"}, false},
		{"*", []string{"sh"}, false},
		{"", nil, false},
		{"", []string{""}, false},
		{"a  b", []string{"a", "", "b"}, false},
	} {
		if got := policy.MatchCommand(test.pattern, test.command); got != test.want {
			t.Errorf("command %q with %q: %v", test.command, test.pattern, got)
		}
	}
}
