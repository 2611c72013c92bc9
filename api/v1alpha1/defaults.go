package v1alpha1

// Numbers that a profile has where it states none. They are not in the schema: in a namespace's own AgentPolicy an
// omitted number is the profile's, and a number filled in by the API server could not be told from a written one, so it
// would tighten the profile by accident.
const (
	DefaultMediumPercent = 50
	DefaultHighPercent   = 80

	// DefaultDecideWithinSeconds lets a question of the evening live until the morning: 16 hours.
	DefaultDecideWithinSeconds = 57600
	// DefaultUseWithinSeconds is 4 hours.
	DefaultUseWithinSeconds = 14400
	// DefaultWarnBeforeExpirySeconds is 30 minutes.
	DefaultWarnBeforeExpirySeconds = 1800
	// DefaultAskAgainAfterSeconds is 1 hour.
	DefaultAskAgainAfterSeconds = 3600
	// DefaultMaxTimeBoxSeconds is 30 minutes.
	DefaultMaxTimeBoxSeconds = 1800
	DefaultMaxTimeBoxUses    = 20

	DefaultMaxPendingGrantsPerSession = 5
	DefaultMaxPendingGrants           = 50
	DefaultMaxSessions                = 40
	DefaultMaxChildSessionsPerSession = 4
	DefaultMaxMutationsPerSession     = 500

	// DefaultFinishedGrantSeconds is 7 days.
	DefaultFinishedGrantSeconds = 604800
	// DefaultEndedSessionSeconds is 1 day.
	DefaultEndedSessionSeconds = 86400
)

func defaultThresholds() []InitiativeThreshold {
	return []InitiativeThreshold{
		{Mode: InitiativeModeFast, MinScorePercent: 150, MaxOptionalActions: 1},
		{Mode: InitiativeModeStandard, MinScorePercent: 80, MaxOptionalActions: 5},
		{Mode: InitiativeModeExploratory, MinScorePercent: 40, MaxOptionalActions: 10},
	}
}

// WithProfileDefaults returns a copy of a profile's spec with every omitted setting filled in. It is wrong for an
// AgentPolicy outside the system namespace, where omission means the profile's value.
func (s *AgentPolicySpec) WithProfileDefaults() *AgentPolicySpec {
	out := s.DeepCopy()
	fill(&out.RulesEnforcement, EnforcementEnforce)
	fill(&out.ModelTier, ModelTierMedium)
	out.Initiative = filled(out.Initiative)
	out.Initiative.setDefaults()
	if out.Confidence == nil {
		out.Confidence = &Confidence{MediumPercent: DefaultMediumPercent, HighPercent: DefaultHighPercent}
	}
	out.Approvals = filled(out.Approvals)
	out.Approvals.setDefaults()
	out.Caps = filled(out.Caps)
	out.Caps.setDefaults()
	out.Retention = filled(out.Retention)
	fill(&out.Retention.FinishedGrantSeconds, DefaultFinishedGrantSeconds)
	fill(&out.Retention.EndedSessionSeconds, DefaultEndedSessionSeconds)
	return out
}

func (i *Initiative) setDefaults() {
	fill(&i.Mode, InitiativeModeStandard)
	for _, byDefault := range defaultThresholds() {
		if !i.hasThreshold(byDefault.Mode) {
			i.Thresholds = append(i.Thresholds, byDefault)
		}
	}
}

func (i *Initiative) hasThreshold(mode InitiativeMode) bool {
	for _, threshold := range i.Thresholds {
		if threshold.Mode == mode {
			return true
		}
	}
	return false
}

func (a *Approvals) setDefaults() {
	fill(&a.DecideWithinSeconds, DefaultDecideWithinSeconds)
	fill(&a.UseWithinSeconds, DefaultUseWithinSeconds)
	fill(&a.WarnBeforeExpirySeconds, DefaultWarnBeforeExpirySeconds)
	fill(&a.AskAgainAfterSeconds, DefaultAskAgainAfterSeconds)
	fill(&a.MaxTimeBoxSeconds, DefaultMaxTimeBoxSeconds)
	fill(&a.MaxTimeBoxUses, DefaultMaxTimeBoxUses)
	fill(&a.SessionUser, SessionUserAllow)
	fill(&a.WidestScope, ScopeExact)
}

func (c *Caps) setDefaults() {
	fillPointer(&c.MaxPendingGrantsPerSession, DefaultMaxPendingGrantsPerSession)
	fillPointer(&c.MaxPendingGrants, DefaultMaxPendingGrants)
	fillPointer(&c.MaxSessions, DefaultMaxSessions)
	fillPointer(&c.MaxChildSessionsPerSession, DefaultMaxChildSessionsPerSession)
	fillPointer(&c.MaxMutationsPerSession, DefaultMaxMutationsPerSession)
}

func fill[T comparable](field *T, byDefault T) {
	var omitted T
	if *field == omitted {
		*field = byDefault
	}
}

func fillPointer(field **int32, byDefault int32) {
	if *field == nil {
		*field = &byDefault
	}
}

func filled[T any](block *T) *T {
	if block == nil {
		return new(T)
	}
	return block
}
