package steering_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/steering"
)

func TestAnInputThatCannotBeIsRefusedByField(t *testing.T) {
	long := strings.Repeat("x", 254)
	selectors := func(n int) []steering.Selector { return make([]steering.Selector, n) }
	for name, row := range map[string]struct {
		change func(*steering.Input)
		field  string
		want   steering.Problem
	}{
		"no ID":                       {func(in *steering.Input) { in.ID = "" }, "id", steering.ProblemMissing},
		"an ID of 254 bytes":          {func(in *steering.Input) { in.ID = long }, "id", steering.ProblemTooLong},
		"an ID of two lines":          {func(in *steering.Input) { in.ID = "a\nb" }, "id", steering.ProblemInvalid},
		"no author":                   {func(in *steering.Input) { in.Author = " " }, "author", steering.ProblemMissing},
		"an author of 254 bytes":      {func(in *steering.Input) { in.Author = long }, "author", steering.ProblemTooLong},
		"a message of 1025 bytes":     {func(in *steering.Input) { in.Message = strings.Repeat("x", 1025) }, "message", steering.ProblemTooLong},
		"a message of bad UTF-8":      {func(in *steering.Input) { in.Message = "\xff" }, "message", steering.ProblemInvalid},
		"no type":                     {func(in *steering.Input) { in.Type = "" }, "type", steering.ProblemMissing},
		"a type of its own":           {func(in *steering.Input) { in.Type = "plan" }, "type", steering.ProblemInvalid},
		"no time":                     {func(in *steering.Input) { in.Time = in.Expiration }, "time", steering.ProblemMissing},
		"an end before its time":      {func(in *steering.Input) { in.Expiration = in.Time }, "expiration", steering.ProblemExpired},
		"17 inputs superseded":        {func(in *steering.Input) { in.Supersedes = make([]string, 17) }, "supersedes", steering.ProblemTooLong},
		"a nameless input superseded": {func(in *steering.Input) { in.Supersedes = []string{"a", ""} }, "supersedes[1]", steering.ProblemMissing},
		"itself superseded":           {func(in *steering.Input) { in.Supersedes = []string{in.ID} }, "supersedes[0]", steering.ProblemInvalid},
		"constraints on Context": {func(in *steering.Input) {
			in.Type = steering.TypeContext
			in.Constraints.Budgets.MaxMutations = count(1)
		}, "constraints", steering.ProblemNotAllowed},
		"a suspension that is not Safety":    {func(in *steering.Input) { in.Constraints.Activity = steering.ActivitySuspend }, "constraints.activity", steering.ProblemNotAllowed},
		"a release that is not Scope":        {func(in *steering.Input) { in.Constraints.StrictScope = steering.ScopeRelease }, "constraints.strictScope", steering.ProblemNotAllowed},
		"a word of its own for strict scope": {func(in *steering.Input) { in.Constraints.StrictScope = "On" }, "constraints.strictScope", steering.ProblemInvalid},
		"an activity that resumes":           {func(in *steering.Input) { in.Type = steering.TypeSafety; in.Constraints.Activity = "Resume" }, "constraints.activity", steering.ProblemInvalid},
		"33 capabilities":                    {func(in *steering.Input) { in.Constraints.ForbidCapabilities = make([]policy.Capability, 33) }, "constraints.forbidCapabilities", steering.ProblemTooLong},
		"an unknown capability": {func(in *steering.Input) {
			in.Constraints.ForbidCapabilities = []policy.Capability{policy.CapabilityReadContext, "fly"}
		}, "constraints.forbidCapabilities[1]", steering.ProblemInvalid},
		"a negative budget of writes":         {func(in *steering.Input) { in.Constraints.Budgets.MaxMutations = count(-1) }, "constraints.budgets.maxMutations", steering.ProblemInvalid},
		"a negative budget of children":       {func(in *steering.Input) { in.Constraints.Budgets.MaxChildSessions = count(-1) }, "constraints.budgets.maxChildSessions", steering.ProblemInvalid},
		"33 prohibitions":                     {func(in *steering.Input) { in.Constraints.Forbid = selectors(33) }, "constraints.forbid", steering.ProblemTooLong},
		"a prohibition of everything unnamed": {func(in *steering.Input) { in.Constraints.Forbid = selectors(1) }, "constraints.forbid[0]", steering.ProblemMissing},
		"33 names":                            {func(in *steering.Input) { in.Constraints.NarrowTo = []steering.Selector{{Names: make([]string, 33)}} }, "constraints.narrowTo[0].names", steering.ProblemTooLong},
		"an empty resource": {func(in *steering.Input) {
			in.Constraints.NarrowTo = []steering.Selector{{Groups: []string{"", "apps"}, Resources: []string{""}}}
		}, "constraints.narrowTo[0].resources[0]", steering.ProblemMissing},
		"tools beside objects": {func(in *steering.Input) {
			in.Constraints.Forbid = []steering.Selector{{Tools: []string{"a"}, Names: []string{"b"}}}
		}, "constraints.forbid[0].tools", steering.ProblemNotAllowed},
		"patch, which admission does not know": {func(in *steering.Input) {
			in.Constraints.Forbid = []steering.Selector{{Verbs: []policy.Verb{policy.VerbUpdate, "patch"}}}
		}, "constraints.forbid[0].verbs[1]", steering.ProblemInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(steering.TypePlan, "in-1")
			row.change(&in)
			s := steering.State{Epoch: 4}
			next, err := s.Apply(steering.Steered{Input: in, Time: start})
			got := rejection(t, err)
			if diff := cmp.Diff(steering.Rejection{Field: row.field, Problem: row.want}, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(s, next); diff != "" {
				t.Errorf("a refused input changed the state: %s", diff)
			}
		})
	}
}

func TestARejectionNamesItsFieldAndNoOneElsesText(t *testing.T) {
	for problem, want := range map[steering.Problem]string{
		steering.ProblemMissing:    "status is missing",
		steering.ProblemInvalid:    "status is not one of the allowed values",
		steering.ProblemTooLong:    "status is longer than allowed",
		steering.ProblemDuplicate:  "status is there already",
		steering.ProblemUnknown:    "status names nothing that this session has",
		steering.ProblemNotAllowed: "status is not for this type of input",
		steering.ProblemNotOpen:    "status names an input that waits for no answer",
		steering.ProblemSuspension: "status names a suspension, which ends by withdrawal only",
		steering.ProblemTooMany:    "status exceeds what one session may have in force",
		steering.ProblemTooEarly:   "status lies before the agreed end",
		steering.ProblemExpired:    "status has expired",
		steering.ProblemOldEpoch:   "status belongs to another epoch than the session's",
	} {
		if got := (&steering.Rejection{Field: "status", Problem: problem}).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for problem, want := range map[steering.Problem]string{
		steering.ProblemOutOfOrder: "inputId names an input that comes after one still to be answered (steering input in-1)",
		steering.ProblemHeld:       "inputId cannot start or be prolonged while the old plan is held (steering input in-1)",
	} {
		if got := (&steering.Rejection{Field: "inputId", Problem: problem, InputID: "in-1"}).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
