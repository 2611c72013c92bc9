// Package version is the command kubectl stepbeyond version.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"stepbeyond.dev/stepbeyond/internal/cli/factory"
)

// Command prints which plugin this is; it asks no API server.
func Command(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this plugin",
		Example: "  kubectl stepbeyond version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version, revision := "unknown", ""
			if info, ok := debug.ReadBuildInfo(); ok {
				version = info.Main.Version
				for _, setting := range info.Settings {
					if setting.Key == "vcs.revision" {
						revision = " " + setting.Value
					}
				}
			}
			_, err := fmt.Fprintf(f.Out, "kubectl-stepbeyond %s%s %s %s/%s\n", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
