package initiative_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/internal/testing/shares"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/initiative"
)

var (
	auto      = policy.Decision{Class: policy.ClassAuto, Verdict: policy.VerdictAllow, Reason: policy.ReasonAllowed}
	disclosed = policy.Decision{Class: policy.ClassAutoWithDisclosure, Verdict: policy.VerdictAllow, Reason: policy.ReasonDisclosed}
	pending   = policy.Decision{Class: policy.ClassAsk, Verdict: policy.VerdictPending, Reason: policy.ReasonPermissionPending}
	granted   = policy.Decision{Class: policy.ClassAsk, Verdict: policy.VerdictAllow, Reason: policy.ReasonGranted}
	dryRun    = policy.Decision{Class: policy.ClassAsk, Verdict: policy.VerdictAllow, Reason: policy.ReasonDryRun}
	refused   = policy.Decision{Class: policy.ClassAsk, Verdict: policy.VerdictDeny, Reason: policy.ReasonGrantDenied}
	held      = policy.Decision{Class: policy.ClassAuto, Verdict: policy.VerdictHeld, Reason: policy.ReasonSuspended}
	forbidden = policy.Decision{Class: policy.ClassForbidden, Verdict: policy.VerdictDeny, Reason: policy.ReasonForbidden}
)

func settings(mode initiative.Mode) initiative.Settings {
	return initiative.Settings{
		Mode: mode, EpsilonPercent: initiative.DefaultEpsilonPercent,
		Thresholds: map[initiative.Mode]initiative.Threshold{
			initiative.ModeFast:        {MinScorePercent: 90, MaxOptionalActions: 5},
			initiative.ModeStandard:    {MinScorePercent: 57, MaxOptionalActions: 2},
			initiative.ModeExploratory: {MinScorePercent: 20, MaxOptionalActions: 10},
		},
	}
}

func candidate(name string, d policy.Decision, score float64) initiative.Candidate {
	return initiative.Candidate{Name: name, Decision: d, Factors: worth(score)}
}

func score(s float64) *float64 { return &s }

func rank(t *testing.T, s initiative.Settings, candidates ...initiative.Candidate) initiative.Ranking {
	t.Helper()
	ranking, err := initiative.Rank(s, candidates)
	if err != nil {
		t.Fatal(err)
	}
	return ranking
}

func some() []initiative.Candidate {
	return []initiative.Candidate{
		candidate("docs", auto, 0.57), candidate("tests", auto, 1), candidate("bench", disclosed, 0.95), candidate("lint", auto, 0.3), candidate("rename", auto, 0.1),
	}
}

