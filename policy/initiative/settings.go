package initiative

import "fmt"

// Mode says how much initiative is welcome (requirement N-2).
type Mode string

const (
	// ModeFast: at most the strongest optional action, above a high threshold.
	ModeFast Mode = "fast"
	// ModeStandard: a balanced threshold.
	ModeStandard Mode = "standard"
	// ModeExploratory: a lower threshold; what needs permission still needs it.
	ModeExploratory Mode = "exploratory"
	// ModeStrict: no optional action and no unsolicited proposal.
	ModeStrict Mode = "strict"
)

// Threshold is what an optional action needs in one mode (requirement N-3).
type Threshold struct {
	// MinScorePercent is the least score, in percent; a score may exceed 100. Between 1 and 10000.
	MinScorePercent int32
	// MaxOptionalActions per ranking, proposals included. Between 1 and 100; in mode fast one is taken, whatever it says.
	MaxOptionalActions int32
}

// Settings come from the namespace's policy and the session.
type Settings struct {
	Mode Mode
	// Thresholds of the modes. The mode in force needs its entry, except strict, which has none.
	Thresholds map[Mode]Threshold
	// EpsilonPercent is the least divisor of a score, in percent. Between 1 and 100.
	EpsilonPercent int32
	// StrictScope tells that the user limited the work; it disables every optional action (requirement S-2).
	StrictScope bool
}

// DefaultEpsilonPercent bounds a score at 10000 percent, the largest threshold.
const DefaultEpsilonPercent = 1

// threshold in force. The error names the field that is missing or out of its bounds. Nothing is looked up where nothing
// is selected: a wrong threshold must not stand in the way of strictness.
func (s *Settings) threshold() (Threshold, error) {
	switch s.Mode {
	case ModeStrict:
		return Threshold{}, nil
	case ModeFast, ModeStandard, ModeExploratory:
	default:
		return Threshold{}, fmt.Errorf("mode: %q is none of %s, %s, %s and %s", s.Mode, ModeFast, ModeStandard, ModeExploratory, ModeStrict)
	}
	t, ok := s.Thresholds[s.Mode]
	switch {
	case !ok:
		return Threshold{}, fmt.Errorf("thresholds[%s]: is absent", s.Mode)
	case t.MinScorePercent < 1 || t.MinScorePercent > 10000:
		return Threshold{}, fmt.Errorf("thresholds[%s].minScorePercent: is %d, must be between 1 and 10000", s.Mode, t.MinScorePercent)
	case t.MaxOptionalActions < 1 || t.MaxOptionalActions > 100:
		return Threshold{}, fmt.Errorf("thresholds[%s].maxOptionalActions: is %d, must be between 1 and 100", s.Mode, t.MaxOptionalActions)
	case s.EpsilonPercent < 1 || s.EpsilonPercent > 100:
		return Threshold{}, fmt.Errorf("epsilonPercent: is %d, must be between 1 and 100", s.EpsilonPercent)
	}
	if s.Mode == ModeFast {
		t.MaxOptionalActions = 1
	}
	return t, nil
}
