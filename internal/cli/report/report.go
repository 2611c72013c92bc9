// Package report is the flag -o of commands whose answer is a report of their own and no object of the API.
package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Forms of a report.
const (
	asText = ""
	asJSON = "json"
	asYAML = "yaml"
)

// Form is how a report is written; the zero value is text.
type Form string

// Add registers -o.
func (f *Form) Add(cmd *cobra.Command) {
	cmd.Flags().StringVarP((*string)(f), "output", "o", asText, "json or yaml; text without it")
	// The flag was registered a line above, which is all that can go wrong.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{asJSON, asYAML}, cobra.ShellCompDirectiveNoFileComp))
}

// Validate refuses a form that does not exist.
func (f *Form) Validate() error {
	switch *f {
	case asText, asJSON, asYAML:
		return nil
	default:
		return fmt.Errorf("--output: %q is not json or yaml", string(*f))
	}
}

// Text tells that text for people is wanted.
func (f *Form) Text() bool { return *f == asText }

// Write writes a report in a form for machines.
func (f *Form) Write(out io.Writer, report any) error {
	content, err := json.MarshalIndent(report, "", "    ")
	if err == nil && *f == asYAML {
		content, err = yaml.JSONToYAML(content)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if *f == asJSON {
		content = append(content, '\n')
	}
	if _, err := out.Write(content); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
