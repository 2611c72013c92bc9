package verification

import (
	"fmt"
	"slices"
	"strings"
)

// Claim is one material statement that a delivery wants to make. Every claim counts as material: a remark that is none
// is not handed in.
type Claim struct {
	// ID tells claims apart; unique in a delivery.
	ID   string
	Text string
	// Scope names the elements that the claim speaks of, such as components or files; at least one.
	Scope []string
}

// Method is how a check relates to what it speaks for.
type Method string

const (
	// MethodDirect: the check exercised the elements themselves.
	MethodDirect Method = "Direct"
	// MethodIndirect: the check exercised something else from which the elements' state is concluded, such as a dry run
	// or the build of a dependency. It is useful and verifies no element.
	MethodIndirect Method = "Indirect"
)

// Result of a check.
type Result string

const (
	ResultPassed Result = "Passed"
	ResultFailed Result = "Failed"
	// ResultNotRun: the check gave no result. An answer of the runtime (denied, pending, held, deferred) is no result of a
	// check either (requirement B-8).
	ResultNotRun Result = "NotRun"
)

// Check is one thing that was done, or could not be done, to find out whether a claim holds.
type Check struct {
	Method Method
	// Executed is what was run, such as a command or the name of a test.
	Executed string
	// Evidence references the output; a passed check without any supports nothing.
	Evidence []string
	Result   Result
	// Scope names the elements that the check covers. A failed check that covers none of the stated ones counts against
	// the whole claim.
	Scope []string
}

// Record is everything that speaks for or against one claim (requirement V-1).
type Record struct {
	// ClaimID is the claim that the record belongs to.
	ClaimID string
	Checks  []Check
	// UncheckedElements were not checked, whatever the checks cover.
	UncheckedElements []string
	// EnvironmentBlockers kept checks from running, such as a missing cluster.
	EnvironmentBlockers []string
}

// Reason is why a claim or an element of its scope is not delivered as stated, or why input is rejected.
type Reason string

const (
	// ReasonCheckFailed: a check failed on it.
	ReasonCheckFailed Reason = "CheckFailed"
	// ReasonUnchecked: the record names it as unchecked.
	ReasonUnchecked Reason = "Unchecked"
	// ReasonCheckedIndirectly: only an indirect check passed on it.
	ReasonCheckedIndirectly Reason = "CheckedIndirectly"
	// ReasonBlocked: no check covers it, and the environment kept checks from running.
	ReasonBlocked Reason = "Blocked"
	// ReasonNoCheck: no check that passed covers it.
	ReasonNoCheck Reason = "NoCheck"

	// ReasonNoRecord: the claim has no record.
	ReasonNoRecord Reason = "NoRecord"
	// ReasonSeveralRecords: the claim has more than one record, and none of them can be preferred.
	ReasonSeveralRecords Reason = "SeveralRecords"

	// ReasonAbsent: the field is not there or blank.
	ReasonAbsent Reason = "Absent"
	// ReasonDuplicate: the name is that of an earlier one.
	ReasonDuplicate Reason = "Duplicate"
	// ReasonUnknownValue: the word is not in the vocabulary of the field.
	ReasonUnknownValue Reason = "UnknownValue"
)

// Problem is one thing that is wrong in the input, and where.
type Problem struct {
	// Field is the path, such as records[1].checks[0].result.
	Field  string
	Reason Reason
	// Message completes the path to a sentence; it holds no text that an agent wrote.
	Message string
}

// Error names the field first.
func (p Problem) Error() string { return p.Field + ": " + p.Message }

type validation struct{ problems []Problem }

func (v *validation) add(field string, reason Reason, message string) {
	v.problems = append(v.problems, Problem{field, reason, message})
}

func (v *validation) claims(claims []Claim) {
	seen := map[string]bool{}
	for i, c := range claims {
		path := fmt.Sprintf("claims[%d]", i)
		v.text(path+".id", c.ID)
		if c.ID != "" && seen[c.ID] {
			v.add(path+".id", ReasonDuplicate, "is that of an earlier claim")
		}
		seen[c.ID] = true
		v.text(path+".text", c.Text)
		if len(c.Scope) == 0 {
			v.add(path+".scope", ReasonAbsent, "is absent: a claim names at least one element")
		}
		v.list(path+".scope", c.Scope)
	}
}

func (v *validation) records(records []Record) {
	for i, r := range records {
		path := fmt.Sprintf("records[%d]", i)
		v.text(path+".claimID", r.ClaimID)
		for j, c := range r.Checks {
			at := fmt.Sprintf("%s.checks[%d]", path, j)
			v.word(at+".method", string(c.Method), string(MethodDirect), string(MethodIndirect))
			v.word(at+".result", string(c.Result), string(ResultPassed), string(ResultFailed), string(ResultNotRun))
			v.text(at+".executed", c.Executed)
			v.list(at+".evidence", c.Evidence)
			v.list(at+".scope", c.Scope)
		}
		v.list(path+".uncheckedElements", r.UncheckedElements)
		v.list(path+".environmentBlockers", r.EnvironmentBlockers)
	}
}

func (v *validation) text(field, text string) {
	if strings.TrimSpace(text) == "" {
		v.add(field, ReasonAbsent, "is absent or blank")
	}
}

func (v *validation) list(field string, items []string) {
	for i, item := range items {
		v.text(fmt.Sprintf("%s[%d]", field, i), item)
	}
}

func (v *validation) word(field, word string, known ...string) {
	switch {
	case word == "":
		v.add(field, ReasonAbsent, "is absent")
	case !slices.Contains(known, word):
		v.add(field, ReasonUnknownValue, "must be one of "+strings.Join(known, ", "))
	}
}
