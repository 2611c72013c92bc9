package steering

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"stepbeyond.dev/stepbeyond/policy"
)

// Bounds of what a State may hold, in bytes or entries.
const (
	// MaxInputs are in force at once in one session. Suspensions do not count and always fit: a kill switch is never
	// refused for want of room.
	MaxInputs = 64

	maxName       = 253
	maxMessage    = 1024
	maxSelectors  = 32
	maxValues     = 32
	maxSupersedes = 16
	maxChanges    = 16
	maxChange     = 256
	maxNextAction = 512
)

// Problem is why an event was rejected.
type Problem string

const (
	// ProblemMissing: a field that must be there is not.
	ProblemMissing Problem = "Missing"
	// ProblemInvalid: the field's value is not one of the allowed ones.
	ProblemInvalid Problem = "Invalid"
	// ProblemTooLong: the field exceeds its bound.
	ProblemTooLong Problem = "TooLong"
	// ProblemDuplicate: the session has it already.
	ProblemDuplicate Problem = "Duplicate"
	// ProblemUnknown: the session has nothing of that name.
	ProblemUnknown Problem = "Unknown"
	// ProblemNotAllowed: the input's type may not say this.
	ProblemNotAllowed Problem = "NotAllowed"
	// ProblemNotOpen: the input has been answered or superseded, or asks for no answer.
	ProblemNotOpen Problem = "NotOpen"
	// ProblemOutOfOrder: an older input has to be answered first.
	ProblemOutOfOrder Problem = "OutOfOrder"
	// ProblemSuspension: a suspension ends by withdrawal only.
	ProblemSuspension Problem = "Suspension"
	// ProblemTooMany: no room is left.
	ProblemTooMany Problem = "TooMany"
	// ProblemTooEarly: the time that the event speaks of has not come.
	ProblemTooEarly Problem = "TooEarly"
	// ProblemExpired: the input ended before it arrived.
	ProblemExpired Problem = "Expired"
	// ProblemOldEpoch: the event speaks of an epoch that is not the newest.
	ProblemOldEpoch Problem = "OldEpoch"
	// ProblemHeld: a hold is in force, so nothing may start or be prolonged.
	ProblemHeld Problem = "Held"
)

var problemText = map[Problem]string{
	ProblemMissing:    "is missing",
	ProblemInvalid:    "is not one of the allowed values",
	ProblemTooLong:    "is longer than allowed",
	ProblemDuplicate:  "is there already",
	ProblemUnknown:    "names nothing that this session has",
	ProblemNotAllowed: "is not for this type of input",
	ProblemNotOpen:    "names an input that waits for no answer",
	ProblemOutOfOrder: "names an input that comes after one still to be answered",
	ProblemSuspension: "names a suspension, which ends by withdrawal only",
	ProblemTooMany:    "exceeds what one session may have in force",
	ProblemTooEarly:   "lies before the agreed end",
	ProblemExpired:    "has expired",
	ProblemOldEpoch:   "belongs to another epoch than the session's",
	ProblemHeld:       "cannot start or be prolonged while the old plan is held",
}

// Rejection is the error of every event that changed nothing. It names the field and never repeats its value, which
// may be an agent's or a person's text.
type Rejection struct {
	// Field is the path inside the event: "revisedNextAction", "constraints.forbid[1].verbs[0]".
	Field   string
	Problem Problem
	// InputID is the input that stands in the way, for ProblemOutOfOrder and ProblemHeld.
	InputID string
}

// Error is one sentence; the input that stands in the way is named.
func (r *Rejection) Error() string {
	text := r.Field + " " + problemText[r.Problem]
	if r.InputID != "" {
		text += " (steering input " + r.InputID + ")"
	}
	return text
}

func reject(field string, problem Problem) error { return &Rejection{Field: field, Problem: problem} }

// Validate checks everything about the input that does not depend on a session, so that a front door can refuse it
// before any session sees it. The error is a [Rejection].
func (in *Input) Validate() error {
	for _, check := range []error{
		checkName("id", in.ID),
		checkLine("author", in.Author, maxName, true),
		checkLine("message", in.Message, maxMessage, false),
		in.checkType(),
		in.checkTimes(),
		in.checkSupersedes(),
		in.Constraints.check(),
	} {
		if check != nil {
			return check
		}
	}
	return nil
}

// checkType refuses what the input's type may not say.
func (in *Input) checkType() error {
	c := &in.Constraints
	switch {
	case in.Type == "":
		return reject("type", ProblemMissing)
	case in.Type != TypeContext && !in.Type.ChangesAuthority():
		return reject("type", ProblemInvalid)
	case in.Type == TypeContext && !c.empty():
		return reject("constraints", ProblemNotAllowed)
	case c.Activity != "" && in.Type != TypeSafety:
		return reject("constraints.activity", ProblemNotAllowed)
	case c.StrictScope == ScopeRelease && in.Type != TypeScope:
		return reject("constraints.strictScope", ProblemNotAllowed)
	default:
		return nil
	}
}

