// Package cases is the command kubectl stepbeyond policy test: it runs folders of policy tests, without a cluster.
package cases

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stepbeyond.dev/stepbeyond/internal/cli/exit"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/cli/report"
	"stepbeyond.dev/stepbeyond/internal/cli/terminal"
	"stepbeyond.dev/stepbeyond/internal/policytest"
)

const (
	long = `Decide the cases of policy tests by the policies beside them, and compare the answers with the wanted ones.

A test is a folder with policy.yaml and cases.yaml; docs/policy-language.md describes both. No cluster is asked and no
kubeconfig is read: policies are checked and completed by the schemas of this plugin's release and decided by the code of
its manager.

Exit codes: 0 every case passes, 1 a case fails, 2 a folder cannot be read as a policy test, or the command line is wrong.`

	examples = `  # Run one test
  kubectl stepbeyond policy test tests/production

  # Run several in a pipeline, and keep the report
  kubectl stepbeyond policy test tests/* -o json > report.json`
)

type options struct {
	*factory.Factory
	form report.Form
}

// Command runs policy tests.
func Command(f *factory.Factory) *cobra.Command {
	o := &options{Factory: f}
	cmd := &cobra.Command{
		Use:     "test DIR...",
		Short:   "Run policy tests without a cluster",
		Long:    long,
		Example: examples,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := o.validate(args); err != nil {
				return exit.With(exit.Usage, err)
			}
			return o.run(args)
		},
	}
	o.form.Add(cmd)
	return cmd
}

func (o *options) validate(folders []string) error {
	if len(folders) == 0 {
		return errors.New("name a folder with a policy test, as in: kubectl stepbeyond policy test tests/production")
	}
	return o.form.Validate()
}

func (o *options) run(folders []string) error {
	all := &Report{}
	for _, folder := range folders {
		all.add(runFolder(folder))
	}
	var err error
	if o.form.Text() {
		_, err = fmt.Fprint(o.Out, all.text(terminal.For(o.Out)))
	} else {
		err = o.form.Write(o.Out, all)
	}
	switch {
	case err != nil:
		return fmt.Errorf("write the report: %w", err)
	case all.Unreadable > 0:
		return exit.With(exit.Usage, fmt.Errorf("%s cannot be read as policy tests", strings.Join(all.unreadable(), ", ")))
	case all.Failed > 0:
		return fmt.Errorf("%d of %d cases failed", all.Failed, all.Failed+all.Passed)
	default:
		return nil
	}
}

// runFolder decides the cases of one folder. It always gives a report; what is wrong with the files stands in it.
func runFolder(path string) (made Folder) {
	made.Folder = path
	started := time.Now()
	defer func() { made.Milliseconds = time.Since(started).Milliseconds() }()
	if info, err := os.Stat(path); err != nil {
		made.Problems = []string{reason(err)}
		return made
	} else if !info.IsDir() {
		made.Problems = []string{"is no folder; a policy test is a folder with " + policytest.File}
		return made
	}
	suite, err := policytest.Load(os.DirFS(path))
	if err != nil {
		made.Problems = lines(err)
		return made
	}
	made.Name = suite.Name()
	results, _ := suite.Run() // each error stands at its case
	for i := range results {
		made.addCase(&results[i])
	}
	made.UntouchedRules = suite.Untouched(results)
	return made
}

// reason is an error about a path without the path.
func reason(err error) string {
	var about *fs.PathError
	if errors.As(err, &about) {
		return about.Err.Error()
	}
	return err.Error()
}

// lines of a joined error.
func lines(err error) []string { return strings.Split(err.Error(), "\n") }

// place is where a case stands, as editors and terminals follow it.
func place(folder string, line int) string {
	path := filepath.ToSlash(filepath.Join(folder, policytest.File))
	if line == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, line)
}
