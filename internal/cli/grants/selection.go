package grants

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/exit"
	"stepbeyond.dev/stepbeyond/internal/grant"
)

// selection is which questions a command answers: names, or a selector of labels.
type selection struct {
	names    []string
	selector string
}

func (s *selection) validate() error {
	if _, err := parseSelector(s.selector); err != nil {
		return err
	}
	switch {
	case len(s.names) == 0 && s.selector == "":
		return usage("name the questions, or select them with -l; kubectl stepbeyond pending lists them")
	case len(s.names) > 0 && s.selector != "":
		return usage("names and --selector exclude each other")
	}
	for i, name := range s.names {
		s.names[i] = bare(name)
		if slices.Contains(s.names[:i], s.names[i]) {
			return usage("%s is named twice", s.names[i])
		}
	}
	return nil
}

// pending reads the selected questions, the most serious first. A named one that waits no more is an error: what somebody
// names they believe to be open.
func (s *selection) pending(ctx context.Context, d *desk) ([]*v1alpha1.PermissionGrant, error) {
	if s.selector != "" {
		return s.selected(ctx, d)
	}
	var found []*v1alpha1.PermissionGrant
	var errs []error
	for _, name := range s.names {
		g, err := d.get(ctx, name)
		if err == nil {
			err = waits(g, d)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, g)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%w; nothing was answered", err)
	}
	return found, nil
}

func (s *selection) selected(ctx context.Context, d *desk) ([]*v1alpha1.PermissionGrant, error) {
	selector, err := parseSelector(s.selector)
	if err != nil {
		return nil, err
	}
	listed, err := list(ctx, d.client, client.InNamespace(d.namespace), client.MatchingLabelsSelector{Selector: selector}, undecided())
	if err != nil {
		return nil, err
	}
	var found []*v1alpha1.PermissionGrant
	for i := range listed.Items {
		if g := &listed.Items[i]; pendingAt(g, d.now) {
			found = append(found, g)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: none in namespace %s has the labels %s", errNothing, d.namespace, s.selector)
	}
	slices.SortFunc(found, byRisk)
	return found, nil
}

// waits is an error for a grant that waits for no answer; it says where it stands.
func waits(g *v1alpha1.PermissionGrant, d *desk) error {
	status := grant.Compute(g, d.now)
	if status.State == v1alpha1.GrantPending {
		return nil
	}
	return exit.With(exit.Changed, fmt.Errorf("%s waits for no answer, it is %s: %s", g.Name, status.State, conditionMessage(&status)))
}
