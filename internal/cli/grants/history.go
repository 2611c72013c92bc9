package grants

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/span"
	"stepbeyond.dev/stepbeyond/internal/screen"
)

// answers are what people decided, in order.
func answers(g *v1alpha1.PermissionGrant) []string {
	var lines []string
	for i := range g.Spec.Decisions {
		d := &g.Spec.Decisions[i]
		verb := "approved"
		if d.Verdict == v1alpha1.VerdictDeny {
			verb = "denied"
		}
		line := fmt.Sprintf("%s %s by %s", moment(d.DecidedTime), verb, screened(d.Approver))
		if d.Verdict == v1alpha1.VerdictApprove {
			line += ", " + width(&d.Scope)
		}
		lines = append(lines, said(line, d.Reason))
	}
	if r := g.Spec.Revocation; r != nil {
		lines = append(lines, said(fmt.Sprintf("%s revoked by %s", moment(r.Time), screened(r.By)), r.Reason))
	}
	if r := g.Spec.Reopening; r != nil {
		lines = append(lines, said(fmt.Sprintf("%s reopened by %s", moment(r.Time), screened(r.By)), r.Reason))
	}
	return lines
}

func said(line, reason string) string {
	if reason == "" {
		return line
	}
	return line + ": " + quoted(reason)
}

// moment is a time to the second; unstamped ones are named.
func moment(t *metav1.Time) string {
	if t == nil {
		return "(no time)"
	}
	return t.UTC().Format(time.RFC3339)
}

// width says how wide an answer is: "exactly and once", "for 30m, 20 uses, name web-*".
func width(scope *v1alpha1.GrantScope) string {
	var parts []string
	switch scope.Type {
	case v1alpha1.ScopeSession:
		parts = append(parts, "for the session")
	case v1alpha1.ScopeTimeBoxed:
		parts = append(parts, "for "+span.Text(time.Duration(scope.DurationSeconds)*time.Second))
	default:
		return "exactly and once"
	}
	if scope.Uses > 0 {
		parts = append(parts, fmt.Sprintf("%d uses", scope.Uses))
	}
	if m := scope.Match; m != nil {
		if m.Name != "" {
			parts = append(parts, "name "+screened(m.Name))
		}
		for _, command := range m.Commands {
			parts = append(parts, "command "+quoted(command))
		}
	}
	return strings.Join(parts, ", ")
}

// uses are what became of the attempts.
func uses(g *v1alpha1.PermissionGrant) []string {
	var lines []string
	for i := range g.Status.Uses {
		use := &g.Status.Uses[i]
		line := fmt.Sprintf("%d: %s, begun %s, %d attempts", use.Index, use.Outcome, moment(&use.ReservedTime), len(use.Attempts))
		if use.Name != "" {
			line += ", on " + screened(use.Name)
		}
		if use.Effect != "" {
			line += ": " + screen.Line(use.Effect, maxLine)
		}
		if use.DecisionID != "" {
			line += " [" + screened(use.DecisionID) + "]"
		}
		lines = append(lines, line)
	}
	return lines
}

// conditionMessage says in a sentence where a grant stands: the message of Approved, which goes on after the answer.
func conditionMessage(status *v1alpha1.PermissionGrantStatus) string {
	if c := meta.FindStatusCondition(status.Conditions, string(v1alpha1.ConditionApproved)); c != nil {
		return screen.Line(c.Message, maxLine)
	}
	return string(status.Reason)
}

func lower(s string) string { return strings.ToLower(s) }