// Proves N-2: fast takes at most the strongest, standard is balanced, exploratory lowers the threshold, strict takes none.
// Proves N-3: each candidate carries the reason why it was selected or rejected.
func TestModesFilterCandidates(t *testing.T) {
	take := func(name string, class policy.Class, s float64) initiative.Selected {
		return initiative.Selected{Name: name, Class: class, Action: initiative.ActionExecute, Reason: initiative.ReasonSelected, Score: s}
	}
	leave := func(name string, reason initiative.Reason, s *float64) initiative.Rejected {
		return initiative.Rejected{Name: name, Reason: reason, Score: s}
	}
	strictScope := settings(initiative.ModeExploratory)
	strictScope.StrictScope = true
	tests := []struct {
		name     string
		settings initiative.Settings
		want     initiative.Ranking
	}{
		{"fast takes the strongest alone, though its threshold would take five", settings(initiative.ModeFast), initiative.Ranking{
			Selected: []initiative.Selected{take("tests", policy.ClassAuto, 1)},
			Rejected: []initiative.Rejected{
				leave("bench", initiative.ReasonOverLimit, score(0.95)), leave("docs", initiative.ReasonBelowThreshold, score(0.57)),
				leave("lint", initiative.ReasonBelowThreshold, score(0.3)), leave("rename", initiative.ReasonBelowThreshold, score(0.1)),
			},
		}},
		{"standard takes what reaches its threshold, up to its limit", settings(initiative.ModeStandard), initiative.Ranking{
			Selected: []initiative.Selected{take("tests", policy.ClassAuto, 1), take("bench", policy.ClassAutoWithDisclosure, 0.95)},
			Rejected: []initiative.Rejected{
				leave("docs", initiative.ReasonOverLimit, score(0.57)), leave("lint", initiative.ReasonBelowThreshold, score(0.3)),
				leave("rename", initiative.ReasonBelowThreshold, score(0.1)),
			},
		}},
		{"exploratory takes more", settings(initiative.ModeExploratory), initiative.Ranking{
			Selected: []initiative.Selected{
				take("tests", policy.ClassAuto, 1), take("bench", policy.ClassAutoWithDisclosure, 0.95), take("docs", policy.ClassAuto, 0.57), take("lint", policy.ClassAuto, 0.3),
			},
			Rejected: []initiative.Rejected{leave("rename", initiative.ReasonBelowThreshold, score(0.1))},
		}},
		{"strict takes none and needs no thresholds", initiative.Settings{Mode: initiative.ModeStrict}, initiative.Ranking{Rejected: []initiative.Rejected{
			leave("bench", initiative.ReasonStrictMode, nil), leave("docs", initiative.ReasonStrictMode, nil), leave("lint", initiative.ReasonStrictMode, nil),
			leave("rename", initiative.ReasonStrictMode, nil), leave("tests", initiative.ReasonStrictMode, nil),
		}}},
		// Proves S-2.
		{"strict scope takes none in any mode", strictScope, initiative.Ranking{Rejected: []initiative.Rejected{
			leave("bench", initiative.ReasonStrictScope, nil), leave("docs", initiative.ReasonStrictScope, nil), leave("lint", initiative.ReasonStrictScope, nil),
			leave("rename", initiative.ReasonStrictScope, nil), leave("tests", initiative.ReasonStrictScope, nil),
		}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, rank(t, tt.settings, some()...)); diff != "" {
				t.Errorf("ranking (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves N-4: FORBIDDEN is never scored, ASK is at most proposed without a grant, and what the engine does not allow now
// is not taken.
func TestTheEnginesDecisionComesFirst(t *testing.T) {
	strict := settings(initiative.ModeStandard)
	strict.StrictScope = true
	tests := []struct {
		name     string
		settings initiative.Settings
		decision policy.Decision
		action   initiative.Action
		reason   initiative.Reason
	}{
		{"AUTO that is allowed runs", settings(initiative.ModeStandard), auto, initiative.ActionExecute, initiative.ReasonSelected},
		{"AUTO_WITH_DISCLOSURE that is allowed runs", settings(initiative.ModeStandard), disclosed, initiative.ActionExecute, initiative.ReasonSelected},
		{"AUTO that is held is left", settings(initiative.ModeStandard), held, "", initiative.ReasonNotAllowed},
		{"ASK without a grant is proposed", settings(initiative.ModeStandard), pending, initiative.ActionPropose, initiative.ReasonProposalOnly},
		{"ASK without a grant is proposed in mode exploratory too", settings(initiative.ModeExploratory), pending, initiative.ActionPropose, initiative.ReasonProposalOnly},
		{"ASK that was tried as a dry run is proposed", settings(initiative.ModeStandard), dryRun, initiative.ActionPropose, initiative.ReasonProposalOnly},
		{"ASK under a grant runs", settings(initiative.ModeStandard), granted, initiative.ActionExecute, initiative.ReasonSelectedUnderGrant},
		{"ASK that a person refused is not proposed again", settings(initiative.ModeStandard), refused, "", initiative.ReasonNotAllowed},
		{"ASK under a grant is still optional, and strict scope takes nothing optional", strict, granted, "", initiative.ReasonStrictScope},
		{"FORBIDDEN is left", settings(initiative.ModeExploratory), forbidden, "", initiative.ReasonForbidden},
		{"FORBIDDEN is named as such under strict scope", strict, forbidden, "", initiative.ReasonForbidden},
		{"FORBIDDEN with a verdict that cannot be is left", settings(initiative.ModeExploratory), policy.Decision{Class: policy.ClassForbidden, Verdict: policy.VerdictAllow, Reason: policy.ReasonGranted}, "", initiative.ReasonForbidden},
		{"what was not classified is left", settings(initiative.ModeExploratory), policy.Decision{Verdict: policy.VerdictAllow}, "", initiative.ReasonUnclassified},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := rank(t, tt.settings, candidate("one", tt.decision, 1))
			want := initiative.Ranking{Rejected: []initiative.Rejected{{Name: "one", Reason: tt.reason}}}
			if tt.action != "" {
				want = initiative.Ranking{Selected: []initiative.Selected{{Name: "one", Class: tt.decision.Class, Action: tt.action, Reason: tt.reason, Score: 1}}}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("ranking (-want +got):\n%s", diff)
			}
		})
	}
}

// Proves N-1 and N-4: a wrong factor rejects its candidate by name, and of what is FORBIDDEN no factor is looked at.
func TestAWrongFactorRejectsOneCandidate(t *testing.T) {
	wrong, closed := candidate("wrong", auto, 1), candidate("closed", forbidden, 1)
	wrong.Factors.Cost, closed.Factors.Cost = math.NaN(), math.NaN()
	got := rank(t, settings(initiative.ModeStandard), wrong, candidate("right", auto, 1), closed)
	want := initiative.Ranking{
		Selected: []initiative.Selected{{Name: "right", Class: policy.ClassAuto, Action: initiative.ActionExecute, Reason: initiative.ReasonSelected, Score: 1}},
		Rejected: []initiative.Rejected{
			{Name: "closed", Reason: initiative.ReasonForbidden},
			{Name: "wrong", Reason: initiative.ReasonInvalidFactor, Field: "candidates[0].factors.cost"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ranking (-want +got):\n%s", diff)
	}
}

func TestWrongSettingsAndNamesSelectNothing(t *testing.T) {
	with := func(change func(*initiative.Settings)) initiative.Settings {
		s := settings(initiative.ModeStandard)
		change(&s)
		return s
	}
	threshold := func(minScore, maxActions int32) initiative.Settings {
		return with(func(s *initiative.Settings) {
			s.Thresholds[initiative.ModeStandard] = initiative.Threshold{MinScorePercent: minScore, MaxOptionalActions: maxActions}
		})
	}
	tests := []struct {
		name       string
		settings   initiative.Settings
		candidates []initiative.Candidate
		want       string
	}{
		{"a mode that is none", with(func(s *initiative.Settings) { s.Mode = "Fast" }), some(), `initiative: mode: "Fast" is none of fast, standard, exploratory and strict`},
		{"no mode", initiative.Settings{}, some(), `initiative: mode: "" is none of fast, standard, exploratory and strict`},
		{"a mode without a threshold", with(func(s *initiative.Settings) { s.Thresholds = nil }), some(), "initiative: thresholds[standard]: is absent"},
		{"a threshold of nothing", threshold(0, 1), some(), "initiative: thresholds[standard].minScorePercent: is 0, must be between 1 and 10000"},
		{"a threshold that no score reaches", threshold(10001, 1), some(), "initiative: thresholds[standard].minScorePercent: is 10001, must be between 1 and 10000"},
		{"no action", threshold(1, 0), some(), "initiative: thresholds[standard].maxOptionalActions: is 0, must be between 1 and 100"},
		{"too many actions", threshold(1, 101), some(), "initiative: thresholds[standard].maxOptionalActions: is 101, must be between 1 and 100"},
		{"no epsilon", with(func(s *initiative.Settings) { s.EpsilonPercent = 0 }), some(), "initiative: epsilonPercent: is 0, must be between 1 and 100"},
		{"too large an epsilon", with(func(s *initiative.Settings) { s.EpsilonPercent = 101 }), some(), "initiative: epsilonPercent: is 101, must be between 1 and 100"},
		{"no name", settings(initiative.ModeStandard), []initiative.Candidate{candidate("", auto, 1)}, "initiative: candidates[0].name: is absent"},
		{"a name twice", settings(initiative.ModeStandard), []initiative.Candidate{candidate("a", auto, 1), candidate("b", auto, 1), candidate("a", auto, 0)}, "initiative: candidates[2].name: is that of candidates[0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ranking, err := initiative.Rank(tt.settings, tt.candidates)
			if err == nil {
				t.Fatalf("ranking = %+v, want an error", ranking)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if len(ranking.Selected) > 0 {
				t.Errorf("selected = %+v with an error", ranking.Selected)
			}
		})
	}
}

// Proves N-3: of equals the first by name is taken.
func TestTiesBreakByName(t *testing.T) {
	got := rank(t, settings(initiative.ModeFast), candidate("b", auto, 1), candidate("a", auto, 1), candidate("c", auto, 1))
	if got.Selected[0].Name != "a" {
		t.Errorf("selected = %+v, want a", got.Selected)
	}
}

func drawCandidates(t *rapid.T) []initiative.Candidate {
	decisions := []policy.Decision{auto, disclosed, pending, granted, dryRun, refused, held, forbidden, {}}
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"}), 0, 8, rapid.ID).Draw(t, "names")
	var candidates []initiative.Candidate
	for _, name := range names {
		d := rapid.SampledFrom(decisions).Draw(t, "decision")
		candidates = append(candidates, candidate(name, d, rapid.SampledFrom([]float64{0, 0.2, 0.57, 0.9, 1, math.NaN()}).Draw(t, "score")))
	}
	return candidates
}

func drawSettings(t *rapid.T) initiative.Settings {
	s := settings(rapid.SampledFrom([]initiative.Mode{initiative.ModeFast, initiative.ModeStandard, initiative.ModeExploratory, initiative.ModeStrict}).Draw(t, "mode"))
	s.StrictScope = rapid.IntRange(0, 4).Draw(t, "strict scope") == 0
	return s
}

// Proves C-3, N-2, N-3 and N-4: whatever the mode, scope and scores, classes stay as they came, nothing runs that the
// engine does not allow, the limits hold, every candidate has exactly one answer with a reason, and the order of the
// candidates does not matter.
func TestRankingKeepsWhatTheEngineDecided(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, candidates := drawSettings(t), drawCandidates(t)
		byName := map[string]policy.Decision{}
		for _, c := range candidates {
			byName[c.Name] = c.Decision
		}
		ranking, err := initiative.Rank(s, candidates)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range ranking.Selected {
			d := byName[got.Name]
			delete(byName, got.Name)
			if got.Class != d.Class || got.Reason == "" {
				t.Fatalf("%+v does not carry class %s and a reason", got, d.Class)
			}
			if got.Class == policy.ClassForbidden || (got.Action == initiative.ActionExecute && d.Verdict != policy.VerdictAllow) {
				t.Fatalf("%+v was taken against %+v", got, d)
			}
			if got.Class == policy.ClassAsk && got.Action == initiative.ActionExecute && d.Reason != policy.ReasonGranted {
				t.Fatalf("%+v runs without a grant", got)
			}
		}
		for _, got := range ranking.Rejected {
			if _, ok := byName[got.Name]; !ok || got.Reason == "" {
				t.Fatalf("%+v has no reason or a second answer", got)
			}
			if byName[got.Name].Class == policy.ClassForbidden && got.Score != nil {
				t.Fatalf("%+v was scored", got)
			}
			delete(byName, got.Name)
		}
		if len(byName) > 0 {
			t.Fatalf("no answer for %v", byName)
		}
		limit := map[initiative.Mode]int{initiative.ModeFast: 1, initiative.ModeStandard: 2, initiative.ModeExploratory: 10}[s.Mode]
		if s.StrictScope {
			limit = 0
		}
		if len(ranking.Selected) > limit {
			t.Fatalf("%d selected, limit %d", len(ranking.Selected), limit)
		}
		again, err := initiative.Rank(s, rapid.Permutation(candidates).Draw(t, "order"))
		if err != nil {
			t.Fatal(err)
		}
		// The place of a wrong factor is that in the list.
		for _, r := range [][]initiative.Rejected{ranking.Rejected, again.Rejected} {
			for i := range r {
				r[i].Field = ""
			}
		}
		if diff := cmp.Diff(ranking, again); diff != "" {
			t.Fatalf("another order has another ranking:\n%s", diff)
		}
	})
}

func TestRankingsReachEveryClassVerdictAndAction(t *testing.T) {
	labels := rapid.Custom(func(t *rapid.T) []string {
		s, candidates := drawSettings(t), drawCandidates(t)
		ranking, err := initiative.Rank(s, candidates)
		if err != nil {
			t.Fatal(err)
		}
		labels := []string{"mode " + string(s.Mode), fmt.Sprintf("strict %t", s.StrictScope)}
		for _, c := range candidates {
			labels = append(labels, "class "+c.Decision.Class.String(), "verdict "+string(c.Decision.Verdict))
		}
		for _, selected := range ranking.Selected {
			labels = append(labels, "action "+string(selected.Action), "selected "+selected.Class.String())
		}
		for _, rejected := range ranking.Rejected {
			labels = append(labels, "rejected "+string(rejected.Reason))
		}
		return labels
	})
	shares.Check(t, labels, 2000, "class AUTO", "class AUTO_WITH_DISCLOSURE", "class ASK", "class FORBIDDEN",
		"verdict Allow", "verdict Deny", "verdict Pending", "verdict Held", "action Execute", "action Propose",
		"selected AUTO", "selected AUTO_WITH_DISCLOSURE", "selected ASK",
		"mode fast", "mode standard", "mode exploratory", "mode strict", "strict true", "strict false")
}

// Proves N-2: what a lower threshold adds is proposals and actions, never permission: of the same candidates, exploratory
// takes a superset of standard, and each with the same action.
func TestExploratoryChangesNoPermission(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		candidates := drawCandidates(t)
		wide := settings(initiative.ModeStandard)
		wide.Thresholds[initiative.ModeStandard] = initiative.Threshold{MinScorePercent: 57, MaxOptionalActions: 10}
		standard, err := initiative.Rank(wide, candidates)
		if err != nil {
			t.Fatal(err)
		}
		exploratory, err := initiative.Rank(settings(initiative.ModeExploratory), candidates)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range standard.Selected {
			if !slices.Contains(exploratory.Selected, s) {
				t.Fatalf("standard takes %+v, exploratory does not", s)
			}
		}
	})
}
