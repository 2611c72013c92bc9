// Package baselines are the commands kubectl stepbeyond policy baseline print and diff: what a release of the embedded floor
// and catalogue says, and what changes when another one is pinned.
package baselines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/internal/cli/exit"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/cli/policy/installed"
	"stepbeyond.dev/stepbeyond/internal/cli/report"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/baseline"
)

const (
	diffLong = `Compare two versions of the baseline: rules, catalogue entries with their facts, and the classes that come of them.

Without a version, the one that the cluster's ClusterAgentPolicies pin is compared with the newest that this plugin embeds;
with one version, that one with the newest. A version that this plugin does not embed is read with -f from a file that the
plugin of its release printed, and stands first.

Classes are those of a plain object of each kind that either version names, decided by the baseline alone.

Exit codes: 0 compared, whether or not they differ, 1 the cluster could not be asked, 2 wrong command line or file.`

	diffExamples = `  # What would pinning the newest version change here
  kubectl stepbeyond policy baseline diff

  # Compare with the version of another release
  kubectl stepbeyond policy baseline print > baseline.yaml
  kubectl stepbeyond policy baseline diff -f baseline.yaml`

	printExamples = `  # Print the newest version that this plugin embeds, and a named one
  kubectl stepbeyond policy baseline print
  kubectl stepbeyond policy baseline print v1`
)

// Command is policy baseline.
func Command(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "baseline",
		Short:   "Print and compare versions of the embedded floor and catalogue",
		Example: "  kubectl stepbeyond policy baseline diff",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(printCommand(f), diffCommand(f))
	return cmd
}

func printCommand(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:               "print [VERSION]",
		Short:             "Print an embedded version as the file that it is",
		Long:              "Print an embedded version of the baseline as the file that it is. No cluster is asked.",
		Example:           printExamples,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: versions,
		RunE: func(_ *cobra.Command, args []string) error {
			version := baseline.Latest
			if len(args) > 0 {
				version = args[0]
			}
			source, err := baseline.Source(version)
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			if _, err := f.Out.Write(source); err != nil {
				return fmt.Errorf("print the baseline: %w", err)
			}
			return nil
		},
	}
}

func versions(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return baseline.Versions(), cobra.ShellCompDirectiveNoFileComp
}

type options struct {
	*factory.Factory
	file string
	form report.Form
}

func diffCommand(f *factory.Factory) *cobra.Command {
	o := &options{Factory: f}
	cmd := &cobra.Command{
		Use:               "diff [-f FILE] [VERSION] [VERSION]",
		Short:             "Say what changes between two versions",
		Long:              diffLong,
		Example:           diffExamples,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: versions,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().StringVarP(&o.file, "filename", "f", "", "a file that policy baseline print wrote, as the older version")
	o.form.Add(cmd)
	return cmd
}

// side is one version that is compared.
type side struct {
	policy.Policy
	version string
	// from says where it comes from.
	from string
}

func (s *side) String() string { return s.version + " (" + s.from + ")" }

func (o *options) run(ctx context.Context, args []string) error {
	if err := o.form.Validate(); err != nil {
		return exit.With(exit.Usage, err)
	}
	if o.file != "" && len(args) > 1 {
		return exit.With(exit.Usage, errors.New("--filename is one of two versions: name at most one more"))
	}
	before, after, err := o.sides(ctx, args)
	if err != nil {
		return err
	}
	made, err := compare(before, after)
	if err != nil {
		return err
	}
	if !o.form.Text() {
		return o.form.Write(o.Out, made)
	}
	if _, err := fmt.Fprint(o.Out, made.text()); err != nil {
		return fmt.Errorf("write the differences: %w", err)
	}
	return nil
}

// sides are the versions to compare, the older first.
func (o *options) sides(ctx context.Context, args []string) (before, after *side, err error) {
	if len(args) == 0 && o.file == "" {
		if before, err = o.pinned(ctx); err != nil {
			return nil, nil, err
		}
		args = []string{}
	}
	if o.file != "" {
		if before, err = fromFile(o.file); err != nil {
			return nil, nil, exit.With(exit.Usage, err)
		}
	}
	if before == nil {
		if before, err = embedded(args[0]); err != nil {
			return nil, nil, exit.With(exit.Usage, err)
		}
		args = args[1:]
	}
	newest := baseline.Latest
	if len(args) > 0 {
		newest = args[0]
	}
	if after, err = embedded(newest); err != nil {
		return nil, nil, exit.With(exit.Usage, err)
	}
	return before, after, nil
}

func embedded(version string) (*side, error) {
	p, err := baseline.Load(version)
	if err != nil {
		return nil, fmt.Errorf("%w; print another version with the plugin of its release and name the file with -f", err)
	}
	return &side{p, version, "embedded in this plugin"}, nil
}

func fromFile(name string) (*side, error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--filename: %w", err)
	}
	p, version, err := baseline.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("--filename: %s: %w", name, err)
	}
	return &side{p, version, name}, nil
}

// pinned is the version that counts in the cluster, by the names of who pins it.
func (o *options) pinned(ctx context.Context) (*side, error) {
	c, err := o.Client()
	if err != nil {
		return nil, err
	}
	policies, err := installed.Cluster(ctx, c)
	if err != nil {
		return nil, err
	}
	compiled, err := installed.Compile(policystore.Input{Cluster: policies, Now: metav1.Now()})
	if err != nil {
		return nil, err
	}
	version := compiled.Snapshot.BaselineVersion
	var by, others []string
	for i := range policies {
		switch pinned := policies[i].Spec.BaselineVersion; {
		case pinned == version:
			by = append(by, policies[i].Name)
		case !slices.Contains(baseline.Versions(), pinned):
			others = append(others, pinned)
		}
	}
	if len(others) > 0 {
		_, err := embedded(others[0])
		return nil, fmt.Errorf("a ClusterAgentPolicy of the cluster pins %s: %w", others[0], err)
	}
	found, err := embedded(version)
	if err != nil {
		return nil, err
	}
	found.from = "pinned by ClusterAgentPolicy " + strings.Join(by, ", ")
	if len(by) == 0 {
		found.from = "in force, because no ClusterAgentPolicy pins one"
	}
	return found, nil
}
