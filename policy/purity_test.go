package policy_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/policy"
)

// written is everything that the value holds.
func written(t *rapid.T, value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Proves C-1: the same inputs have the same decision, whatever was asked before or is asked at the same time, of this
// engine or of another that was compiled from the same policies; and to decide changes none of the inputs.
func TestTheSameInputsHaveTheSameDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, _, _ := drawGranted(t)
		set, op, view := written(t, q.set), written(t, q.op), written(t, q.session)
		want := q.decide()

		other := q
		other.op, other.session = drawOperation(t), drawSession(t)
		elsewhere := other.decide()
		got := make([]policy.Decision, 4)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() {
				if i%2 == 0 {
					other.decide()
				}
				got[i] = q.decide()
			})
		}
		all.Wait()
		anew := q
		anew.engine = compile(t, q.set)
		for _, again := range append(got, q.decide(), anew.decide()) {
			if diff := cmp.Diff(want, again); diff != "" {
				t.Fatalf("the same question has another answer (-first +again):\n%s", diff)
			}
		}
		if diff := cmp.Diff(elsewhere, other.decide()); diff != "" {
			t.Fatalf("the other question has another answer (-first +again):\n%s", diff)
		}
		for _, input := range []struct{ before, after string }{{set, written(t, q.set)}, {op, written(t, q.op)}, {view, written(t, q.session)}} {
			if diff := cmp.Diff(input.before, input.after); diff != "" {
				t.Fatalf("deciding changed an input (-before +after):\n%s", diff)
			}
		}
	})
}

// relaxation is a question with a grant that fits, and the same under policies that were tightened after the approval and
// then made to say again what they had said.
type relaxation struct {
	approved, relaxed question
	// counts tells that one of the policies that were changed counts for the question.
	counts bool
}

func drawRelaxation(t *rapid.T) relaxation {
	q := drawQuestion(t)
	q.set = edited(q.set, "first", func(p *policy.Policy) {
		p.Rules = append(p.Rules, policy.Rule{
			Name: "ask", Class: policy.ClassAsk, Enforcement: policy.EnforcementEnforce,
			Match: policy.Match{Kubernetes: []policy.KubernetesSelector{{}}, Tools: []string{"*"}},
		})
	})
	if rapid.IntRange(0, 2).Draw(t, "nothing but the grant matters") == 0 {
		q.op.Facts, q.session = harmless(), session()
		q.op.Capability, q.op.Optional = policy.CapabilityExecuteLocal, false
	}
	if q.op.Digest == "" {
		q.op.Digest = "v1:digest"
	}
	q.engine = compile(t, q.set)
	q.session.Grant = &policy.Grant{
		Name: "pg-1", State: policy.GrantApproved, Digest: q.op.Digest, Stage: q.op.Stage, Requester: q.session.Username,
		SessionUID: q.session.UID, Epoch: q.session.Epoch, PolicyIdentity: q.identity(), Expiration: now.Add(1), UsesLeft: 1, Required: 1,
	}
	r := relaxation{approved: q, relaxed: q}
	before, _ := q.engine.Identity(q.session.Namespace, q.op.Target.Namespace)
	for range rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "changes") {
		name, added := rapid.SampledFrom(editable).Draw(t, "where"), drawRule(t, "added")
		r.relaxed.set = edited(r.relaxed.set, name, func(p *policy.Policy) {
			p.ID.Generation++
			p.Rules = append(p.Rules, added)
		})
		anew := rapid.IntRange(0, 3).Draw(t, "made anew") == 0
		r.relaxed.set = edited(r.relaxed.set, name, func(p *policy.Policy) {
			for _, id := range before {
				r.counts = r.counts || id.Kind == p.ID.Kind && id.Namespace == p.ID.Namespace && id.Name == p.ID.Name
			}
			p.ID.Generation++
			if anew { // an object that is deleted and created starts over with another UID
				p.ID.Generation, p.ID.UID = 1, p.ID.UID+"+"
			}
			p.Rules = p.Rules[:len(p.Rules)-1]
		})
	}
	r.relaxed.engine = compile(t, r.relaxed.set)
	return r
}

// Proves G-8: a policy that is tightened and relaxed again says what it said, and still no grant from before is used
// under it. A policy that does not count for the question ends nothing.
func TestTighteningAndRelaxingRevivesNoGrant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRelaxation(t)
		before, after := r.approved.decide(), r.relaxed.decide()
		if diff := cmp.Diff(before.Details, after.Details); diff != "" || before.Class != after.Class {
			t.Fatalf("the policies do not say again what they said (-before +after):\n%s", diff)
		}
		want := before.Reason
		if before.Reason == policy.ReasonGranted && r.counts {
			want = policy.ReasonGrantStale
		}
		if after.Reason != want {
			t.Fatalf("answer %s %s, want %s; before the change %s", after.Verdict, after.Reason, want, before.Reason)
		}
	})
}
