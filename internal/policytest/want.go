package policytest

import (
	"fmt"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

var verdicts = []policy.Verdict{policy.VerdictAllow, policy.VerdictDeny, policy.VerdictPending, policy.VerdictHeld}

// check names what no answer could ever be.
func (w *Want) check() []string {
	var problems []string
	if _, ok := policy.ParseClass(w.Class); !ok {
		problems = append(problems, fmt.Sprintf("class: %q is none of AUTO, AUTO_WITH_DISCLOSURE, ASK and FORBIDDEN", w.Class))
	}
	if !slices.Contains(verdicts, w.Verdict) {
		problems = append(problems, fmt.Sprintf("verdict: %q is none of Allow, Deny, Pending and Held", w.Verdict))
	}
	if w.WouldBe != nil && w.WouldBe.Class != "" {
		if _, ok := policy.ParseClass(w.WouldBe.Class); !ok {
			problems = append(problems, fmt.Sprintf("wouldBe.class: unknown class %q", w.WouldBe.Class))
		}
	}
	return problems
}

// compare says how the answer differs from the wanted one, field by field.
func (w *Want) compare(d *policy.Decision, op *policy.Operation) []Difference {
	c := &comparison{}
	c.equal("class", w.Class, d.Class.String())
	c.equal("verdict", string(w.Verdict), string(d.Verdict))
	reasons, rules := []string{string(d.Reason)}, []string{}
	for _, detail := range d.Details {
		reasons = append(reasons, detail.Code)
		if detail.Rule != "" && !slices.Contains(rules, detail.Rule) {
			rules = append(rules, detail.Rule)
		}
	}
	c.among("reasons", w.Reasons, reasons)
	c.among("rules", w.Rules, rules)
	if w.Requirements != nil {
		c.requirements(w.Requirements, d.Approvals.Requirements)
	}
	if w.Disclosures != nil {
		c.disclosures(*w.Disclosures, d.Disclosures)
	}
	if w.WouldBe != nil {
		c.wouldBe(w.WouldBe, d.WouldBe)
	}
	if d.Verdict != policy.VerdictAllow {
		message := d.Message(op, "test")
		for _, text := range w.Detail {
			c.has("detail", text, message)
		}
		_, next, _ := strings.Cut(message, " Next: ")
		c.has("next", w.Next, next)
	} else if w.Next != "" || len(w.Detail) > 0 {
		c.add("next", "a message", "none, because the operation is allowed")
	}
	return c.differences
}

// comparison gathers the fields that differ.
type comparison struct{ differences []Difference }

func (c *comparison) add(field, want, got string) {
	c.differences = append(c.differences, Difference{Field: field, Want: want, Got: got})
}

func (c *comparison) equal(field, want, got string) {
	if want != got {
		c.add(field, want, got)
	}
}

func (c *comparison) among(field string, want, got []string) {
	for _, entry := range want {
		if !slices.Contains(got, entry) {
			c.add(field, entry, list(got))
		}
	}
}

func (c *comparison) has(field, text, got string) {
	if !strings.Contains(got, text) {
		c.add(field, fmt.Sprintf("the text %q", text), fmt.Sprintf("%q", got))
	}
}

// requirements are compared whole: one too many stops an approval as surely as one too few opens it.
func (c *comparison) requirements(want []string, requirements []policy.Requirement) {
	var got []string
	missing := slices.Clone(want)
	extra := false
	for _, r := range requirements {
		got = append(got, r.Name)
		short := shortName(r.Name)
		i := slices.IndexFunc(missing, func(name string) bool { return name == r.Name || name == short })
		if i < 0 {
			extra = true
			continue
		}
		missing = slices.Delete(missing, i, i+1)
	}
	if extra || len(missing) > 0 {
		c.add("requirements", "exactly "+list(want), list(got))
	}
}

func (c *comparison) disclosures(want, got []string) {
	if len(want) != len(got) {
		c.add("disclosures", list(want), list(got))
		return
	}
	for i := range want {
		c.has("disclosures", want[i], got[i])
	}
}

func (c *comparison) wouldBe(want *WantWouldBe, rules []policy.WouldBe) {
	var class policy.Class
	names := []string{}
	for _, rule := range rules {
		class = max(class, rule.Class)
		names = append(names, rule.Rule)
	}
	if want.Class != "" {
		c.equal("wouldBe.class", want.Class, class.String())
	}
	wanted := slices.Sorted(slices.Values(want.Rules))
	if slices.Sort(names); !slices.Equal(wanted, names) {
		c.add("wouldBe.rules", "exactly "+list(wanted), list(names))
	}
}

func list(entries []string) string { return "[" + strings.Join(entries, ", ") + "]" }
