package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

func TestAProfileThatStatesNothingHasTheDocumentedNumbers(t *testing.T) {
	spec := &v1alpha1.AgentPolicySpec{}
	want := &v1alpha1.AgentPolicySpec{
		RulesEnforcement: "Enforce",
		ModelTier:        "medium",
		Initiative: &v1alpha1.Initiative{
			Mode: "standard",
			Thresholds: []v1alpha1.InitiativeThreshold{
				{Mode: "fast", MinScorePercent: 150, MaxOptionalActions: 1},
				{Mode: "standard", MinScorePercent: 80, MaxOptionalActions: 5},
				{Mode: "exploratory", MinScorePercent: 40, MaxOptionalActions: 10},
			},
		},
		Confidence: &v1alpha1.Confidence{MediumPercent: 50, HighPercent: 80},
		Approvals: &v1alpha1.Approvals{
			DecideWithinSeconds:     57600,
			UseWithinSeconds:        14400,
			WarnBeforeExpirySeconds: 1800,
			AskAgainAfterSeconds:    3600,
			SessionUser:             "Allow",
			WidestScope:             "Exact",
			MaxTimeBoxSeconds:       1800,
			MaxTimeBoxUses:          20,
		},
		Caps: &v1alpha1.Caps{
			MaxPendingGrantsPerSession: new(int32(5)),
			MaxPendingGrants:           new(int32(50)),
			MaxSessions:                new(int32(40)),
			MaxChildSessionsPerSession: new(int32(4)),
			MaxMutationsPerSession:     new(int32(500)),
		},
		Retention: &v1alpha1.Retention{FinishedGrantSeconds: 604800, EndedSessionSeconds: 86400},
	}
	if diff := cmp.Diff(want, spec.WithProfileDefaults()); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&v1alpha1.AgentPolicySpec{}, spec); diff != "" {
		t.Errorf("the profile itself changed (-want +got):\n%s", diff)
	}
}

func TestWhatAProfileStatesIsKept(t *testing.T) {
	spec := &v1alpha1.AgentPolicySpec{
		RulesEnforcement: "Audit",
		ModelTier:        "small",
		Initiative: &v1alpha1.Initiative{
			Mode:       "strict",
			Thresholds: []v1alpha1.InitiativeThreshold{{Mode: "standard", MinScorePercent: 60, MaxOptionalActions: 2}},
		},
		Confidence: &v1alpha1.Confidence{MediumPercent: 60, HighPercent: 90},
		Approvals:  &v1alpha1.Approvals{UseWithinSeconds: 1800, SessionUser: "Refuse"},
		Caps:       &v1alpha1.Caps{MaxChildSessionsPerSession: new(int32(0))},
		Retention:  &v1alpha1.Retention{EndedSessionSeconds: 3600},
	}
	want := (&v1alpha1.AgentPolicySpec{}).WithProfileDefaults()
	want.RulesEnforcement = "Audit"
	want.ModelTier = "small"
	want.Initiative = &v1alpha1.Initiative{
		Mode: "strict",
		Thresholds: []v1alpha1.InitiativeThreshold{
			{Mode: "standard", MinScorePercent: 60, MaxOptionalActions: 2},
			{Mode: "fast", MinScorePercent: 150, MaxOptionalActions: 1},
			{Mode: "exploratory", MinScorePercent: 40, MaxOptionalActions: 10},
		},
	}
	want.Confidence = &v1alpha1.Confidence{MediumPercent: 60, HighPercent: 90}
	want.Approvals.UseWithinSeconds = 1800
	want.Approvals.SessionUser = "Refuse"
	want.Caps.MaxChildSessionsPerSession = new(int32(0))
	want.Retention.EndedSessionSeconds = 3600
	if diff := cmp.Diff(want, spec.WithProfileDefaults()); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}
