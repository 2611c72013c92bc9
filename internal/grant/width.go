package grant

import (
	"fmt"
	"slices"
	"time"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

// width is what the counted approvals give together.
type width struct {
	// wide: it covers more than the operation that was asked about.
	wide bool
	// uses is how many operations it covers.
	uses int32
	// within is how long after the last approval the last use must have begun.
	within time.Duration
	// name and commands are patterns; empty for what the question names.
	name     string
	commands []string
}

// exactWidth is the one operation asked about, once.
func exactWidth(request *v1alpha1.PermissionRequest) width {
	return width{uses: request.MaxUses, within: time.Duration(request.UseWithinSeconds) * time.Second}
}

// widthOf is the narrowest that all approvals share: in each respect the least that one of them gives. Patterns count only
// where all give the same, because what two patterns share is not what anybody has looked at.
func widthOf(request *v1alpha1.PermissionRequest, approvals []*v1alpha1.GrantDecision) width {
	if len(approvals) == 0 {
		return exactWidth(request)
	}
	shared := given(request, &approvals[0].Scope)
	for _, d := range approvals[1:] {
		shared = shared.narrowedTo(given(request, &d.Scope))
	}
	if !shared.wide {
		return exactWidth(request)
	}
	return shared
}

// given reads one answer. What an answer of a wider scope leaves out is its least: admission fills in what the policy says.
// A question that names no object has no other answer than the exact one.
func given(request *v1alpha1.PermissionRequest, scope *v1alpha1.GrantScope) width {
	w := width{wide: true, uses: max(1, scope.Uses), within: time.Duration(request.UseWithinSeconds) * time.Second}
	switch {
	case request.Operation.Target.Name == "":
		return exactWidth(request)
	case scope.Type == v1alpha1.ScopeSession:
		return w
	case scope.Type == v1alpha1.ScopeTimeBoxed:
		w.within = time.Duration(scope.DurationSeconds) * time.Second
		if scope.Match != nil {
			w.name, w.commands = scope.Match.Name, slices.Sorted(slices.Values(scope.Match.Commands))
		}
		return w
	default:
		return exactWidth(request)
	}
}

func (w width) narrowedTo(other width) width {
	w.wide = w.wide && other.wide
	w.uses = min(w.uses, other.uses)
	w.within = min(w.within, other.within)
	if w.name != other.name {
		w.name = ""
	}
	if !slices.Equal(w.commands, other.commands) {
		w.commands = nil
	}
	return w
}

// toEngine is what the engine compares other operations with; nil for an exact approval.
func (w *width) toEngine(g *v1alpha1.PermissionGrant) *policy.Width {
	if !w.wide {
		return nil
	}
	return &policy.Width{Asked: AskedOf(&g.Spec.Request), Name: w.name, Commands: w.commands}
}

// AskedOf is what a question shows, as the engine compares it.
func AskedOf(request *v1alpha1.PermissionRequest) policy.Asked {
	target := &request.Operation.Target
	asked := policy.Asked{
		SessionUID: string(request.Session.UID), Epoch: request.Session.Epoch, Requester: request.Requester.Username,
		Stage: policy.Stage(request.Stage), Verb: policy.Verb(request.Operation.Verb),
		Group: target.Group, Resource: target.Resource, Subresource: target.Subresource,
		Namespace: target.Namespace, Name: target.Name,
		Command: request.Operation.Command, Manner: request.Operation.Manner,
	}
	for i := range request.Facts {
		f := &request.Facts[i]
		asked.Facts = append(asked.Facts, policy.AskedFact{Fact: string(f.Fact), Value: string(f.Value), Why: f.Why})
	}
	for i := range request.Rules {
		asked.Rules = append(asked.Rules, request.Rules[i].Name)
	}
	for i := range request.Requirements {
		r := &request.Requirements[i]
		asked.Requirements = append(asked.Requirements, policy.Requirement{Name: r.Name, Required: r.Required, ApproverGroups: r.ApproverGroups})
	}
	return asked
}

// sentence says in the approvers' terms what a wide approval covers; empty for an exact one.
func (w *width) sentence(g *v1alpha1.PermissionGrant) string {
	if !w.wide {
		return ""
	}
	text := fmt.Sprintf("%s, within %s", displayTarget(&g.Spec.Request.Operation, w), w.within)
	for i, command := range w.commands {
		if i == maxCommandsShown {
			return text + fmt.Sprintf(", and %d more commands", len(w.commands)-i)
		}
		text += fmt.Sprintf(", command %q", command)
	}
	return text
}

// maxCommandsShown keeps a condition's message short; the answers hold them all.
const maxCommandsShown = 4
