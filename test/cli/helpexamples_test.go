package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// examples NAMESPACE CODES COMMAND... runs every example of a command's help, with NAMESPACE for the namespace checkout, in the
// script's folder. Each must end with one of the exit codes, which are joined by commas.
func examples(ts *testscript.TestScript, _ bool, args []string) {
	namespace, codes, command := args[0], strings.Split(args[1], ","), args[2:]
	help := shell(ts, "kubectl stepbeyond "+strings.Join(command, " ")+" --help")
	output, err := help.Output()
	ts.Check(err)
	_, after, found := strings.Cut(string(output), "\nExamples:\n")
	if !found {
		ts.Fatalf("%q has no examples:\n%s", command, output)
	}
	ran := 0
	for line := range strings.Lines(after) {
		line = strings.TrimSpace(line)
		if line == "Usage:" || line == "Flags:" {
			break
		}
		if !strings.HasPrefix(line, "kubectl ") {
			continue
		}
		ran++
		output, err := shell(ts, strings.ReplaceAll(line, "checkout", namespace)).CombinedOutput()
		code := "0"
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			code = failed.String()[len("exit status "):]
		} else {
			ts.Check(err)
		}
		ts.Logf("$ %s\n%s", line, output)
		if !slices.Contains(codes, code) {
			ts.Fatalf("%s ends with %s, want %s", line, code, args[1])
		}
	}
	if ran == 0 {
		ts.Fatalf("%q has no example that can be run:\n%s", command, output)
	}
}

// shell runs a line as a person types it, in the script's folder and under its kubeconfig.
func shell(ts *testscript.TestScript, line string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+ts.Getenv("KUBECONFIG"), "HOME="+ts.Getenv("HOME"), "PATH="+ts.Getenv("PATH"))
	return cmd
}