func (in *Input) checkTimes() error {
	if in.Time.IsZero() {
		return reject("time", ProblemMissing)
	}
	if !in.Expiration.IsZero() && !in.Expiration.After(in.Time) {
		return reject("expiration", ProblemExpired)
	}
	return nil
}

func (in *Input) checkSupersedes() error {
	if len(in.Supersedes) > maxSupersedes {
		return reject("supersedes", ProblemTooLong)
	}
	for i, id := range in.Supersedes {
		field := fmt.Sprintf("supersedes[%d]", i)
		if err := checkName(field, id); err != nil {
			return err
		}
		if id == in.ID {
			return reject(field, ProblemInvalid)
		}
	}
	return nil
}

func (c *Constraints) empty() bool {
	return len(c.ForbidCapabilities) == 0 && len(c.Forbid) == 0 && len(c.NarrowTo) == 0 && c.StrictScope == "" &&
		c.Budgets == Budgets{} && c.Activity == ""
}

func (c *Constraints) check() error {
	switch {
	case len(c.ForbidCapabilities) > maxValues:
		return reject("constraints.forbidCapabilities", ProblemTooLong)
	case !slices.Contains([]ScopeDecision{"", ScopeActivate, ScopeRelease}, c.StrictScope):
		return reject("constraints.strictScope", ProblemInvalid)
	case !slices.Contains([]Activity{"", ActivitySuspend}, c.Activity):
		return reject("constraints.activity", ProblemInvalid)
	case negative(c.Budgets.MaxMutations):
		return reject("constraints.budgets.maxMutations", ProblemInvalid)
	case negative(c.Budgets.MaxChildSessions):
		return reject("constraints.budgets.maxChildSessions", ProblemInvalid)
	}
	for i, capability := range c.ForbidCapabilities {
		if !slices.Contains(capabilities, capability) {
			return reject(fmt.Sprintf("constraints.forbidCapabilities[%d]", i), ProblemInvalid)
		}
	}
	if err := checkSelectors("constraints.forbid", c.Forbid); err != nil {
		return err
	}
	return checkSelectors("constraints.narrowTo", c.NarrowTo)
}

func negative(n *int32) bool { return n != nil && *n < 0 }

var (
	capabilities = []policy.Capability{
		policy.CapabilityReadContext, policy.CapabilityReadProject, policy.CapabilityExecuteLocal, policy.CapabilityRequestPermission,
		policy.CapabilityPublishExternal, policy.CapabilityReadUserModel, policy.CapabilityWriteUserModel, policy.CapabilityRecordEvidence,
	}
	verbs = []policy.Verb{policy.VerbCreate, policy.VerbUpdate, policy.VerbDelete, policy.VerbConnect, policy.VerbRead}
)

func checkSelectors(field string, selectors []Selector) error {
	if len(selectors) > maxSelectors {
		return reject(field, ProblemTooLong)
	}
	for i := range selectors {
		if err := selectors[i].check(fmt.Sprintf("%s[%d]", field, i)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Selector) check(field string) error {
	lists := []struct {
		name   string
		values []string
		group  bool // the empty value means the core group
	}{{"groups", s.Groups, true}, {"resources", s.Resources, false}, {"names", s.Names, false}, {"tools", s.Tools, false}}
	total := len(s.Verbs)
	for _, list := range lists {
		total += len(list.values)
		if len(list.values) > maxValues {
			return reject(field+"."+list.name, ProblemTooLong)
		}
		for i, value := range list.values {
			if list.group && value == "" {
				continue
			}
			if err := checkName(fmt.Sprintf("%s.%s[%d]", field, list.name, i), value); err != nil {
				return err
			}
		}
	}
	switch {
	case total == 0:
		return reject(field, ProblemMissing)
	case len(s.Tools) > 0 && len(s.Groups)+len(s.Resources)+len(s.Names) > 0:
		// It would fit nothing, and a person who wrote it believes that it does.
		return reject(field+".tools", ProblemNotAllowed)
	}
	for i, verb := range s.Verbs {
		if !slices.Contains(verbs, verb) {
			return reject(fmt.Sprintf("%s.verbs[%d]", field, i), ProblemInvalid)
		}
	}
	return nil
}

// checkName takes 1 to 253 printable ASCII bytes without spaces.
func checkName(field, value string) error {
	switch {
	case value == "":
		return reject(field, ProblemMissing)
	case len(value) > maxName:
		return reject(field, ProblemTooLong)
	case strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }):
		return reject(field, ProblemInvalid)
	default:
		return nil
	}
}

// checkLine takes at most limit bytes of valid UTF-8; required text is not blank.
func checkLine(field, value string, limit int, required bool) error {
	switch {
	case len(value) > limit:
		return reject(field, ProblemTooLong)
	case !utf8.ValidString(value):
		return reject(field, ProblemInvalid)
	case required && strings.TrimSpace(value) == "":
		return reject(field, ProblemMissing)
	default:
		return nil
	}
}

// checkLease takes an end that is after start and at most MaxLease away.
func checkLease(field string, start, end time.Time) error {
	if !end.After(start) || end.Sub(start) > MaxLease {
		return reject(field, ProblemInvalid)
	}
	return nil
}
