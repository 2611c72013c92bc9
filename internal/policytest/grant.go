package policytest

import (
	"fmt"
	"slices"
	"time"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// grant is a grant and what it approves.
type grant struct {
	policy.Grant
	asked *prepared
}

// grantStates lists what a grant can be.
var grantStates = []policy.GrantState{
	policy.GrantPending, policy.GrantApproved, policy.GrantDenied, policy.GrantExpired, policy.GrantRevoked,
	policy.GrantSuperseded, policy.GrantStale, policy.GrantExhausted,
}

// newGrant makes what the engine would see of the grant. Errors name the field.
func (s *Suite) newGrant(g *Grant, using *Case, position int) (*grant, error) {
	asked := using
	if g.Case != "" {
		i := slices.IndexFunc(s.test.Spec.Cases, func(c Case) bool { return c.Name == g.Case })
		if i < 0 {
			return nil, fmt.Errorf("case: there is no case %q", g.Case)
		}
		asked = &s.test.Spec.Cases[i]
	}
	by := s.sessions[using.Session]
	p, err := prepare(s.folder, &asked.Operation, by)
	if err != nil {
		return nil, fmt.Errorf("case: %w", err)
	}
	if err := p.bind(&by.view); err != nil {
		return nil, fmt.Errorf("case: %w", err)
	}
	now := s.test.Spec.Now.Time
	made := &grant{asked: p, Grant: policy.Grant{
		Name: fmt.Sprintf("pg-test-%d", position+1), State: g.State, Digest: p.operation.Digest, Stage: p.operation.Stage,
		Requester: by.view.Username, SessionUID: by.view.UID, Epoch: by.view.Epoch, Expiration: now.Add(time.Hour), Required: 1, UsesLeft: 1,
	}}
	if _, made.PolicyIdentity = s.snapshot.Engine.Identity(by.view.Namespace, p.operation.Target.Namespace); g.Policies == PoliciesChanged {
		made.PolicyIdentity = "v1:older"
	}
	if err := made.override(g, s); err != nil {
		return nil, err
	}
	return made, nil
}

// override changes what the case says otherwise.
func (made *grant) override(g *Grant, s *Suite) error {
	if made.State == "" {
		made.State = policy.GrantApproved
	}
	if !slices.Contains(grantStates, made.State) {
		return fmt.Errorf("state: unknown state %q", made.State)
	}
	if g.Session != "" {
		other, ok := s.sessions[g.Session]
		if !ok {
			return fmt.Errorf("session: there is no session %q", g.Session)
		}
		made.SessionUID = other.view.UID
	}
	if g.Requester != "" {
		made.Requester = g.Requester
	}
	if g.Epoch != 0 {
		made.Epoch = g.Epoch
	}
	if g.Stage != "" {
		made.Stage = g.Stage
	}
	if g.Uses != nil {
		made.UsesLeft = *g.Uses
	}
	if g.ExpirationTime != nil {
		made.Expiration = g.ExpirationTime.Time
	}
	switch made.State {
	case policy.GrantPending, policy.GrantApproved:
	default:
		made.Closed, made.ClosedBy = s.test.Spec.Now.Time, "an approver"
		if g.ClosedTime != nil {
			made.Closed = g.ClosedTime.Time
		}
	}
	if made.State == policy.GrantApproved {
		made.Approvals = made.Required
	}
	return nil
}

// choose finds what the grant protocol would: the newest question about the exact operation, else an approval of another
// change of the same object, which the answer then compares.
func choose(grants []*grant, op *policy.Operation) *grant {
	for _, g := range slices.Backward(grants) {
		if g.Digest == op.Digest {
			return g
		}
	}
	for _, g := range slices.Backward(grants) {
		a, b := g.asked.operation.Target, op.Target
		a.UID, b.UID = "", ""
		if g.State == policy.GrantApproved && g.asked.operation.Verb == op.Verb && a == b {
			return g
		}
	}
	return nil
}

// settle gives an answer its consequence, as the grant protocol would: the question is open, or the use is spent.
func settle(d *policy.Decision, view *policy.SessionView, op *policy.Operation, now time.Time) {
	switch {
	case d.Reason == policy.ReasonGranted:
		spent := *view.Grant
		if spent.UsesLeft--; spent.UsesLeft < 1 {
			spent.State, spent.Closed = policy.GrantExhausted, now
		}
		view.Grant = &spent
	case d.AskNew:
		view.Grant = &policy.Grant{
			Name: "pg-test-new", State: policy.GrantPending, Digest: op.Digest, Stage: op.Stage, Requester: view.Username,
			SessionUID: view.UID, Epoch: view.Epoch, Expiration: now.Add(time.Hour), Required: 1,
		}
	}
}

// completeGrant writes into the decision what the front door knows of its grant.
func completeGrant(d *policy.Decision, g *grant, asked *prepared) {
	if d.Grant == nil {
		d.Grant = &policy.GrantRef{Name: "pg-test-new", Required: 1}
	}
	d.Grant.Namespace = asked.operation.Target.Namespace
	if g != nil && d.Reason == policy.ReasonGrantDigestMismatch {
		d.Grant.Path, d.Grant.Approved, d.Grant.Asked, _ = kube.FirstDifference(g.asked.exact.Lines, asked.exact.Lines)
	}
}
