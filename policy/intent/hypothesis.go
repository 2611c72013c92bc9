package intent

import (
	"fmt"
)

// Bounds of a set of hypotheses (requirement I-1) and of its texts.
const (
	MinHypotheses = 2
	MaxHypotheses = 4
	// MaxTextBytes bounds one text.
	MaxTextBytes = 4096
	// MaxItems bounds one list.
	MaxItems = 32
)

// MistakeCost is what acting on a wrong hypothesis would cost.
type MistakeCost string

const (
	MistakeCostLow    MistakeCost = "Low"
	MistakeCostMedium MistakeCost = "Medium"
	MistakeCostHigh   MistakeCost = "High"
)

// rank orders costs; what is not a cost ranks above all of them.
func (c MistakeCost) rank() int {
	switch c {
	case MistakeCostLow:
		return 0
	case MistakeCostMedium:
		return 1
	case MistakeCostHigh:
		return 2
	default:
		return 3
	}
}

// Hypothesis is one reading of what was asked for. Every field must be there (requirement I-1): a text holds at least
// one word, and a list that is nil is absent, while an empty one says that there are none.
type Hypothesis struct {
	Goal             string
	ExpectedResult   string
	Audience         string
	Constraints      []string
	DefinitionOfDone string
	// MissingInformation is what the agent would still like to know.
	MissingInformation []string
	// ConfidencePercent is between 0 and 100; nil is absent.
	ConfidencePercent *int32
	MistakeCost       MistakeCost
	// EvidenceReferences point to what speaks for this reading.
	EvidenceReferences []string
}

// Reason is why a set of hypotheses or a setting is rejected.
type Reason string

const (
	// ReasonTooFew: fewer hypotheses than MinHypotheses.
	ReasonTooFew Reason = "TooFew"
	// ReasonTooMany: more hypotheses or items than the bound.
	ReasonTooMany Reason = "TooMany"
	// ReasonAbsent: the field is not there or holds no word.
	ReasonAbsent Reason = "Absent"
	// ReasonTooLong: the text has more bytes than MaxTextBytes.
	ReasonTooLong Reason = "TooLong"
	// ReasonOutOfRange: the number is outside of its bounds.
	ReasonOutOfRange Reason = "OutOfRange"
	// ReasonUnknownValue: the word is not in the vocabulary of the field.
	ReasonUnknownValue Reason = "UnknownValue"
	// ReasonDuplicate: the hypothesis says the same as an earlier one.
	ReasonDuplicate Reason = "Duplicate"
)

// Problem is one thing that is wrong, and where.
type Problem struct {
	// Field is the path, such as hypotheses[1].audience.
	Field  string
	Reason Reason
	// Message completes the path to a sentence; it holds no text that an agent wrote.
	Message string
}

// Error names the field first.
func (p Problem) Error() string { return p.Field + ": " + p.Message }

// validate gives every problem of a set before duplicates are looked for.
func validate(hypotheses []Hypothesis) []Problem {
	switch n := len(hypotheses); {
	case n < MinHypotheses:
		return []Problem{{"hypotheses", ReasonTooFew, fmt.Sprintf("has %d, needs at least %d", n, MinHypotheses)}}
	case n > MaxHypotheses:
		return []Problem{{"hypotheses", ReasonTooMany, fmt.Sprintf("has %d, may have at most %d", n, MaxHypotheses)}}
	}
	var v validation
	for i := range hypotheses {
		v.hypothesis(fmt.Sprintf("hypotheses[%d]", i), &hypotheses[i])
	}
	return v.problems
}

type validation struct{ problems []Problem }

func (v *validation) add(field string, reason Reason, format string, values ...any) {
	v.problems = append(v.problems, Problem{field, reason, fmt.Sprintf(format, values...)})
}

func (v *validation) hypothesis(path string, h *Hypothesis) {
	v.text(path+".goal", h.Goal)
	v.text(path+".expectedResult", h.ExpectedResult)
	v.text(path+".audience", h.Audience)
	v.list(path+".constraints", h.Constraints)
	v.text(path+".definitionOfDone", h.DefinitionOfDone)
	v.list(path+".missingInformation", h.MissingInformation)
	switch field := path + ".confidencePercent"; {
	case h.ConfidencePercent == nil:
		v.add(field, ReasonAbsent, "is absent")
	case *h.ConfidencePercent < 0 || *h.ConfidencePercent > 100:
		v.add(field, ReasonOutOfRange, "is %d, must be between 0 and 100", *h.ConfidencePercent)
	}
	switch field := path + ".mistakeCost"; {
	case h.MistakeCost == "":
		v.add(field, ReasonAbsent, "is absent")
	case h.MistakeCost.rank() > MistakeCostHigh.rank():
		v.add(field, ReasonUnknownValue, "must be %s, %s or %s", MistakeCostLow, MistakeCostMedium, MistakeCostHigh)
	}
	v.list(path+".evidenceReferences", h.EvidenceReferences)
}

func (v *validation) text(field, text string) {
	switch {
	case len(text) > MaxTextBytes:
		v.add(field, ReasonTooLong, "has %d bytes, may have at most %d", len(text), MaxTextBytes)
	case len(words(text)) == 0:
		v.add(field, ReasonAbsent, "is absent or holds no word")
	}
}

func (v *validation) list(field string, items []string) {
	switch {
	case items == nil:
		v.add(field, ReasonAbsent, "is absent; an empty list says that there are none")
	case len(items) > MaxItems:
		v.add(field, ReasonTooMany, "has %d items, may have at most %d", len(items), MaxItems)
	default:
		for i, item := range items {
			v.text(fmt.Sprintf("%s[%d]", field, i), item)
		}
	}
}
