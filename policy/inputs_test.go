package policy_test

import (
	"reflect"
	"slices"
	"testing"

	"stepbeyond.dev/stepbeyond/policy"
)

// Proves A-3, B-6: a decision depends on the policies, the operation, the session and the time. None of these can carry
// an adapter, a phase, hypotheses, an open question, a ranking, a verification status, a tier or a mode, so none of them
// changes a verdict. A field that is added to what a decision depends on has to be added here, with this in mind.
func TestNoPlanningStateIsAnInputOfADecision(t *testing.T) {
	for _, test := range []struct {
		input any
		want  []string
	}{
		{policy.SessionView{}, []string{
			"State", "StateReason", "StateDetail", "Namespace", "Name", "UID", "Epoch", "Username", "Authority", "Deadline",
			"StrictScope", "Hold", "Constraint", "Grant", "Wide",
		}},
		{policy.Operation{}, []string{
			"Capability", "Stage", "Verb", "Tool", "Target", "Optional", "Spared", "DryRun", "ReadBy", "Facts", "Kubernetes", "Digest",
		}},
		{policy.Set{}, []string{"Baseline", "Cluster", "Profiles", "Namespaces"}},
	} {
		kind := reflect.TypeOf(test.input)
		var got []string
		for i := range kind.NumField() {
			got = append(got, kind.Field(i).Name)
		}
		slices.Sort(got)
		slices.Sort(test.want)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s has fields\n%v, want\n%v", kind.Name(), got, test.want)
		}
	}
}
