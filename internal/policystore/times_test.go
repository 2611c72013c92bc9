package policystore_test

import (
	"testing"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// Of times that keep people informed, and questions closed, the longest counts: a namespace can lengthen what its profile
// says, and shorten nothing.
func TestANamespaceLengthensTimesAndShortensNone(t *testing.T) {
	const warn, rest = v1alpha1.DefaultWarnBeforeExpirySeconds, v1alpha1.DefaultAskAgainAfterSeconds
	for _, tt := range []struct {
		name               string
		own                *v1alpha1.Approvals
		wantWarn, wantRest int32
	}{
		{"nothing of its own", nil, warn, rest},
		{"what leaves them out", &v1alpha1.Approvals{DecideWithinSeconds: 60}, warn, rest},
		{"longer ones", &v1alpha1.Approvals{WarnBeforeExpirySeconds: warn + 1, AskAgainAfterSeconds: rest + 1}, warn + 1, rest + 1},
		{"shorter ones", &v1alpha1.Approvals{WarnBeforeExpirySeconds: 1, AskAgainAfterSeconds: 1}, warn, rest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := input()
			own := agentPolicy("checkout", "default")
			own.Spec.Approvals = tt.own
			in.Policies = append(in.Policies, own)
			got, governed := build(t, in).Namespace("checkout")
			if !governed || got.WarnBeforeExpirySeconds != tt.wantWarn || got.AskAgainAfterSeconds != tt.wantRest {
				t.Errorf("warn %d and rest %d, want %d and %d", got.WarnBeforeExpirySeconds, got.AskAgainAfterSeconds, tt.wantWarn, tt.wantRest)
			}
		})
	}
}
