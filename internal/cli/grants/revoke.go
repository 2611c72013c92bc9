package grants

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/exit"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/grant"
)

const revokeLong = `Take an approval back, or a question that waits out of the queue. It stops every use that has not begun, and undoes none
that has. A revoked grant stays revoked; the agent asks anew when it tries again.`

const revokeExamples = `  # Stop what was approved
  kubectl stepbeyond revoke pg-c4wn9r2tbe -n checkout --reason "INC-4431"`

const reopenLong = `Let an agent ask again what was denied, before the rest of the denial is over. Nothing is approved by it: its next request
is a new question.`

const reopenExamples = `  # It was denied by mistake
  kubectl stepbeyond reopen pg-q8s2v5km7x -n checkout --reason "Wrong job."`

// takeBack is revoke or reopen: one field of one grant that is set once.
type takeBack struct {
	*factory.Factory
	// field of the spec, and the flag --reason that it needs or may have.
	field  string
	needs  bool
	reason string
	// fits tells in which states it means something, and other names what does otherwise.
	fits  func(v1alpha1.GrantState) bool
	other string
	// done is what it then is.
	done string
}

// Revoke takes an answer back.
func Revoke(f *factory.Factory) *cobra.Command {
	o := &takeBack{
		Factory: f, field: "revocation", needs: true, done: "revoked by you",
		fits:  func(s v1alpha1.GrantState) bool { return s == v1alpha1.GrantPending || s == v1alpha1.GrantApproved },
		other: "there is nothing to take back",
	}
	cmd := o.command()
	cmd.Use, cmd.Short, cmd.Long, cmd.Example = "revoke NAME --reason TEXT", "Take an approval back", revokeLong, revokeExamples
	return cmd
}

// Reopen lets an agent ask anew what was denied.
func Reopen(f *factory.Factory) *cobra.Command {
	o := &takeBack{
		Factory: f, field: "reopening", done: "reopened by you: the agent's next request is a new question",
		fits:  func(s v1alpha1.GrantState) bool { return s == v1alpha1.GrantDenied },
		other: "only a denial keeps an agent from asking again",
	}
	cmd := o.command()
	cmd.Use, cmd.Short, cmd.Long, cmd.Example = "reopen NAME", "Let an agent ask again what was denied", reopenLong, reopenExamples
	return cmd
}

func (o *takeBack) command() *cobra.Command {
	cmd := &cobra.Command{
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), bare(args[0]), cmd.Flags().Changed("reason"))
		},
	}
	cmd.ValidArgsFunction = complete(o.Factory, one, func(g *v1alpha1.PermissionGrant) bool { return o.fits(g.Status.State) })
	cmd.Flags().StringVar(&o.reason, "reason", "", "why, for the record; at most 240 characters")
	return cmd
}

func (o *takeBack) run(ctx context.Context, name string, given bool) error {
	if o.needs && !given {
		return usage("--reason is missing: say why, for the record")
	}
	if err := validateReason(o.reason, given); err != nil {
		return err
	}
	d, err := open(o.Factory)
	if err != nil {
		return err
	}
	g, err := d.get(ctx, name)
	if err != nil {
		return err
	}
	if status := grant.Compute(g, d.now); !o.fits(status.State) {
		return exit.With(exit.Changed, fmt.Errorf("%s is %s: %s; %s", name, status.State, conditionMessage(&status), o.other))
	}
	value := map[string]string{}
	if o.reason != "" {
		value["reason"] = o.reason
	}
	if _, err := d.send(ctx, g, []operation{{Op: "add", Path: "/spec/" + o.field, Value: value}}, false); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s/%s %s\n", resource, name, o.done)
	return nil
}
