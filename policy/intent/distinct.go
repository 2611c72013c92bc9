package intent

import (
	"fmt"
	"slices"
	"strings"
)

// Set is two to four hypotheses of which no two say the same.
type Set struct {
	Hypotheses []Hypothesis
	// Collapsed are the duplicates that were found; empty for none.
	Collapsed []Pair
	// LexiconVersion that told duplicates from alternatives.
	LexiconVersion string
}

// Pair is two positions in the declared list that say the same.
type Pair struct{ Kept, Dropped int }

// Accept checks the declared hypotheses (requirement I-1) and collapses duplicates (I-2). With any problem there is no
// set. More than MaxHypotheses is a problem even when duplicates would collapse to fewer.
//
// Of duplicates the first wording stays, with the lower confidence, the higher mistake cost, and what is missing and
// what speaks for any of them: saying a thing twice makes nothing more certain or cheaper.
func Accept(hypotheses []Hypothesis, lexicon *Lexicon) (Set, []Problem) {
	if problems := validate(hypotheses); len(problems) > 0 {
		return Set{}, problems
	}
	set := Set{LexiconVersion: lexicon.Version()}
	first := map[key]int{}
	var origin []int // of each kept hypothesis, its place in the declared list
	for i := range hypotheses {
		k := keyOf(&hypotheses[i], lexicon)
		at, known := first[k]
		if !known {
			first[k] = len(set.Hypotheses)
			set.Hypotheses = append(set.Hypotheses, hypotheses[i])
			origin = append(origin, i)
			continue
		}
		set.Hypotheses[at] = merge(set.Hypotheses[at], hypotheses[i])
		set.Collapsed = append(set.Collapsed, Pair{Kept: origin[at], Dropped: i})
	}
	if len(set.Hypotheses) >= MinHypotheses {
		return set, nil
	}
	var problems []Problem
	for _, pair := range set.Collapsed {
		problems = append(problems, Problem{
			Field: fmt.Sprintf("hypotheses[%d]", pair.Dropped), Reason: ReasonDuplicate,
			Message: fmt.Sprintf("says the same as hypotheses[%d]; %d distinct ones are needed", pair.Kept, MinHypotheses),
		})
	}
	return Set{}, problems
}

// Same tells whether two hypotheses are duplicates: goal, expected result, audience, constraints and definition of done
// agree up to case, punctuation, articles and synonyms. The order of words and every negation count; the order of
// constraints does not (requirement I-2).
func Same(a, b *Hypothesis, lexicon *Lexicon) bool { return keyOf(a, lexicon) == keyOf(b, lexicon) }

// key is what duplicates agree in.
type key struct{ goal, expectedResult, audience, constraints, definitionOfDone string }

func keyOf(h *Hypothesis, l *Lexicon) key {
	constraints := make([]string, 0, len(h.Constraints))
	for _, constraint := range h.Constraints {
		constraints = append(constraints, l.canonical(constraint))
	}
	slices.Sort(constraints)
	return key{
		goal: l.canonical(h.Goal), expectedResult: l.canonical(h.ExpectedResult), audience: l.canonical(h.Audience),
		constraints: strings.Join(slices.Compact(constraints), "\n"), definitionOfDone: l.canonical(h.DefinitionOfDone),
	}
}

func merge(kept, dropped Hypothesis) Hypothesis {
	lower := min(*kept.ConfidencePercent, *dropped.ConfidencePercent)
	kept.ConfidencePercent = &lower
	if dropped.MistakeCost.rank() > kept.MistakeCost.rank() {
		kept.MistakeCost = dropped.MistakeCost
	}
	kept.MissingInformation = union(kept.MissingInformation, dropped.MissingInformation)
	kept.EvidenceReferences = union(kept.EvidenceReferences, dropped.EvidenceReferences)
	return kept
}

// union keeps the order of first mention and leaves its arguments alone.
func union(a, b []string) []string {
	joined := make([]string, 0, len(a)+len(b))
	for _, item := range slices.Concat(a, b) {
		if !slices.Contains(joined, item) {
			joined = append(joined, item)
		}
	}
	return joined
}
