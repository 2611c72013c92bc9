// Package printed is the flag -o of the commands that list objects.
package printed

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"stepbeyond.dev/stepbeyond/internal/cli/factory"
)

// Forms beside the table.
const (
	wide = "wide"
	json = "json"
	yaml = "yaml"
	name = "name"
)

// Form is how objects are printed; empty is a table.
type Form string

// Add registers -o.
func (f *Form) Add(cmd *cobra.Command) {
	forms := []string{json, yaml, name, wide}
	cmd.Flags().StringVarP((*string)(f), "output", "o", "", "json, yaml, name or wide; a table without it")
	// The flag was registered a line above, which is all that can go wrong.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

// Validate refuses a form that does not exist.
func (f *Form) Validate() error {
	if forms := []string{"", json, yaml, name, wide}; !slices.Contains(forms, string(*f)) {
		return fmt.Errorf("--output: %q is not %s or %s", string(*f), strings.Join(forms[1:4], ", "), wide)
	}
	return nil
}

// Table tells that a table is wanted, of either width.
func (f *Form) Table() bool { return *f == "" || *f == wide }

// Wide tells that the wide table is wanted.
func (f *Form) Wide() bool { return *f == wide }

// Print writes an object or a list of our kinds in a form that is no table.
func (f *Form) Print(out io.Writer, object runtime.Object) error {
	scheme, err := factory.Scheme()
	if err != nil {
		return err
	}
	typed := printers.NewTypeSetter(scheme)
	switch *f {
	case json:
		err = typed.ToPrinter(&printers.JSONPrinter{}).PrintObj(object, out)
	case yaml:
		err = typed.ToPrinter(&printers.YAMLPrinter{}).PrintObj(object, out)
	default:
		names := typed.ToPrinter(&printers.NamePrinter{})
		if !meta.IsListType(object) {
			return wrap(names.PrintObj(object, out))
		}
		err = meta.EachListItem(object, func(item runtime.Object) error { return names.PrintObj(item, out) })
	}
	return wrap(err)
}

func wrap(err error) error {
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
