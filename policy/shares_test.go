package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"stepbeyond.dev/stepbeyond/internal/testing/shares"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/intent"
)

// draws of each generator.
const draws = 1000

var (
	everyClass   = []string{"class AUTO", "class AUTO_WITH_DISCLOSURE", "class ASK", "class FORBIDDEN"}
	everyVerdict = []string{"verdict Allow", "verdict Deny", "verdict Pending", "verdict Held"}
)

func answered(d policy.Decision) []string {
	return []string{"class " + d.Class.String(), "verdict " + string(d.Verdict)}
}

// The properties of decisions see every class, every verdict, and enough of what they are about. Each row draws as the
// property of that name does.
func TestThePropertiesReachEveryClassAndVerdict(t *testing.T) {
	decisions := append(append([]string{}, everyClass...), everyVerdict...)
	for name, test := range map[string]struct {
		labels func(t *rapid.T) []string
		wanted []string
	}{
		"questions, to which a rule is added": {
			labels: func(t *rapid.T) []string {
				before, after := drawTightened(t)
				without, with := before.decide(), after.decide()
				return append(answered(without), fmt.Sprintf("raised %t", without.Class < with.Class), fmt.Sprintf("applies %t", len(without.Details) < len(with.Details)),
					fmt.Sprintf("rules %t", slices.ContainsFunc(without.Details, func(d policy.Detail) bool { return d.Code == policy.CodeRule })))
			},
			wanted: append([]string{"raised true", "applies true", "rules true"}, decisions...),
		},
		"a grant is given": {
			labels: func(t *rapid.T) []string {
				q, without, g := drawGranted(t)
				with := q.decide()
				return append(answered(with), fmt.Sprintf("fits %t", binds(g, &q)), fmt.Sprintf("opened %t", with.Reason == policy.ReasonGranted),
					fmt.Sprintf("asked %t", without.Reason == policy.ReasonPermissionPending))
			},
			wanted: append([]string{"fits true", "fits false", "opened true", "asked true"}, decisions...),
		},
		"steered": {
			labels: func(t *rapid.T) []string {
				without, with := drawSteered(t)
				return append(answered(with.decide()), fmt.Sprintf("changed %t", without.decide().Verdict != with.decide().Verdict))
			},
			wanted: append([]string{"changed true", "changed false"}, decisions...),
		},
		"policies are tightened and relaxed": {
			labels: func(t *rapid.T) []string {
				r := drawRelaxation(t)
				before := r.approved.decide()
				used := before.Reason == policy.ReasonGranted
				return append(answered(before), fmt.Sprintf("ended %t", used && r.counts), fmt.Sprintf("kept %t", used && !r.counts))
			},
			// Every question needs a grant and has one that fits, so none is AUTO and none is Pending.
			wanted: []string{"ended true", "kept true", "class ASK", "class FORBIDDEN", "verdict Allow", "verdict Deny", "verdict Held"},
		},
		"an operation is planned": {
			labels: func(t *rapid.T) []string {
				q := drawQuestion(t)
				d := q.decide()
				p := drawPlanned(t, &q.op, d)
				return append(answered(d), fmt.Sprintf("impossible %t", p.impossible != nil), fmt.Sprintf("rejected %t", len(p.problems) > 0),
					"outcome "+string(p.outcome), "status "+string(p.verified.Status), fmt.Sprintf("taken %t", len(p.ranking.Selected) > 0))
			},
			wanted: append([]string{
				"impossible true", "impossible false", "rejected true", "rejected false", "taken true", "taken false", "status verified", "status unverified",
				"outcome " + string(intent.OutcomeAskQuestion), "outcome " + string(intent.OutcomeRequestPermission),
				"outcome " + string(intent.OutcomeProceed), "outcome " + string(intent.OutcomeDiscloseAssumption),
			}, decisions...),
		},
		"facts are declared": {
			labels: func(t *rapid.T) []string {
				known, declared := drawDeclared(t)
				without, with := classOf(t, known), classOf(t, declared)
				return []string{"class " + without.String(), "with " + with.String(), fmt.Sprintf("raised %t", without < with)}
			},
			wanted: append([]string{"raised true", "raised false"}, everyClass...),
		},
		"rules are selected": {
			labels: func(t *rapid.T) []string {
				_, rules, fit := drawSelected(t)
				return []string{fmt.Sprintf("any %t", len(fit) > 0), fmt.Sprintf("all %t", len(fit) == len(rules))}
			},
			wanted: []string{"any true", "any false", "all true"},
		},
	} {
		t.Run(name, func(t *testing.T) { shares.Check(t, rapid.Custom(test.labels), draws, test.wanted...) })
	}
}
