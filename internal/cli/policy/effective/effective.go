// Package effective is the command kubectl stepbeyond policy effective: which policies join in a namespace, and what comes
// of them.
package effective

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/exit"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/cli/policy/installed"
	"stepbeyond.dev/stepbeyond/internal/cli/report"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
)

const (
	long = `Say which policies count in a namespace, from the baseline to its own AgentPolicy, and what comes of them.

"In short" is no summary of texts: the engine of this plugin's release decides examples of what agents do, for a new session of
one session template. A rule about certain names or contents may decide otherwise; policy test tries such a case, and
-o json says why each example has its class.

Needs what ClusterRole stepbeyond-policy-reviewer allows: the policies, and to read the namespace.`

	examplesText = `  # What holds for agents in one namespace
  kubectl stepbeyond policy effective -n checkout

  # For the sessions of another template, with every reason
  kubectl stepbeyond policy effective -n checkout --template agent -o json`
)

type options struct {
	*factory.Factory
	template string
	form     report.Form
}

// Command explains a namespace.
func Command(f *factory.Factory) *cobra.Command {
	o := &options{Factory: f}
	cmd := &cobra.Command{
		Use:     "effective [-n NAMESPACE]",
		Short:   "Say what counts in a namespace and what comes of it",
		Long:    long,
		Example: examplesText,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(cmd); err != nil {
				return exit.With(exit.Usage, err)
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.template, "template", "", "session template to decide for; the first one without it")
	o.form.Add(cmd)
	return cmd
}

func (o *options) validate(cmd *cobra.Command) error {
	if o.template == "" && cmd.Flags().Changed("template") {
		return errors.New("--template: name a session template")
	}
	return o.form.Validate()
}

func (o *options) run(ctx context.Context) error {
	namespace, err := o.WorkNamespace()
	if err != nil {
		return err
	}
	c, err := o.Client()
	if err != nil {
		return err
	}
	policies, err := installed.For(ctx, c, namespace)
	if err != nil {
		return err
	}
	if err := policies.MustGovern(namespace); err != nil {
		return err
	}
	made, err := explain(policies, namespace, o.template, time.Now())
	if err != nil {
		return err
	}
	if !o.form.Text() {
		return o.form.Write(o.Out, made)
	}
	text, err := made.text(terminal.For(o.Out))
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(o.Out, text); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// chosen is the template of that name, or the first; nil when there is none at all.
func chosen(templates []v1alpha1.SessionTemplate, name string) (*v1alpha1.SessionTemplate, error) {
	if name == "" {
		if len(templates) == 0 {
			return nil, nil
		}
		return &templates[0], nil
	}
	var names []string
	for i := range templates {
		if templates[i].Name == name {
			return &templates[i], nil
		}
		names = append(names, templates[i].Name)
	}
	if len(names) == 0 {
		return nil, errors.New("the namespace has no session template")
	}
	return nil, fmt.Errorf("the namespace has no session template %q; it has %s", name, strings.Join(names, ", "))
}
