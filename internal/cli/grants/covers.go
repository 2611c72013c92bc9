package grants

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
)

// How much is told of what a pattern matches, and how many objects are looked at.
const (
	maxMatchesShown = 5
	maxMatchesRead  = 5000
)

// matchesNow says which objects a pattern of names matches at this moment. Who may not list them is told so: an approval
// needs no right to look around.
func (d *desk) matchesNow(ctx context.Context, g *v1alpha1.PermissionGrant, pattern string) (string, error) {
	t := &g.Spec.Request.Operation.Target
	names, whole, err := namesOf(ctx, d.Factory, t)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("what %s matches now is not known: you may not list %s in %s", pattern, t.Resource, place(t)), nil
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("what %s matches now is not known: the API server does not list %s", pattern, t.Resource), nil
	case err != nil:
		return "", fmt.Errorf("list %s: %w", t.Resource, err)
	}
	var found []string
	for _, name := range names {
		if matches(pattern, name) {
			found = append(found, screened(name))
		}
	}
	text := fmt.Sprintf("%s %s: %d match now", t.Resource, pattern, len(found))
	if !whole {
		text += fmt.Sprintf(" among the first %d", maxMatchesRead)
	}
	if len(found) == 0 {
		return text, nil
	}
	shown := strings.Join(found[:min(len(found), maxMatchesShown)], ", ")
	if len(found) > maxMatchesShown {
		shown += ", ..."
	}
	return text + " (" + shown + ")", nil
}

func place(t *v1alpha1.GrantTarget) string {
	if t.Namespace == "" {
		return "the cluster"
	}
	return t.Namespace
}

// namesOf lists the names of the target's kind, without their contents. whole is false when there are more.
func namesOf(ctx context.Context, f *factory.Factory, t *v1alpha1.GrantTarget) (names []string, whole bool, err error) {
	config, err := f.Connection()
	if err != nil {
		return nil, false, err
	}
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, false, fmt.Errorf("make a client: %w", err)
	}
	objects := c.Resource(schema.GroupVersionResource{Group: t.Group, Version: t.Version, Resource: t.Resource}).Namespace(t.Namespace)
	for next := ""; ; {
		page, err := objects.List(ctx, metav1.ListOptions{Limit: pageSize, Continue: next})
		if err != nil {
			return nil, false, err
		}
		for i := range page.Items {
			names = append(names, page.Items[i].Name)
		}
		if next = page.Continue; next == "" || len(names) >= maxMatchesRead {
			return names, next == "", nil
		}
	}
}

// twins are the other waiting questions that a wide answer would also answer, as far as the questions themselves tell;
// Step Beyond decides.
func (d *desk) twins(ctx context.Context, g *v1alpha1.PermissionGrant, scope *v1alpha1.GrantScope) ([]string, error) {
	found, err := list(ctx, d.client, client.InNamespace(g.Namespace), client.MatchingLabels{v1alpha1.LabelSession: g.Spec.Request.Session.Name}, undecided())
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range found.Items {
		if other := &found.Items[i]; other.UID != g.UID && pendingAt(other, d.now) && covers(g, scope, other) {
			names = append(names, other.Name)
		}
	}
	return names, nil
}

// covers tells whether a wide answer to g is one to other too: the same session, epoch, caller, stage and kind of
// operation, a name and a command that match, and nothing that other is asked for beyond what g is.
func covers(g *v1alpha1.PermissionGrant, scope *v1alpha1.GrantScope, other *v1alpha1.PermissionGrant) bool {
	a, b := &g.Spec.Request, &other.Spec.Request
	at, to := a.Operation.Target, b.Operation.Target
	name := at.Name
	at.Name, to.Name, at.UID, to.UID = "", "", "", ""
	if a.Session != b.Session || a.Requester.Username != b.Requester.Username || a.Stage != b.Stage || a.Operation.Verb != b.Operation.Verb || at != to {
		return false
	}
	pattern, commands := name, []string(nil)
	if m := scope.Match; m != nil {
		commands = m.Commands
		if m.Name != "" {
			pattern = m.Name
		}
	}
	if b.Operation.Target.Name == "" || !matches(pattern, b.Operation.Target.Name) {
		return false
	}
	own, isExec := command(g)
	line, _ := command(other)
	if isExec && (len(commands) == 0 && line != own || len(commands) > 0 && !matchesAny(commands, line)) {
		return false
	}
	return asksNoMore(a, b)
}

// asksNoMore tells that every reason and requirement of b is one of a too.
func asksNoMore(a, b *v1alpha1.PermissionRequest) bool {
	known := map[string]bool{}
	for i := range a.Facts {
		known["fact "+factName(&a.Facts[i])] = true
	}
	for i := range a.Rules {
		known["rule "+a.Rules[i].Name+" "+a.Rules[i].Reason] = true
	}
	for i := range a.Requirements {
		known["requirement "+requirementKey(&a.Requirements[i])] = true
	}
	for i := range b.Facts {
		if !known["fact "+factName(&b.Facts[i])] {
			return false
		}
	}
	for i := range b.Rules {
		if !known["rule "+b.Rules[i].Name+" "+b.Rules[i].Reason] {
			return false
		}
	}
	for i := range b.Requirements {
		if !known["requirement "+requirementKey(&b.Requirements[i])] {
			return false
		}
	}
	return true
}

func requirementKey(r *v1alpha1.GrantRequirement) string {
	return fmt.Sprintf("%s %d %q", r.Name, r.Required, r.ApproverGroups)
}
