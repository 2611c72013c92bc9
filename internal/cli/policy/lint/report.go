package lint

import (
	"cmp"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/internal/cli/prose"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
)

// Severity of a finding.
type Severity string

// Severities, the worst first.
const (
	// Error: agents get past admission, or everything is refused, or a policy is not in force.
	Error Severity = "Error"
	// Warning: something that somebody wrote has no effect.
	Warning Severity = "Warning"
	// Info: nothing is wrong, and people could be asked less.
	Info Severity = "Info"
)

var severities = []Severity{Error, Warning, Info}

var styles = map[Severity]terminal.Style{Error: terminal.Red, Warning: terminal.Amber, Info: terminal.Bold}

// Check names what was looked for.
type Check string

// Checks.
const (
	CheckPolicyRefused    Check = "PolicyRefused"
	CheckNotInForce       Check = "NotInForce"
	CheckProfileMissing   Check = "ProfileMissing"
	CheckRoleEscapes      Check = "RoleEscapes"
	CheckExemptionEnded   Check = "ExemptionEnded"
	CheckExemptionUnused  Check = "ExemptionUnused"
	CheckTemplateUnused   Check = "TemplateUnused"
	CheckNeverMatches     Check = "NeverMatches"
	CheckUnknownResource  Check = "UnknownResource"
	CheckRequirementNever Check = "RequirementNeverMatches"
	CheckUncatalogued     Check = "Uncatalogued"
)

// Finding is one thing that is wrong.
type Finding struct {
	Severity Severity `json:"severity"`
	Check    Check    `json:"check"`
	// Object that it is about, as kind namespace/name.
	Object string `json:"object"`
	// Message says what is wrong, Advice what to do; each in whole sentences.
	Message string `json:"message"`
	Advice  string `json:"advice"`
	// Entry is YAML that can be put into spec.catalogue of a ClusterAgentPolicy.
	Entry string `json:"entry,omitempty"`
}

// Report is everything that was found; with -o it is written as it is.
type Report struct {
	Namespaces int       `json:"namespaces"`
	Findings   []Finding `json:"findings"`
	// NotLookedAt says what may be wrong and was not looked at, and why.
	NotLookedAt []string `json:"notLookedAt,omitempty"`
}

func (r *Report) add(findings ...Finding) { r.Findings = append(r.Findings, findings...) }

func (r *Report) count(severity Severity) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Severity == severity {
			n++
		}
	}
	return n
}

// sort puts the worst first. Of one check the order stays: it is that of the policies, or of how much it matters.
func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity))
	})
}

// margin is how far the text of a finding stands from the left.
const margin = 9

func (r *Report) text(paint terminal.Paint) string {
	b := &strings.Builder{}
	below := strings.Repeat(" ", margin)
	for i := range r.Findings {
		f := &r.Findings[i]
		word := strings.ToUpper(string(f.Severity))
		b.WriteString(paint.Text(styles[f.Severity], word) + strings.Repeat(" ", margin-len(word)) + prose.Visible(f.Object) + "\n")
		prose.Write(b, below, f.Message)
		prose.Write(b, below, f.Advice)
		for line := range strings.Lines(f.Entry) {
			b.WriteString(below + "  " + line)
		}
	}
	for _, what := range r.NotLookedAt {
		prose.Write(b, "Not looked at: ", what)
	}
	counts := prose.Count(r.count(Error), "error", "errors") + ", " + prose.Count(r.count(Warning), "warning", "warnings")
	if n := r.count(Info); n > 0 {
		counts += ", " + prose.Count(n, "hint", "hints")
	}
	b.WriteString(counts + " in " + prose.Count(r.Namespaces, "governed namespace", "governed namespaces") + ".\n")
	return b.String()
}
