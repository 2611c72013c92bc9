package sessions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/span"
	"stepbeyond.dev/stepbeyond/internal/cli/table"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
	"stepbeyond.dev/stepbeyond/internal/screen"
)

// stateGone is shown of a session that was deleted.
const stateGone = "Gone"

// maxText bounds a name that somebody else chose, before the table cuts it.
const maxText = 253

// node is a session in its place.
type node struct {
	session *v1alpha1.AgentSession
	depth   int
	gone    bool
}

// tree orders sessions by namespace and name, each child behind its parent. A child whose parent is not listed stands at
// the top, and so do sessions that name each other in a circle.
func tree(sessions []v1alpha1.AgentSession) []node {
	all := make([]*v1alpha1.AgentSession, len(sessions))
	there := map[types.UID]bool{}
	for i := range sessions {
		all[i] = &sessions[i]
		there[sessions[i].UID] = true
	}
	slices.SortFunc(all, func(a, b *v1alpha1.AgentSession) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	children := map[types.UID][]*v1alpha1.AgentSession{}
	for _, s := range all {
		if p := s.Spec.Parent; p != nil && there[p.UID] && p.UID != s.UID {
			children[p.UID] = append(children[p.UID], s)
		}
	}
	var nodes []node
	placed := map[types.UID]bool{}
	var place func(s *v1alpha1.AgentSession, depth int)
	place = func(s *v1alpha1.AgentSession, depth int) {
		if placed[s.UID] {
			return
		}
		placed[s.UID] = true
		nodes = append(nodes, node{session: s, depth: depth})
		for _, child := range children[s.UID] {
			place(child, depth+1)
		}
	}
	for _, s := range all {
		if p := s.Spec.Parent; p == nil || !there[p.UID] {
			place(s, 0)
		}
	}
	for _, s := range all {
		place(s, 0)
	}
	return nodes
}

func columns(all, wide, watched bool) []table.Column {
	var list []table.Column
	if all {
		list = append(list, table.Column{Name: "NAMESPACE", Least: 12})
	}
	list = append(list, table.Column{Name: "SESSION", Least: 24}, table.Column{Name: "STATE", Least: 10}, table.Column{Name: "GUARANTEE"},
		table.Column{Name: "PENDING"}, table.Column{Name: "EPOCH"}, table.Column{Name: "USER", Least: 17}, table.Column{Name: "AGE"})
	if wide {
		list = append(list, table.Column{Name: "POD", Least: 8}, table.Column{Name: "LOST", Least: 8})
	}
	if watched {
		for i := range list {
			switch list[i].Name {
			case "SESSION", "STATE", "GUARANTEE", "USER":
				list[i].Room = 18
			}
		}
	}
	return list
}

func row(n *node, now time.Time, all, wide bool) table.Row {
	s := n.session
	var r table.Row
	if all {
		r = append(r, table.Cell{Text: s.Namespace})
	}
	name := s.Name
	if n.depth > 0 {
		name = strings.Repeat("   ", n.depth-1) + "`- " + name
	}
	pending := "-"
	if s.Status.PendingGrants != nil {
		pending = fmt.Sprint(*s.Status.PendingGrants)
	}
	guarantee := table.Cell{Text: string(s.Status.Guarantee)}
	if len(s.Status.Degraded) > 0 {
		guarantee = table.Cell{Text: guarantee.Text + " !", Style: terminal.Amber}
	}
	r = append(r, table.Cell{Text: name}, state(n), guarantee, table.Cell{Text: pending}, table.Cell{Text: fmt.Sprint(max(1, s.Status.Epoch))},
		table.Cell{Text: screen.Line(s.Spec.UserName, maxText)}, table.Cell{Text: span.Text(now.Sub(s.CreationTimestamp.Time))})
	if !wide {
		return r
	}
	pod := "-"
	if pods := s.Status.LivePods; len(pods) > 0 {
		pod = pods[0].Name
		if len(pods) > 1 {
			pod += fmt.Sprintf(" (+%d)", len(pods)-1)
		}
	}
	lost := "-"
	if len(s.Status.Degraded) > 0 {
		names := make([]string, len(s.Status.Degraded))
		for i, l := range s.Status.Degraded {
			names[i] = string(l)
		}
		lost = strings.Join(names, ", ")
	}
	return append(r, table.Cell{Text: pod}, table.Cell{Text: lost})
}

// state is the state of a session, with the reason where it is not the state's own name: a session whose ancestor is
// suspended is Active and cannot write.
func state(n *node) table.Cell {
	s := n.session
	if n.gone {
		return table.Cell{Text: stateGone, Style: terminal.Faint}
	}
	word := string(s.Status.State)
	if word == "" {
		word = "-"
	}
	ready := meta.FindStatusCondition(s.Status.Conditions, string(v1alpha1.ConditionReady))
	if ready != nil && ready.Status != "True" && ready.Reason != word {
		word += ": " + ready.Reason
	}
	cell := table.Cell{Text: word}
	switch {
	case s.Status.State == v1alpha1.SessionEnded:
		cell.Style = terminal.Faint
	case ready != nil && ready.Status != "True":
		cell.Style = terminal.Amber
	case s.Status.State == v1alpha1.SessionActive:
		cell.Style = terminal.Green
	}
	return cell
}

// gist is what a line says of a session, but for its age.
func gist(s *v1alpha1.AgentSession) string {
	n := node{session: s}
	pending := int32(0)
	if s.Status.PendingGrants != nil {
		pending = *s.Status.PendingGrants
	}
	return fmt.Sprintf("%s %s %v %d %d", state(&n).Text, s.Status.Guarantee, s.Status.Degraded, pending, s.Status.Epoch)
}
