// Package status is the command kubectl stepbeyond status: whether agents are governed now, and what waits for people.
package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/exit"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/cli/pages"
	"stepbeyond.dev/stepbeyond/internal/cli/report"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
)

const (
	long = `Say whether agents are governed now, and what waits for people.

enforcement  what the manager has proven by requests that must be refused, and when
governed     namespaces, users, and what their sessions can rely on
queue        questions that wait, and answers of the last 24 hours, as far as their grants are still there
sessions     sessions that are suspended
onboarding   what would have been asked or refused where the profile only audits
attention    what somebody should look at

With -n, queue and sessions are those of one namespace. Needs what ClusterRole stepbeyond-viewer allows; a line whose source
you may not read says so.

Exit codes: 0 something was read, 1 nothing was, 2 wrong command line.`

	examples = `  # How is the cluster
  kubectl stepbeyond status

  # How is one namespace, for a script
  kubectl stepbeyond status -n checkout -o json`
)

type options struct {
	*factory.Factory
	form report.Form
}

// Command says how things are.
func Command(f *factory.Factory) *cobra.Command {
	o := &options{Factory: f}
	cmd := &cobra.Command{
		Use:     "status [-n NAMESPACE]",
		Short:   "Say whether agents are governed now and what waits for people",
		Long:    long,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.form.Validate(); err != nil {
				return exit.With(exit.Usage, err)
			}
			return o.run(cmd.Context())
		},
	}
	o.form.Add(cmd)
	return cmd
}

// seen is what was read. A list whose error is set was not.
type seen struct {
	policies   v1alpha1.ClusterAgentPolicyList
	own        v1alpha1.AgentPolicyList
	sessions   v1alpha1.AgentSessionList
	grants     v1alpha1.PermissionGrantList
	unreadable map[string]error
}

// Kinds as unreadable names them.
const (
	clusterPolicies = "clusteragentpolicies"
	agentPolicies   = "agentpolicies"
	sessions        = "agentsessions"
	grants          = "permissiongrants"
)

func (o *options) run(ctx context.Context) error {
	c, err := o.Client()
	if err != nil {
		return err
	}
	var where []client.ListOption
	if o.Namespace() != "" {
		where = append(where, client.InNamespace(o.Namespace()))
	}
	s := &seen{unreadable: map[string]error{}}
	for _, list := range []struct {
		kind  string
		into  client.ObjectList
		where []client.ListOption
	}{{clusterPolicies, &s.policies, nil}, {agentPolicies, &s.own, where}, {sessions, &s.sessions, where}, {grants, &s.grants, where}} {
		err := pages.Read(ctx, c, list.into, list.where...)
		if meta.IsNoMatchError(err) {
			return errors.New("the kinds of Step Beyond are not installed in this cluster, so it governs nobody")
		}
		// Of an API server that is not reached nothing can be said line by line.
		var answered apierrors.APIStatus
		if err != nil && !errors.As(err, &answered) {
			return fmt.Errorf("list %s: %w", list.kind, err)
		}
		if err != nil {
			s.unreadable[list.kind] = err
		}
	}
	made := s.report(o.Namespace(), time.Now())
	if o.form.Text() {
		_, err = fmt.Fprint(o.Out, made.text(terminal.For(o.Out)))
	} else {
		err = o.form.Write(o.Out, made)
	}
	switch {
	case err != nil:
		return fmt.Errorf("write the status: %w", err)
	case len(s.unreadable) == 4:
		return errors.New("nothing could be read")
	default:
		return nil
	}
}
