// Package sessions is the command kubectl stepbeyond sessions: who is at work, with whose authority.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/exit"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/cli/printed"
	"stepbeyond.dev/stepbeyond/internal/cli/table"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
)

const long = `List sessions as a tree: a child session, which an agent's own pod works in, stands below its parent.

GUARANTEE is what a session can rely on; a ! behind it means that something is lost or not provided, which -o wide names.
With -w it goes on: each change of a session is a line. Needs the right to list agentsessions, as stepbeyond-viewer has it.`

const examples = `  # Who is at work in one namespace, and in all
  kubectl stepbeyond sessions -n checkout
  kubectl stepbeyond sessions -A -o wide`

// pageSize is kubectl's.
const pageSize = 500

type options struct {
	*factory.Factory
	all, watch bool
	form       printed.Form
}

// Command lists sessions.
func Command(f *factory.Factory) *cobra.Command {
	o := &options{Factory: f}
	cmd := &cobra.Command{
		Use:     "sessions [-n NAMESPACE | -A]",
		Short:   "List sessions with their children",
		Long:    long,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "list all namespaces")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on with what changes from now on")
	o.form.Add(cmd)
	return cmd
}

func (o *options) validate() error {
	if err := o.form.Validate(); err != nil {
		return exit.With(exit.Usage, err)
	}
	switch {
	case o.all && o.Namespace() != "":
		return exit.With(exit.Usage, errors.New("--all-namespaces and --namespace exclude each other"))
	case o.watch && !o.form.Table():
		return exit.With(exit.Usage, fmt.Errorf("--watch prints tables only: leave -o %s out", o.form))
	}
	return nil
}

func (o *options) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	c, err := o.Client()
	if err != nil {
		return err
	}
	var where []client.ListOption
	if !o.all {
		namespace, err := o.WorkNamespace()
		if err != nil {
			return err
		}
		where = append(where, client.InNamespace(namespace))
	}
	found, err := list(ctx, c, where)
	if err != nil {
		return err
	}
	if !o.form.Table() {
		return o.form.Print(o.Out, found)
	}
	nodes := tree(found.Items)
	rows := make([]table.Row, 0, len(nodes))
	now := time.Now()
	for _, n := range nodes {
		rows = append(rows, row(&n, now, o.all, o.form.Wide()))
	}
	if len(rows) == 0 && !o.watch {
		fmt.Fprintln(o.Out, "No session.")
		return nil
	}
	t := table.New(terminal.For(o.Out), columns(o.all, o.form.Wide(), o.watch), rows)
	if err := t.Header(o.Out); err != nil {
		return err
	}
	for _, r := range rows {
		if err := t.Row(o.Out, r); err != nil {
			return err
		}
	}
	if !o.watch {
		return nil
	}
	return (&follower{options: o, client: c, table: t, where: where, nodes: nodes}).run(ctx, found.ResourceVersion)
}

// list reads sessions in pages. Pages that the API server has forgotten meanwhile are read anew, all at once.
func list(ctx context.Context, c client.Reader, where []client.ListOption) (*v1alpha1.AgentSessionList, error) {
	all := &v1alpha1.AgentSessionList{}
	for next := ""; ; {
		page := &v1alpha1.AgentSessionList{}
		err := c.List(ctx, page, append([]client.ListOption{client.Limit(pageSize), client.Continue(next)}, where...)...)
		if next != "" && apierrors.IsResourceExpired(err) {
			all, page = &v1alpha1.AgentSessionList{}, &v1alpha1.AgentSessionList{}
			err = c.List(ctx, page, where...)
		}
		if err != nil {
			return nil, fmt.Errorf("list agentsessions: %w", err)
		}
		all.Items, all.ListMeta = append(all.Items, page.Items...), page.ListMeta
		if next = page.Continue; next == "" {
			return all, nil
		}
	}
}

// again is how long a broken watch rests before the next.
const again = time.Second

// follower goes on with a table: a line for each session that changes what its line says.
type follower struct {
	*options
	client client.WithWatch
	table  *table.Table
	where  []client.ListOption
	nodes  []node
	shown  map[string]string
}

func (f *follower) run(ctx context.Context, version string) error {
	f.shown = map[string]string{}
	for i := range f.nodes {
		f.shown[key(f.nodes[i].session)] = gist(f.nodes[i].session)
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
		found, err := list(ctx, f.client, f.where)
		if err != nil {
			return err
		}
		version = found.ResourceVersion
		for i := range found.Items {
			if err := f.tell(&found.Items[i], false); err != nil {
				return err
			}
		}
	}
}

func (f *follower) follow(ctx context.Context, version string) error {
	from := append([]client.ListOption{&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}}}, f.where...)
	w, err := f.client.Watch(ctx, &v1alpha1.AgentSessionList{}, from...)
	if err != nil {
		return fmt.Errorf("watch agentsessions: %w", err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		s, ok := event.Object.(*v1alpha1.AgentSession)
		if !ok {
			return errors.New("watch agentsessions: the API server sent something else")
		}
		if err := f.tell(s, event.Type == watch.Deleted); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) tell(s *v1alpha1.AgentSession, gone bool) error {
	said := gist(s)
	if gone {
		said = stateGone
	}
	if f.shown[key(s)] == said {
		return nil
	}
	f.shown[key(s)] = said
	n := node{session: s, gone: gone}
	if s.Spec.Parent != nil {
		n.depth = 1
	}
	return f.table.Row(f.Out, row(&n, time.Now(), f.all, f.form.Wide()))
}

func key(s *v1alpha1.AgentSession) string { return string(s.UID) }
