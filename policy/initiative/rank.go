package initiative

import (
	"cmp"
	"fmt"
	"slices"

	"stepbeyond.dev/stepbeyond/policy"
)

// Candidate is one optional action.
type Candidate struct {
	// Name tells candidates apart and breaks ties; unique and not empty.
	Name string
	// Decision is the engine's answer to the candidate's operation, given before any score (requirement C-1).
	Decision policy.Decision
	Factors  Factors
}

// Action is what may be done with a selected candidate.
type Action string

const (
	// ActionExecute: the engine allows it as it is.
	ActionExecute Action = "Execute"
	// ActionPropose: it may be offered; a person decides before it runs (requirement N-4).
	ActionPropose Action = "Propose"
)

// Reason is why a candidate was selected or rejected (requirement N-3).
type Reason string

const (
	// ReasonSelected: its score and the mode allow it, and so does the engine.
	ReasonSelected Reason = "Selected"
	// ReasonSelectedUnderGrant: it needs a grant, and has one.
	ReasonSelectedUnderGrant Reason = "SelectedUnderGrant"
	// ReasonProposalOnly: it needs a grant, and has none.
	ReasonProposalOnly Reason = "ProposalOnly"

	// ReasonUnclassified: the engine has not classified it.
	ReasonUnclassified Reason = "Unclassified"
	// ReasonForbidden: it is closed to agents.
	ReasonForbidden Reason = "Forbidden"
	// ReasonNotAllowed: the engine does not allow it now, and a proposal would not change that.
	ReasonNotAllowed Reason = "NotAllowed"
	// ReasonStrictScope: the user limited the work to what was asked for.
	ReasonStrictScope Reason = "StrictScope"
	// ReasonStrictMode: the mode takes no optional action.
	ReasonStrictMode Reason = "StrictMode"
	// ReasonInvalidFactor: a factor is not a number in [0,1].
	ReasonInvalidFactor Reason = "InvalidFactor"
	// ReasonBelowThreshold: its score is less than the mode's threshold.
	ReasonBelowThreshold Reason = "BelowThreshold"
	// ReasonOverLimit: the mode's number of actions was reached by stronger ones.
	ReasonOverLimit Reason = "OverLimit"
)

// Selected is a candidate that was taken.
type Selected struct {
	Name   string
	Class  policy.Class
	Action Action
	Reason Reason
	// Score is between 0 and 100 / EpsilonPercent.
	Score float64
}

// Rejected is a candidate that was not taken. That denies no call: the engine's decision about the operation stands.
type Rejected struct {
	Name   string
	Reason Reason
	// Field is the factor that is wrong, as candidates[2].factors.cost; empty for other reasons.
	Field string
	// Score is nil when there was none.
	Score *float64
}

// Ranking is the answer to a list of candidates: each is in one of the two lists.
type Ranking struct {
	// Selected, the strongest first; ties by name.
	Selected []Selected
	// Rejected, by name.
	Rejected []Rejected
}

// Rank selects among optional actions. Classes are looked at before scores, and strictness before scores as well
// (requirements C-3, N-2, S-2). The order of the candidates does not matter. An error names the setting or the
// candidate's name that is wrong; then nothing is selected.
func Rank(settings Settings, candidates []Candidate) (Ranking, error) {
	threshold, err := settings.threshold()
	if err != nil {
		return Ranking{}, fmt.Errorf("initiative: %w", err)
	}
	if err := checkNames(candidates); err != nil {
		return Ranking{}, fmt.Errorf("initiative: %w", err)
	}
	var ranking Ranking
	var eligible []Selected
	for i := range candidates {
		c := &candidates[i]
		action, reason := permission(&c.Decision)
		if off := settings.disables(); action != "" && off != "" {
			action, reason = "", off
		}
		if action == "" {
			ranking.reject(Rejected{Name: c.Name, Reason: reason})
			continue
		}
		if wrong := c.Factors.wrong(); wrong != nil {
			field := fmt.Sprintf("candidates[%d].factors.%s", i, wrong.Field)
			ranking.reject(Rejected{Name: c.Name, Reason: ReasonInvalidFactor, Field: field})
			continue
		}
		score := c.Factors.score(float64(settings.EpsilonPercent) / 100)
		eligible = append(eligible, Selected{Name: c.Name, Class: c.Decision.Class, Action: action, Reason: reason, Score: score})
	}
	ranking.selectFrom(eligible, threshold)
	slices.SortFunc(ranking.Rejected, func(a, b Rejected) int { return cmp.Compare(a.Name, b.Name) })
	return ranking, nil
}

func checkNames(candidates []Candidate) error {
	seen := make(map[string]int, len(candidates))
	for i := range candidates {
		name := candidates[i].Name
		if name == "" {
			return fmt.Errorf("candidates[%d].name: is absent", i)
		}
		if first, ok := seen[name]; ok {
			return fmt.Errorf("candidates[%d].name: is that of candidates[%d]", i, first)
		}
		seen[name] = i
	}
	return nil
}

// disables is why nothing optional is taken; empty when the settings allow some.
func (s *Settings) disables() Reason {
	switch {
	case s.StrictScope:
		return ReasonStrictScope
	case s.Mode == ModeStrict:
		return ReasonStrictMode
	default:
		return ""
	}
}

// permission reads the engine's decision. The action is empty when the candidate may be neither run nor proposed.
func permission(d *policy.Decision) (Action, Reason) {
	allowed := d.Verdict == policy.VerdictAllow
	switch d.Class {
	case policy.ClassAuto, policy.ClassAutoWithDisclosure:
		if allowed {
			return ActionExecute, ReasonSelected
		}
		return "", ReasonNotAllowed
	case policy.ClassAsk:
		switch {
		case allowed && d.Reason == policy.ReasonGranted:
			return ActionExecute, ReasonSelectedUnderGrant
		case allowed || d.Verdict == policy.VerdictPending:
			// Allowed without a grant is a dry run: the real operation still needs one.
			return ActionPropose, ReasonProposalOnly
		default:
			return "", ReasonNotAllowed
		}
	case policy.ClassForbidden:
		return "", ReasonForbidden
	default:
		return "", ReasonUnclassified
	}
}

// selectFrom takes the strongest that reach the threshold.
func (r *Ranking) selectFrom(eligible []Selected, threshold Threshold) {
	slices.SortFunc(eligible, func(a, b Selected) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Name, b.Name))
	})
	for _, s := range eligible {
		switch {
		// The threshold is divided, not the score multiplied, so that 0.57 reaches 57 percent.
		case s.Score < float64(threshold.MinScorePercent)/100:
			r.reject(Rejected{Name: s.Name, Reason: ReasonBelowThreshold, Score: &s.Score})
		case len(r.Selected) >= int(threshold.MaxOptionalActions):
			r.reject(Rejected{Name: s.Name, Reason: ReasonOverLimit, Score: &s.Score})
		default:
			r.Selected = append(r.Selected, s)
		}
	}
}

func (r *Ranking) reject(rejected Rejected) { r.Rejected = append(r.Rejected, rejected) }
