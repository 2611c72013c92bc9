package policy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
)

// asked is an operation that needs a grant, and the engine that says so; a denied question stays denied for an hour.
func asked(t *testing.T) (*policy.Engine, policy.Operation) {
	t.Helper()
	f := harmless()
	f.Add(policy.Destructive, policy.FactValue{Presence: policy.Present, Provenance: policy.Parsed})
	return compile(t, under(policy.Policy{Approvals: policy.Approvals{AskAgainAfterSeconds: 3600}})), update(f)
}

// approved fits the operation of asked in every respect.
func approved(engine *policy.Engine, op *policy.Operation) policy.Grant {
	by := session()
	_, identity := engine.Identity(by.Namespace, op.Target.Namespace)
	return policy.Grant{
		Name: "pg-1", State: policy.GrantApproved, Digest: op.Digest, Stage: op.Stage, Requester: by.Username,
		SessionUID: by.UID, Epoch: by.Epoch, PolicyIdentity: identity, Expiration: now.Add(time.Hour), UsesLeft: 1,
	}
}

// answer is what a test compares of a decision about a grant.
type answer struct {
	Verdict policy.Verdict
	Reason  policy.Reason
	AskNew  bool
}

// Proves G-1, G-2: a grant is used only when everything that binds it is as it was when it was asked for and approved;
// whatever else is answered with a new question.
func TestAGrantIsUsedOnlyForWhatItWasGivenFor(t *testing.T) {
	granted := answer{policy.VerdictAllow, policy.ReasonGranted, false}
	anew := func(reason policy.Reason) answer { return answer{policy.VerdictPending, reason, true} }
	for name, test := range map[string]struct {
		change func(*policy.Grant)
		want   answer
	}{
		"a grant that fits is used":                         {func(*policy.Grant) {}, granted},
		"a grant for another change is not":                 {func(g *policy.Grant) { g.Digest = "v1:other" }, anew(policy.ReasonGrantDigestMismatch)},
		"a grant that is bound to no change is not":         {func(g *policy.Grant) { g.Digest = "" }, anew(policy.ReasonGrantDigestMismatch)},
		"a grant of another session is not":                 {func(g *policy.Grant) { g.SessionUID = "uid-other" }, anew(policy.ReasonGrantWrongSession)},
		"a grant of another requester is not":               {func(g *policy.Grant) { g.Requester = "ana" }, anew(policy.ReasonGrantWrongSession)},
		"a grant of an older epoch is not":                  {func(g *policy.Grant) { g.Epoch = 0 }, anew(policy.ReasonGrantSuperseded)},
		"a grant of a newer epoch is not":                   {func(g *policy.Grant) { g.Epoch = 2 }, anew(policy.ReasonGrantSuperseded)},
		"a grant for another stage is not":                  {func(g *policy.Grant) { g.Stage = policy.StagePublish }, anew(policy.ReasonGrantWrongStage)},
		"a grant without uses is not":                       {func(g *policy.Grant) { g.UsesLeft = 0 }, anew(policy.ReasonGrantUsed)},
		"a grant is not used after its end":                 {func(g *policy.Grant) { g.Expiration = now.Add(-time.Second) }, anew(policy.ReasonGrantExpired)},
		"a grant is not used at the moment of its end":      {func(g *policy.Grant) { g.Expiration = now }, anew(policy.ReasonGrantExpired)},
		"a grant without an end is not used":                {func(g *policy.Grant) { g.Expiration = time.Time{} }, anew(policy.ReasonGrantExpired)},
		"a grant that was approved under other rules":       {func(g *policy.Grant) { g.PolicyIdentity = "v1:other" }, anew(policy.ReasonGrantStale)},
		"a grant that was never approved under any rules":   {func(g *policy.Grant) { g.PolicyIdentity = "" }, anew(policy.ReasonGrantStale)},
		"a spent grant":                                     {func(g *policy.Grant) { g.State = policy.GrantExhausted }, anew(policy.ReasonGrantUsed)},
		"a revoked grant":                                   {func(g *policy.Grant) { g.State = policy.GrantRevoked }, anew(policy.ReasonGrantRevoked)},
		"a superseded grant":                                {func(g *policy.Grant) { g.State = policy.GrantSuperseded }, anew(policy.ReasonGrantSuperseded)},
		"a stale grant":                                     {func(g *policy.Grant) { g.State = policy.GrantStale }, anew(policy.ReasonGrantStale)},
		"an expired grant":                                  {func(g *policy.Grant) { g.State = policy.GrantExpired }, anew(policy.ReasonGrantExpired)},
		"a grant whose state nobody knows":                  {func(g *policy.Grant) { g.State = "Blessed" }, anew(policy.ReasonGrantExpired)},
		"a question that waits is not asked twice":          {func(g *policy.Grant) { g.State = policy.GrantPending }, answer{policy.VerdictPending, policy.ReasonPermissionPending, false}},
		"a question that waited too long is asked anew":     {func(g *policy.Grant) { g.State, g.Expiration = policy.GrantPending, now }, anew(policy.ReasonGrantExpired)},
		"a denied question stays denied":                    {func(g *policy.Grant) { g.State, g.Closed = policy.GrantDenied, now.Add(-time.Hour+time.Second) }, answer{policy.VerdictDeny, policy.ReasonGrantDenied, false}},
		"a denied question is asked again when its time is": {func(g *policy.Grant) { g.State, g.Closed = policy.GrantDenied, now.Add(-time.Hour) }, anew(policy.ReasonPermissionPending)},
	} {
		t.Run(name, func(t *testing.T) {
			engine, op := asked(t)
			by := session()
			grant := approved(engine, &op)
			test.change(&grant)
			by.Grant = &grant
			d := engine.Decide(op, by, now)
			if diff := cmp.Diff(test.want, answer{d.Verdict, d.Reason, d.AskNew}); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if d.Class != policy.ClassAsk {
				t.Errorf("class %s, want ASK whatever the grant", d.Class)
			}
		})
	}
}

