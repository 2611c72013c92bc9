package policy_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/policy"
)

func held(s policy.SessionView) policy.SessionView {
	s.Hold = &policy.Hold{Namespace: "checkout", Name: "plan-1852", Author: "ben@acme.example", Since: time.Date(2026, 11, 30, 18, 52, 9, 0, time.UTC)}
	return s
}

// Proves, S-2.
func TestWhatAPersonChangedMeanwhile(t *testing.T) {
	engine := compile(t, under(policy.Policy{}))
	for name, test := range map[string]struct {
		change      func(*policy.Operation, *policy.SessionView)
		wantVerdict policy.Verdict
		wantReason  policy.Reason
		wantText    string
	}{
		"an old-plan write is held with the input's name": {
			change:      func(_ *policy.Operation, s *policy.SessionView) { *s = held(*s) },
			wantVerdict: policy.VerdictHeld, wantReason: policy.ReasonSteeringHold, wantText: "he plan was changed by ben@acme.example at 2026-11-30T18:52:09Z (steeringinput/plan-1852); the command is fine",
		},
		"a dry run goes on under a hold": {
			change:      func(op *policy.Operation, s *policy.SessionView) { *s, op.DryRun = held(*s), true },
			wantVerdict: policy.VerdictAllow, wantReason: policy.ReasonAllowed,
		},
		"a read goes on under a hold": {
			change:      func(op *policy.Operation, s *policy.SessionView) { *s, op.Verb = held(*s), policy.VerbRead },
			wantVerdict: policy.VerdictAllow, wantReason: policy.ReasonAllowed,
		},
		"a lease renewal goes on under a hold": {
			change:      func(op *policy.Operation, s *policy.SessionView) { *s, op.Spared = held(*s), true },
			wantVerdict: policy.VerdictAllow, wantReason: policy.ReasonAllowed,
		},
		"a constraint stays when nothing is held, and names its path": {
			change: func(_ *policy.Operation, s *policy.SessionView) {
				s.Constraint = &policy.Constraint{Namespace: "checkout", Name: "plan-1852", Path: "constraints.forbid[0]"}
			},
			wantVerdict: policy.VerdictDeny, wantReason: policy.ReasonSteeringConstraint, wantText: "steeringinput/plan-1852 takes it away (constraints.forbid[0])",
		},
		"an optional action is left out under strict scope": {
			change:      func(op *policy.Operation, s *policy.SessionView) { s.StrictScope, op.Optional = true, true },
			wantVerdict: policy.VerdictDeny, wantReason: policy.ReasonStrictScope, wantText: "the user limited the work",
		},
		"work that the result needs goes on under strict scope": {
			change:      func(_ *policy.Operation, s *policy.SessionView) { s.StrictScope = true },
			wantVerdict: policy.VerdictAllow, wantReason: policy.ReasonAllowed,
		},
		"an optional action goes on without strict scope": {
			change:      func(op *policy.Operation, _ *policy.SessionView) { op.Optional = true },
			wantVerdict: policy.VerdictAllow, wantReason: policy.ReasonAllowed,
		},
		"a forbidden operation is forbidden, not held": {
			change: func(op *policy.Operation, s *policy.SessionView) {
				*s = held(*s)
				op.Facts.Add(policy.EscalatesAuthority, policy.FactValue{Presence: policy.Present, Provenance: policy.Parsed})
			},
			wantVerdict: policy.VerdictDeny, wantReason: policy.ReasonForbidden,
		},
	} {
		t.Run(name, func(t *testing.T) {
			op, s := update(harmless()), session()
			test.change(&op, &s)
			d := engine.Decide(op, s, now)
			if d.Verdict != test.wantVerdict || d.Reason != test.wantReason {
				t.Fatalf("%s %s, want %s %s", d.Verdict, d.Reason, test.wantVerdict, test.wantReason)
			}
			if text := d.Message(&op, "d-1"); !strings.Contains(text, test.wantText) {
				t.Errorf("message %q does not say %q", text, test.wantText)
			}
		})
	}
}

// drawSteered is a question without any steering, and the same with some.
func drawSteered(t *rapid.T) (without, with question) {
	without = drawQuestion(t)
	without.op.Optional, without.op.Spared = false, false
	without.session.Hold, without.session.Constraint, without.session.StrictScope = nil, nil, false
	with = without
	steer(t, &with.session)
	with.op.Optional, with.op.Spared = rapid.Bool().Draw(t, "optional"), rapid.IntRange(0, 3).Draw(t, "spared") == 0
	return without, with
}

// Proves C-3, R-5: a hold, a constraint, strict scope and being optional change what happens, never the class.
func TestNoSteeringChangesAClass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		without, with := drawSteered(t)
		want, d := without.decide().Class, with.decide()
		if d.Class != want {
			t.Errorf("class %s, without steering %s", d.Class, want)
		}
		if d.Verdict == policy.VerdictAllow && (with.session.Constraint != nil || with.session.StrictScope && with.op.Optional) {
			t.Errorf("allowed (%s) against a constraint or the user's limit", d.Reason)
		}
	})
}
