package grants

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/grant"
	"stepbeyond.dev/stepbeyond/policy"
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
		if policy.MatchName(pattern, name) {
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

// twins are the other waiting questions that a wide answer would also answer, under the policies of now.
func (d *desk) twins(ctx context.Context, g *v1alpha1.PermissionGrant, scope *v1alpha1.GrantScope) ([]string, error) {
	found, err := list(ctx, d.client, client.InNamespace(g.Namespace), client.MatchingLabels{v1alpha1.LabelSession: g.Spec.Request.Session.Name}, undecided())
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range found.Items {
		if other := &found.Items[i]; other.UID != g.UID && pendingAt(other, d.now) && covers(g, scope, other, d.now) {
			names = append(names, other.Name)
		}
	}
	return names, nil
}

// covers asks the engine whether a wide answer to one question would be one to the other too, under the same policies.
func covers(g *v1alpha1.PermissionGrant, scope *v1alpha1.GrantScope, other *v1alpha1.PermissionGrant, now time.Time) bool {
	const anyIdentity = "the policies of now"
	asked := grant.AskedOf(&g.Spec.Request)
	answer := policy.Grant{
		Name: g.Name, State: policy.GrantApproved, Stage: asked.Stage, Requester: asked.Requester, SessionUID: asked.SessionUID, Epoch: asked.Epoch,
		Expiration: now.Add(time.Second), UsesLeft: 1, PolicyIdentity: anyIdentity, Width: &policy.Width{Asked: asked},
	}
	if m := scope.Match; m != nil {
		answer.Width.Name, answer.Width.Commands = m.Name, m.Commands
	}
	twin := grant.AskedOf(&other.Spec.Request)
	return answer.Covers(&twin, anyIdentity, now)
}
