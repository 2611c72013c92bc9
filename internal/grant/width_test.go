package grant

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

func scoped(scope v1alpha1.GrantScope) func(*v1alpha1.GrantDecision) {
	return func(d *v1alpha1.GrantDecision) { d.Scope = scope }
}

func timeBox(seconds, uses int32, name string, commands ...string) v1alpha1.GrantScope {
	scope := v1alpha1.GrantScope{Type: v1alpha1.ScopeTimeBoxed, DurationSeconds: seconds, Uses: uses}
	if name != "" || len(commands) > 0 {
		scope.Match = &v1alpha1.ScopeMatch{Name: name, Commands: commands}
	}
	return scope
}

// Proves G-9: of several approvers' widths what all of them gave counts, in each respect.
func TestTheNarrowestThatAllApproversShareCounts(t *testing.T) {
	exact, session := v1alpha1.GrantScope{Type: v1alpha1.ScopeExact}, v1alpha1.GrantScope{Type: v1alpha1.ScopeSession, Uses: 4}
	const useWithin = 4 * time.Hour
	for _, tt := range []struct {
		name   string
		first  v1alpha1.GrantScope
		second v1alpha1.GrantScope
		want   width
	}{
		{"exact", exact, exact, width{uses: 1, within: useWithin}},
		{"exact and a time box", exact, timeBox(60, 5, "data-*"), width{uses: 1, within: useWithin}},
		{"the session", session, session, width{wide: true, uses: 4, within: useWithin}},
		{"the session and a time box", session, timeBox(60, 5, "data-*"), width{wide: true, uses: 4, within: time.Minute}},
		{"a longer and a shorter", timeBox(120, 5, "data-*"), timeBox(60, 9, "data-*"), width{wide: true, uses: 5, within: time.Minute, name: "data-*"}},
		{"other names", timeBox(60, 5, "data-*"), timeBox(60, 5, "data-postgres-*"), width{wide: true, uses: 5, within: time.Minute}},
		{"the same commands in another order", timeBox(60, 5, "", "a", "b"), timeBox(60, 5, "", "b", "a"), width{wide: true, uses: 5, within: time.Minute, commands: []string{"a", "b"}}},
		{"other commands", timeBox(60, 5, "", "a", "b"), timeBox(60, 5, "", "a"), width{wide: true, uses: 5, within: time.Minute}},
		{"a scope that nobody knows", v1alpha1.GrantScope{Type: "Everything", Uses: 50}, session, width{uses: 1, within: useWithin}},
		{"uses that nobody wrote", timeBox(60, 0, ""), timeBox(60, 9, ""), width{wide: true, uses: 1, within: time.Minute}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			two := requirements(v1alpha1.GrantRequirement{Name: "standard/two", Required: 2})
			for _, g := range []*v1alpha1.PermissionGrant{
				grantWith(two, approved("ben", scoped(tt.first)), approved("dora", scoped(tt.second))),
				grantWith(two, approved("ben", scoped(tt.second)), approved("dora", scoped(tt.first))),
			} {
				s := standingOf(g, answered)
				if diff := cmp.Diff(tt.want, s.width, cmp.AllowUnexported(width{})); diff != "" {
					t.Errorf("width (-want +got):\n%s", diff)
				}
				if s.left != tt.want.uses || !s.deadline.Equal(answered.Add(tt.want.within)) {
					t.Errorf("%d uses until %s", s.left, s.deadline)
				}
			}
		})
	}
	t.Run("a question that names no object", func(t *testing.T) {
		g := grantWith(approved("ben", scoped(timeBox(60, 5, "data-*"))))
		g.Spec.Request.Operation.Target.Name = ""
		if s := standingOf(g, answered); s.width.wide || s.left != 1 {
			t.Errorf("width %+v, want the exact one", s.width)
		}
	})
}

// Proves G-5: whatever becomes of its uses, a grant has at most as many that had or may have had an effect as were given.
func TestAWideGrantHasNoMoreEffectsThanUses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.Int32Range(1, 6).Draw(t, "uses")
		g := grantWith(approved("ben", scoped(timeBox(3600, given, "data-*"))))
		outcomes := []v1alpha1.UseOutcome{v1alpha1.UseReserved, v1alpha1.UseConsumed, v1alpha1.UseReleased, v1alpha1.UseUnknown}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			if n := len(g.Status.Uses); n > 0 && rapid.Bool().Draw(t, "settle") {
				if use := &g.Status.Uses[rapid.IntRange(0, n-1).Draw(t, "which")]; use.Outcome == v1alpha1.UseReserved {
					use.Outcome = rapid.SampledFrom(outcomes).Draw(t, "outcome")
				}
				continue
			}
			if view := ToEngine(g, answered); view.State == policy.GrantApproved && view.UsesLeft > 0 {
				g.Status.Uses = withoutOldest(g.Status.Uses)
				used(v1alpha1.UseReserved)(g)
			}
		}
		begun, released := int32(0), 0
		for i := range g.Status.Uses {
			if g.Status.Uses[i].Outcome == v1alpha1.UseReleased {
				released++
			} else {
				begun++
			}
		}
		if status := Compute(g, answered); begun > given || *status.UsesLeft != given-begun {
			t.Fatalf("%d uses of %d begun, %d left", begun, given, *status.UsesLeft)
		}
		if released > maxReleased {
			t.Fatalf("%d released uses are kept", released)
		}
	})
}

// Proves G-5: several uses of one grant can be reserved; each operation finds its own.
func TestAnOperationFindsItsOwnUse(t *testing.T) {
	g := grantWith(approved("ben", scoped(timeBox(3600, 5, "data-*"))), used(v1alpha1.UseReserved), used(v1alpha1.UseConsumed), used(v1alpha1.UseReserved))
	g.Status.Uses[1].Digest, g.Status.Uses[2].Digest, g.Status.Uses[2].Name = "v1:second", "v1:third", "data-postgres-3"
	for digestOfOperation, want := range map[string]int32{digest: 1, "v1:third": 3} {
		if use := reservedUse(g, digestOfOperation); use == nil || use.Index != want {
			t.Errorf("use of %s is %+v, want %d", digestOfOperation, use, want)
		}
	}
	for _, other := range []string{"v1:second", "v1:fourth", ""} {
		if use := reservedUse(g, other); use != nil {
			t.Errorf("use of %q is %d, want none", other, use.Index)
		}
	}
	if name := usedOn(g, &g.Status.Uses[2]).Name; name != "data-postgres-3" {
		t.Errorf("the third acts on %s", name)
	}
	if name := usedOn(g, &g.Status.Uses[0]).Name; name != "data-postgres-0" {
		t.Errorf("the first acts on %s", name)
	}
}

// Proves G-4: people read how wide an approval is.
func TestTheStatusSaysHowWideAnApprovalIs(t *testing.T) {
	g := grantWith(approved("ben", scoped(timeBox(1800, 20, "data-*"))))
	status := Compute(g, answered)
	if status.Target != "delete pvc/data-* (20 uses)" || *status.UsesLeft != 20 || !status.ExpirationTime.Time.Equal(answered.Add(30*time.Minute)) {
		t.Errorf("target %q, %d uses until %s", status.Target, *status.UsesLeft, status.ExpirationTime)
	}
	if want := "Approved by ben: delete pvc/data-* (20 uses), within 30m0s."; status.Conditions[0].Message != want {
		t.Errorf("message %q, want %q", status.Conditions[0].Message, want)
	}
}
