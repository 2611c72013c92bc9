package grants

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/span"
	"stepbeyond.dev/stepbeyond/internal/cli/table"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
	"stepbeyond.dev/stepbeyond/internal/screen"
)

// lookBack is how far the header of a queue looks back.
const lookBack = 24 * time.Hour

// maxGroups is how many groups of approvers the wide header tells apart.
const maxGroups = 5

// queue is what waits, and what has ended and is still there.
type queue struct {
	now            time.Time
	waiting, ended []*v1alpha1.PermissionGrant
}

// tally counts answers.
type tally struct {
	approved, denied int
	took             []time.Duration
}

func (t *tally) add(approved bool, took time.Duration) {
	if approved {
		t.approved++
	} else {
		t.denied++
	}
	t.took = append(t.took, took)
}

// String says nothing of a median over nothing.
func (t *tally) String() string {
	text := fmt.Sprintf("%d approved, %d denied", t.approved, t.denied)
	if len(t.took) == 0 {
		return text
	}
	slices.Sort(t.took)
	return text + ", median answer " + span.Text(t.took[len(t.took)/2])
}

// header says how the queue is. Only what the grants that are still there can tell is told: a grant is deleted some time
// after its end, and then nobody knows of it here.
func (q *queue) header(wide bool) []string {
	first := "Nothing is pending."
	if n := len(q.waiting); n > 0 {
		oldest := slices.MinFunc(q.waiting, byAge)
		first = fmt.Sprintf("%d pending, oldest %s.", n, age(oldest, q.now))
	}
	since, period := q.now.Add(-lookBack), "Last 24 h"
	if oldest := q.oldest(); oldest.After(since) {
		since, period = oldest, "Since "+span.Text(q.now.Sub(oldest))+" ago (oldest grant kept)"
	}
	all, byGroup := q.tallies(since)
	lines := []string{first}
	if len(q.waiting)+len(q.ended) > 0 {
		lines[0] += " " + period + ": " + all.String() + "."
	}
	if !wide {
		if hint := " -o wide: user, age, rule."; len(q.waiting) > 0 && len(lines[0])+len(hint) <= table.Width {
			lines[0] += hint
		}
		return lines
	}
	for i, group := range slices.Sorted(maps.Keys(byGroup)) {
		if i == maxGroups {
			lines = append(lines, fmt.Sprintf("  and %d more groups", len(byGroup)-maxGroups))
			break
		}
		lines = append(lines, fmt.Sprintf("  by %s: %s", screened(group), byGroup[group]))
	}
	return lines
}

// oldest is when the oldest grant that is still there was asked.
func (q *queue) oldest() time.Time {
	oldest := q.now
	for _, grants := range [][]*v1alpha1.PermissionGrant{q.waiting, q.ended} {
		for _, g := range grants {
			if g.CreationTimestamp.Time.Before(oldest) {
				oldest = g.CreationTimestamp.Time
			}
		}
	}
	return oldest
}

// tallies counts what was answered since a time, also by the groups that let an approver count.
func (q *queue) tallies(since time.Time) (all *tally, byGroup map[string]*tally) {
	all, byGroup = &tally{}, map[string]*tally{}
	for _, g := range q.ended {
		approved, at, ok := answered(g)
		if !ok || at.Before(since) {
			continue
		}
		took := at.Sub(g.CreationTimestamp.Time)
		all.add(approved, took)
		groups := map[string]bool{}
		for i := range g.Spec.Decisions {
			for _, group := range g.Spec.Decisions[i].ApproverGroups {
				groups[group] = true
			}
		}
		for group := range groups {
			if byGroup[group] == nil {
				byGroup[group] = &tally{}
			}
			byGroup[group].add(approved, took)
		}
	}
	return all, byGroup
}

// answered tells how people decided a question, and when; ok is false when they did not.
func answered(g *v1alpha1.PermissionGrant) (approved bool, at time.Time, ok bool) {
	decided := meta.FindStatusCondition(g.Status.Conditions, string(v1alpha1.ConditionDecided))
	if decided == nil || len(g.Spec.Decisions) == 0 {
		return false, time.Time{}, false
	}
	last := &g.Spec.Decisions[len(g.Spec.Decisions)-1]
	if last.DecidedTime == nil {
		return false, time.Time{}, false
	}
	switch v1alpha1.ConditionReason(decided.Reason) {
	case v1alpha1.ReasonRequirementsMet:
		return true, last.DecidedTime.Time, true
	case v1alpha1.ReasonApproverDenied:
		return false, last.DecidedTime.Time, true
	default:
		return false, time.Time{}, false
	}
}

// soon is when a question that expires stands out.
const soon = 30 * time.Minute

// left is the time until a question expires.
func left(g *v1alpha1.PermissionGrant, now time.Time) table.Cell {
	rest := g.Spec.Request.DecideByTime.Sub(now)
	cell := table.Cell{Text: span.Text(rest)}
	if rest < soon {
		cell.Style = terminal.Amber
	}
	return cell
}

func age(g *v1alpha1.PermissionGrant, now time.Time) string {
	return span.Text(now.Sub(g.CreationTimestamp.Time))
}

// screened is a name that somebody else chose.
func screened(name string) string { return screen.Line(name, maxName) }
