// Package cli is the kubectl plugin kubectl stepbeyond: a package per command below it, exit codes in package exit.
package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"stepbeyond.dev/stepbeyond/internal/cli/exit"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/cli/grants"
	"stepbeyond.dev/stepbeyond/internal/cli/policy"
	"stepbeyond.dev/stepbeyond/internal/cli/release"
	"stepbeyond.dev/stepbeyond/internal/cli/sessions"
	"stepbeyond.dev/stepbeyond/internal/cli/status"
	"stepbeyond.dev/stepbeyond/internal/cli/version"
)

const about = `Step Beyond governs what AI agents do in this cluster. This plugin is for the people who govern them.

Exit codes: 0 done, 1 refused or failed, 2 wrong command line, 3 changed in between, 4 not seen in force before --timeout.`

// Run runs one command line, without the program's name, and returns the exit code. Errors go to ErrOut.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	root := command(streams)
	parsed := false
	root.PersistentPreRun = func(*cobra.Command, []string) { parsed = true }
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exit.OK
	}
	fmt.Fprintln(streams.ErrOut, "Error:", err)
	if !parsed {
		return exit.Usage // cobra's own errors are about the command line
	}
	return exit.Code(err)
}

func command(streams genericiooptions.IOStreams) *cobra.Command {
	f := factory.New(streams)
	root := &cobra.Command{
		Use:           "kubectl-stepbeyond",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl stepbeyond"},
		Short:         "Govern what AI agents do in a cluster",
		Long:          about,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	f.Flags.AddFlags(root.PersistentFlags())
	root.AddCommand(
		grants.Pending(f), grants.Show(f), grants.Approve(f), grants.Deny(f), grants.Revoke(f), grants.Reopen(f), grants.Why(f),
		sessions.Command(f), policy.Command(f), release.Command(f), status.Command(f), version.Command(f),
	)
	return root
}
