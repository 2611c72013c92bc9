package grants

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/table"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
	"stepbeyond.dev/stepbeyond/internal/grant"
)

// again is how long a broken watch rests before the next.
const again = time.Second

// follower goes on with a table: a line for each new question, and one for each end.
type follower struct {
	*desk
	table *table.Table
	wide  bool
	shown []*v1alpha1.PermissionGrant
	where []client.ListOption

	waiting map[types.UID]bool
}

// run ends with the context, as a person ends it, or when the API server refuses. Nothing is lost when a watch breaks:
// what happened meanwhile is told from a new list.
func (f *follower) run(ctx context.Context, version string) error {
	f.waiting = map[types.UID]bool{}
	for _, g := range f.shown {
		f.waiting[g.UID] = true
	}
	for {
		err := f.follow(ctx, version)
		if ctx.Err() != nil {
			return nil // Ctrl-C is how a watch ends
		}
		if err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
		if version, err = f.catchUp(ctx); err != nil {
			return err
		}
	}
}

func (f *follower) follow(ctx context.Context, version string) error {
	options := append([]client.ListOption{&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}}}, f.where...)
	w, err := f.client.Watch(ctx, &v1alpha1.PermissionGrantList{}, options...)
	if err != nil {
		return fmt.Errorf("watch permissiongrants: %w", err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		g, ok := event.Object.(*v1alpha1.PermissionGrant)
		if !ok {
			return errors.New("watch permissiongrants: the API server sent something else")
		}
		if err := f.tell(g, event.Type == watch.Deleted); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) catchUp(ctx context.Context) (version string, err error) {
	found, err := list(ctx, f.client, f.where...)
	if err != nil {
		return "", err
	}
	there := map[types.UID]bool{}
	for i := range found.Items {
		there[found.Items[i].UID] = true
		if err := f.tell(&found.Items[i], false); err != nil {
			return "", err
		}
	}
	for _, g := range f.shown {
		if !there[g.UID] {
			if err := f.tell(g, true); err != nil {
				return "", err
			}
		}
	}
	return found.ResourceVersion, nil
}

// tell writes a line when a question is new or ends.
func (f *follower) tell(g *v1alpha1.PermissionGrant, gone bool) error {
	now := time.Now()
	pending := !gone && pendingAt(g, now)
	if pending == f.waiting[g.UID] {
		return nil
	}
	f.waiting[g.UID] = pending
	cell := left(g, now)
	switch state := grant.ToEngine(g, now).State; {
	case pending:
		f.shown = append(f.shown, g)
	case gone:
		cell = table.Cell{Text: "gone", Style: terminal.Faint}
	default:
		cell = table.Cell{Text: strings.ToLower(string(state)), Style: stateStyle(v1alpha1.GrantState(state))}
	}
	d := *f.desk
	d.now = now
	return f.table.Row(f.Out, row(g, &d, cell, f.wide))
}

func stateStyle(state v1alpha1.GrantState) terminal.Style {
	switch state {
	case v1alpha1.GrantApproved, v1alpha1.GrantExhausted:
		return terminal.Green
	case v1alpha1.GrantPending:
		return terminal.Bold
	case v1alpha1.GrantDenied, v1alpha1.GrantRevoked:
		return terminal.Red
	default:
		return terminal.Faint
	}
}
