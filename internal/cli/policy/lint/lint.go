// Package lint is the command kubectl stepbeyond policy lint: what is wrong with policies and with the roles of agents,
// before somebody relies on them.
package lint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/internal/cli/exit"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/cli/policy/installed"
	"stepbeyond.dev/stepbeyond/internal/cli/report"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
	"stepbeyond.dev/stepbeyond/internal/policytest"
)

const (
	long = `Look for what is wrong with the policies of one namespace or of the whole cluster, and with the roles of its agents.

ERROR    a policy that is not in force, a namespace in which everything is refused, a role that reaches past admission
WARNING  what has no effect: exemptions, session templates, rules and requirements that nothing can match
INFO     the five kinds that nobody has catalogued and that agents were asked about most, each with a catalogue entry

With -f it reads files instead, as the cluster would, and asks no cluster; it then says nothing about roles,
ServiceAccounts, resources and questions.

Needs what ClusterRole stepbeyond-policy-reviewer allows. What may not be read is named.

Exit codes: 0 no error was found, 1 an error was found, or something could not be looked at, 2 wrong command line.`

	examples = `  # Check one namespace, and the whole cluster
  kubectl stepbeyond policy lint -n checkout
  kubectl stepbeyond policy lint -A

  # Check files before they are merged
  kubectl stepbeyond policy lint -f policy.yaml`

	// stdin is the file name that stands for the input.
	stdin = "-"
)

type options struct {
	*factory.Factory
	all   bool
	files []string
	form  report.Form
}

// Command checks policies and roles.
func Command(f *factory.Factory) *cobra.Command {
	o := &options{Factory: f}
	cmd := &cobra.Command{
		Use:     "lint [-n NAMESPACE | -A | -f FILE...]",
		Short:   "Find policies without effect and roles that reach past admission",
		Long:    long,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return exit.With(exit.Usage, err)
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "check all governed namespaces and every policy")
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "a file with policies to check instead of a cluster's, - for the input; may be repeated")
	o.form.Add(cmd)
	return cmd
}

func (o *options) validate() error {
	switch {
	case o.all && o.Namespace() != "":
		return errors.New("--all-namespaces and --namespace exclude each other")
	case len(o.files) > 0 && (o.all || o.Namespace() != ""):
		return errors.New("--filename asks no cluster: leave --all-namespaces and --namespace out")
	}
	return o.form.Validate()
}

func (o *options) run(ctx context.Context) error {
	made := &Report{}
	var err error
	if len(o.files) > 0 {
		err = o.checkFiles(made)
	} else {
		err = o.checkCluster(ctx, made)
	}
	if err != nil {
		return err
	}
	made.sort()
	if o.form.Text() {
		_, err = fmt.Fprint(o.Out, made.text(terminal.For(o.Out)))
	} else {
		err = o.form.Write(o.Out, made)
	}
	switch errs := made.count(Error); {
	case err != nil:
		return fmt.Errorf("write the report: %w", err)
	case errs > 0:
		return errors.New("errors were found")
	case len(made.NotLookedAt) > 0 && len(o.files) == 0:
		return errors.New("not everything could be looked at")
	default:
		return nil
	}
}

// checkFiles checks what can be checked without a cluster.
func (o *options) checkFiles(made *Report) error {
	var sources []policytest.Source
	for _, name := range o.files {
		source := policytest.Source{Name: name}
		var err error
		if name == stdin {
			source.Name = "standard input"
			source.Content, err = io.ReadAll(o.In)
		} else {
			source.Content, err = os.ReadFile(name)
		}
		if err != nil {
			return exit.With(exit.Usage, fmt.Errorf("--filename: %w", err))
		}
		sources = append(sources, source)
	}
	in, problems := policytest.ReadPolicies(sources)
	for _, problem := range problems {
		made.add(refused(problem))
	}
	in.Now = metav1.Now()
	policies, err := installed.Compile(in)
	if err != nil {
		return err
	}
	w := &world{now: time.Now(), policies: policies, everywhere: true, files: true, selected: policies.Governed()}
	made.Namespaces = len(w.selected)
	w.check(made)
	made.NotLookedAt = append(made.NotLookedAt, "roles, ServiceAccounts, the cluster's resources and questions: no cluster is asked with -f")
	return nil
}
