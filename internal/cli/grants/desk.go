// Package grants are the commands of kubectl stepbeyond about questions and their answers: pending, show, why, approve,
// deny, revoke and reopen. Everything that an agent can have written is shown through package screen.
package grants

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/exit"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
	"stepbeyond.dev/stepbeyond/internal/grant"
	"stepbeyond.dev/stepbeyond/policy"
)

// resource is how kubectl names a grant.
const resource = "permissiongrant.stepbeyond.dev"

// selectState is the selectable field of the definition.
const selectState = "status.state"

// pageSize is kubectl's.
const pageSize = 500

// desk is what a command works with: the API server, a namespace, and who reads.
type desk struct {
	*factory.Factory
	client    client.WithWatch
	namespace string
	paint     terminal.Paint
	now       time.Time
}

func open(f *factory.Factory) (*desk, error) {
	namespace, err := f.WorkNamespace()
	if err != nil {
		return nil, err
	}
	c, err := f.Client()
	if err != nil {
		return nil, err
	}
	return &desk{Factory: f, client: c, namespace: namespace, paint: terminal.For(f.Out), now: time.Now()}, nil
}

// get reads a grant of the desk's namespace.
func (d *desk) get(ctx context.Context, name string) (*v1alpha1.PermissionGrant, error) {
	g := &v1alpha1.PermissionGrant{}
	err := d.client.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: name}, g)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s is not in namespace %s: its agent asked anew, or it was kept long enough; kubectl stepbeyond pending -n %s lists what is asked: %w",
			name, d.namespace, d.namespace, err)
	case err != nil:
		return nil, fmt.Errorf("read permissiongrant %s/%s: %w", d.namespace, name, err)
	}
	return g, nil
}

// list reads grants in pages. Pages that the API server has forgotten meanwhile are read anew, all at once.
func list(ctx context.Context, c client.Reader, options ...client.ListOption) (*v1alpha1.PermissionGrantList, error) {
	all := &v1alpha1.PermissionGrantList{}
	for next := ""; ; {
		page := &v1alpha1.PermissionGrantList{}
		err := c.List(ctx, page, append([]client.ListOption{client.Limit(pageSize), client.Continue(next)}, options...)...)
		if next != "" && apierrors.IsResourceExpired(err) {
			all, page = &v1alpha1.PermissionGrantList{}, &v1alpha1.PermissionGrantList{}
			err = c.List(ctx, page, options...)
		}
		if err != nil {
			return nil, fmt.Errorf("list permissiongrants: %w", err)
		}
		all.Items, all.ListMeta = append(all.Items, page.Items...), page.ListMeta
		if next = page.Continue; next == "" {
			return all, nil
		}
	}
}

// undecided selects the grants that may wait for an answer. One that its controller has not seen yet has no state.
func undecided() client.ListOption {
	selector := fields.Everything()
	for _, state := range []v1alpha1.GrantState{
		v1alpha1.GrantApproved, v1alpha1.GrantDenied, v1alpha1.GrantExpired, v1alpha1.GrantRevoked,
		v1alpha1.GrantSuperseded, v1alpha1.GrantStale, v1alpha1.GrantExhausted,
	} {
		selector = fields.AndSelectors(selector, fields.OneTermNotEqualSelector(selectState, string(state)))
	}
	return client.MatchingFieldsSelector{Selector: selector}
}

// pendingAt tells whether a grant waits for an answer at a moment, whatever was written down last.
func pendingAt(g *v1alpha1.PermissionGrant, now time.Time) bool {
	return grant.ToEngine(g, now).State == policy.GrantPending
}

// usage is an error about the command line.
func usage(format string, args ...any) error {
	return exit.With(exit.Usage, fmt.Errorf(format, args...))
}

// errNothing is behind every refusal of a selection that holds nothing.
var errNothing = errors.New("no question waits here")
