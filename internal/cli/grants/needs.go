package grants

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// reader is who reads a question.
type reader struct {
	username string
	groups   []string
	// approves tells that they hold the verb approve on the question.
	approves bool
}

// reader asks the API server who reads, and whether they may answer.
func (d *desk) reader(ctx context.Context, g *v1alpha1.PermissionGrant) (*reader, error) {
	self := &authenticationv1.SelfSubjectReview{}
	if err := d.client.Create(ctx, self); err != nil {
		return nil, fmt.Errorf("ask the API server who you are: %w", err)
	}
	access := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Group: v1alpha1.GroupVersion.Group, Resource: "permissiongrants", Verb: "approve", Namespace: g.Namespace, Name: g.Name,
	}}}
	if err := d.client.Create(ctx, access); err != nil {
		return nil, fmt.Errorf("ask the API server whether you may answer: %w", err)
	}
	return &reader{
		username: self.Status.UserInfo.Username, groups: self.Status.UserInfo.Groups,
		approves: access.Status.Allowed && !access.Status.Denied,
	}, nil
}

// needs says who has to approve, and whether the reader can.
func needs(g *v1alpha1.PermissionGrant, you *reader) []string {
	var lines []string
	anyone := requirement{}
	for i := range g.Spec.Request.Requirements {
		r := &g.Spec.Request.Requirements[i]
		if len(r.ApproverGroups) == 0 {
			anyone.people = max(anyone.people, r.Required)
			anyone.names = append(anyone.names, screened(r.Name))
			continue
		}
		groups := slices.Clone(r.ApproverGroups)
		for i := range groups {
			groups[i] = screened(groups[i])
		}
		lines = append(lines, fmt.Sprintf("%s of %s (%s)", persons(r.Required), strings.Join(groups, " or "), screened(r.Name)))
	}
	if anyone.people > 0 {
		lines = append([]string{fmt.Sprintf("%s with verb approve in %s (%s)", persons(anyone.people), g.Namespace, strings.Join(anyone.names, ", "))}, lines...)
	}
	if given, required := needed(g); given > 0 {
		lines = append(lines, fmt.Sprintf("%d of %d given", given, required))
	}
	if you == nil {
		return lines
	}
	return append(lines, you.standing(g))
}

type requirement struct {
	people int32
	names  []string
}

func persons(n int32) string {
	if n == 1 {
		return "1 person"
	}
	return fmt.Sprintf("%d people", n)
}

// standing says what the reader can do. The API server has the last word: it also knows who launched the session.
func (you *reader) standing(g *v1alpha1.PermissionGrant) string {
	request := &g.Spec.Request
	mine := func(d v1alpha1.GrantDecision) bool { return d.Approver == you.username }
	counts := len(request.Requirements) == 0 || slices.ContainsFunc(request.Requirements, func(r v1alpha1.GrantRequirement) bool {
		return len(r.ApproverGroups) == 0 || slices.ContainsFunc(r.ApproverGroups, func(group string) bool { return slices.Contains(you.groups, group) })
	})
	switch {
	case you.username == request.Requester.Username:
		return "You cannot approve: this is your own question."
	case !you.approves:
		return fmt.Sprintf("You cannot approve: you do not have the verb approve on permissiongrants in %s.", g.Namespace)
	case slices.ContainsFunc(g.Spec.Decisions, mine):
		return "You have answered already."
	case !counts:
		return "You may approve, but you are in none of the groups that count."
	case you.username == request.Requester.OnBehalfOf:
		return "The agent works for you: whether you can approve depends on the policy (approvals.sessionUser)."
	default:
		return "You can approve."
	}
}
