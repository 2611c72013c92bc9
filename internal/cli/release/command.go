// Package release is the command kubectl stepbeyond release: the two ways out of enforcement.
package release

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"stepbeyond.dev/stepbeyond/internal/cli/exit"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
)

const (
	long = `Let one namespace go, or the whole cluster. Nothing else ends enforcement: not a removed label, not a deleted policy,
not an uninstalled manager.

With -n, the ClusterAgentPolicy that governs the namespace gets an entry in spec.governed.released, and the namespace
loses the label stepbeyond.dev/profile when it selects a profile that enforces: the entry alone lets nobody go whom a
label still brings in. The manager must run. Needs the verb ungovern on clusteragentpolicies.

With --cluster, the webhook configurations and then the floor are removed, for good. No manager may run, because it would
write them again. Needs the verb ungovern on clusteragentpolicies and the right to delete each object, and asks for the
cluster's name. CRDs and their objects stay. Files on the hosts of the control plane (docs/authorization.md) are out of
its reach; it says whether there may be any.

Both leave an event of type Warning that says who did it and why.`

	examples = `  # Let namespace checkout go, and wait until it is
  kubectl stepbeyond release -n checkout --reason "moved to team payments"

  # See what would be done, and whether the API server would accept it
  kubectl stepbeyond release -n checkout --reason "moved" --dry-run=server

  # Remove all enforcement from a cluster whose manager is gone
  kubectl stepbeyond release --cluster --reason "INC-4431" --confirm prod-eu-1`

	// maxReason is the schema's bound of released[].reason, in code points.
	maxReason = 240
)

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

type options struct {
	*factory.Factory
	cluster bool
	reason  string
	policy  string
	confirm string
	dryRun  string
	wait    bool
	timeout time.Duration
}

// Command lets a namespace or the cluster go.
func Command(f *factory.Factory) *cobra.Command {
	o := &options{Factory: f}
	cmd := &cobra.Command{
		Use:     "release (-n NAMESPACE | --cluster) --reason TEXT",
		Short:   "Let a namespace or the whole cluster go",
		Long:    long,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(cmd); err != nil {
				return exit.With(exit.Usage, err)
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.cluster, "cluster", false, "remove all enforcement from the cluster")
	flags.StringVar(&o.reason, "reason", "", "why, for the record; at most 240 characters")
	flags.StringVar(&o.policy, "policy", "", "ClusterAgentPolicy that gets the entry, when no single one governs the namespace")
	flags.StringVar(&o.confirm, "confirm", "", "with --cluster: the cluster's name in the kubeconfig, instead of typing it")
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone, "none, client (say what would be done) or server (also ask the API server, which changes nothing)")
	flags.BoolVar(&o.wait, "wait", true, "with -n: wait until neither webhook nor floor covers the namespace")
	flags.DurationVar(&o.timeout, "timeout", time.Minute, "with -n: how long to wait")
	return cmd
}

func (o *options) validate(cmd *cobra.Command) error {
	switch {
	case o.cluster && o.Namespace() != "":
		return errors.New("--cluster and --namespace exclude each other")
	case !o.cluster && o.Namespace() == "":
		return errors.New("name what to let go: -n NAMESPACE, or --cluster")
	case o.reason == "":
		return errors.New("--reason is missing: say why, for the record")
	case utf8.RuneCountInString(o.reason) > maxReason:
		return fmt.Errorf("--reason has %d characters, at most %d are possible", utf8.RuneCountInString(o.reason), maxReason)
	case o.dryRun != dryRunNone && o.dryRun != dryRunClient && o.dryRun != dryRunServer:
		return fmt.Errorf("--dry-run: %q is not none, client or server", o.dryRun)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout: %s is not more than 0", o.timeout)
	}
	foreign := []string{"confirm"}
	if o.cluster {
		foreign = []string{"policy", "wait", "timeout"}
	}
	for _, name := range foreign {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s has no meaning %s", name, map[bool]string{true: "with --cluster", false: "without --cluster"}[o.cluster])
		}
	}
	return nil
}

func (o *options) run(ctx context.Context) error {
	c, err := o.Client()
	if err != nil {
		return err
	}
	if o.cluster {
		return (&clusterRelease{options: o, client: c}).run(ctx)
	}
	return (&namespaceRelease{options: o, client: c}).run(ctx)
}

// done marks a line about something that a dry run did not do.
func (o *options) done(line string) {
	switch o.dryRun {
	case dryRunClient:
		line += " (dry run)"
	case dryRunServer:
		line += " (server dry run)"
	}
	fmt.Fprintln(o.Out, line)
}
