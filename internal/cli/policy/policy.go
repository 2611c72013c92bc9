// Package policy is the command kubectl stepbeyond policy: what policies decide, before and after they are in force.
package policy

import (
	"github.com/spf13/cobra"

	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/cli/policy/baselines"
	"stepbeyond.dev/stepbeyond/internal/cli/policy/cases"
	"stepbeyond.dev/stepbeyond/internal/cli/policy/effective"
	"stepbeyond.dev/stepbeyond/internal/cli/policy/lint"
)

// Command has one subcommand per question about policies.
func Command(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Test, check and explain policies",
		Long:  "Test, check and explain policies. None of these commands changes anything.",
		Example: `  kubectl stepbeyond policy test tests/production
  kubectl stepbeyond policy effective -n checkout`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(cases.Command(f), lint.Command(f), effective.Command(f), baselines.Command(f))
	return cmd
}