// Proves G-2: an operation without a digest is bound by no grant, also not by one without a digest.
func TestAnOperationWithoutADigestHasNoGrant(t *testing.T) {
	engine, op := asked(t)
	op.Digest = ""
	by, grant := session(), approved(engine, &op)
	by.Grant = &grant
	if d := engine.Decide(op, by, now); d.Reason != policy.ReasonGrantDigestMismatch || !d.AskNew {
		t.Errorf("answer %s, want GrantDigestMismatch and a new question", d.Reason)
	}
}

// Proves C-6: no grant opens what is FORBIDDEN.
func TestAGrantOpensNothingThatIsForbidden(t *testing.T) {
	engine, op := asked(t)
	by, grant := session(), approved(engine, &op)
	by.Grant = &grant
	op.Facts.Add(policy.EscalatesAuthority, policy.FactValue{Presence: policy.Present, Provenance: policy.Parsed})
	if d := engine.Decide(op, by, now); d.Verdict != policy.VerdictDeny || d.Reason != policy.ReasonForbidden || d.Grant != nil {
		t.Errorf("answer %s %s about grant %v, want Deny Forbidden about none", d.Verdict, d.Reason, d.Grant)
	}
}

// A denial tells when the question may be asked again.
func TestADenialSaysWhenToAskAgain(t *testing.T) {
	engine, op := asked(t)
	by, grant := session(), approved(engine, &op)
	grant.State, grant.Closed = policy.GrantDenied, now
	by.Grant = &grant
	if d := engine.Decide(op, by, now); d.Grant == nil || !d.Grant.AskAgain.Equal(now.Add(time.Hour)) {
		t.Errorf("grant %+v, want it to be asked again an hour later", d.Grant)
	}
}
