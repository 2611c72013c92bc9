package grants

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
)

// How many names a command takes.
const (
	one  = 1
	many = 0
)

// complete offers the names of the grants that fit, with what they are about, while fewer than most were typed.
func complete(f *factory.Factory, most int, fits func(*v1alpha1.PermissionGrant) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, typed []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(typed) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		d, err := open(f)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		found, err := list(cmd.Context(), d.client, client.InNamespace(d.namespace))
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		for i := range found.Items {
			if g := &found.Items[i]; fits(g) && !slices.Contains(typed, g.Name) {
				names = append(names, cobra.CompletionWithDesc(g.Name, what(g)))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// bare takes the kind off a name, as kubectl prints it: permissiongrant.stepbeyond.dev/pg-7k2mq4xdva.
func bare(name string) string {
	kind, rest, found := strings.Cut(name, "/")
	if found && (kind == resource || kind == "permissiongrant" || kind == "permissiongrants" || kind == "pgrant") {
		return rest
	}
	return name
}
