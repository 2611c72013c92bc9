package grants

import (
	"context"

	"github.com/spf13/cobra"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
)

const denyLong = `Deny questions. One denial closes a question, whatever others answered. The agent reads the reason, and the same request is
not asked again for a while (approvals.askAgainAfterSeconds of the policy), unless somebody reopens it.

Named questions are denied without being asked again; selected ones are listed first.`

const denyExamples = `  # Say no, and why: the agent reads it
  kubectl stepbeyond deny pg-q8s2v5km7x -n checkout --reason "That job belongs to cart."

  # Everything that one session asks
  kubectl stepbeyond deny -n checkout -l stepbeyond.dev/session=cart-copy-11b2e`

type denyOptions struct {
	*factory.Factory
	selection
	reason string
	yes    bool
}

// Deny denies questions.
func Deny(f *factory.Factory) *cobra.Command {
	o := &denyOptions{Factory: f}
	cmd := &cobra.Command{
		Use:               "deny (NAME... | -l SELECTOR)",
		Short:             "Deny questions",
		Long:              denyLong,
		Example:           denyExamples,
		ValidArgsFunction: complete(f, many, isPending),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return o.run(cmd.Context(), cmd.Flags().Changed)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.selector, "selector", "l", "", "labels of the questions, as in stepbeyond.dev/session=NAME")
	flags.StringVar(&o.reason, "reason", "", "why, for the agent and the record; at most 240 characters")
	flags.BoolVarP(&o.yes, "yes", "y", false, "with -l: do not ask")
	return cmd
}

func (o *denyOptions) run(ctx context.Context, changed func(string) bool) error {
	if err := o.validate(changed); err != nil {
		return err
	}
	d, err := open(o.Factory)
	if err != nil {
		return err
	}
	asked, err := o.pending(ctx, d)
	if err != nil {
		return err
	}
	b := &batch{desk: d, verdict: v1alpha1.VerdictDeny, reason: o.reason, yes: o.yes}
	if o.selector == "" {
		return b.answer(ctx, asked, asked)
	}
	return b.run(ctx, asked)
}

func (o *denyOptions) validate(changed func(string) bool) error {
	if err := o.selection.validate(); err != nil {
		return err
	}
	if err := validateReason(o.reason, changed("reason")); err != nil {
		return err
	}
	if o.selector == "" {
		return nil
	}
	return answerable(o.yes, o.In)
}
