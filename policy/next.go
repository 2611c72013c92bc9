package policy

import "strings"

// NextStep is the one thing that the reader of an answer can do now, as its message ends with it.
func (d *Decision) NextStep(op *Operation) string {
	answer := *d
	if answer.Grant == nil {
		answer.Grant = &GrantRef{}
	}
	return strings.TrimRight(clean(answer.next(op)), ". ")
}
