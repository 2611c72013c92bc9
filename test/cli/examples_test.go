package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"stepbeyond.dev/stepbeyond/internal/cli"
)

var (
	subcommand  = regexp.MustCompile(`(?m)^  ([a-z-]+) {2,}\S`)
	exampleLine = regexp.MustCompile(`(?m)^  (kubectl stepbeyond .+)$`)
)

// help is what a command says of itself.
func help(t *testing.T, command ...string) string {
	t.Helper()
	var out bytes.Buffer
	if code := cli.Run(t.Context(), append(command, "--help"), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}); code != 0 {
		t.Fatalf("%q --help: exit code %d\n%s", command, code, out.String())
	}
	return out.String()
}

// section of a help text, up to the next empty line that no indented one follows.
func section(text, title string) string {
	_, rest, _ := strings.Cut(text, title+":\n")
	if end := regexp.MustCompile(`\n\n\S`).FindStringIndex(rest); end != nil {
		rest = rest[:end[0]]
	}
	return rest
}

// examplesOf lists the example commands of a command and of everything below it, and fails for one without any.
func examplesOf(t *testing.T, command ...string) []string {
	t.Helper()
	text := help(t, command...)
	var examples []string
	below := subcommand.FindAllStringSubmatch(section(text, "Available Commands"), -1)
	for _, name := range below {
		if name[1] != "help" && name[1] != "completion" { // cobra's own
			examples = append(examples, examplesOf(t, append(command[:len(command):len(command)], name[1])...)...)
		}
	}
	own := exampleLine.FindAllStringSubmatch(section(text, "Examples"), -1)
	if len(own) == 0 && len(below) == 0 {
		t.Errorf("kubectl stepbeyond %s has no example", strings.Join(command, " "))
	}
	for _, line := range own {
		examples = append(examples, line[1])
	}
	return examples
}

// Proves K-4.
func TestEveryCommandHasAnExample(t *testing.T) {
	if examples := examplesOf(t); len(examples) < 15 {
		t.Errorf("only %d examples were found: %q", len(examples), examples)
	}
}

// staged are the commands whose examples run here; those of the others run where their own tests are.
var staged = []string{"pending", "show", "why", "approve", "deny", "revoke", "reopen", "sessions"}

var (
	exampleGrant   = regexp.MustCompile(`pg-[a-z0-9]+`)
	exampleSession = regexp.MustCompile(`stepbeyond.dev/session=[a-z0-9-]+`)
	exampleDigest  = regexp.MustCompile(`v1:[0-9a-f]{64}`)
)

// Each example meets a question of its own, with what is made up in it replaced by what is there.
//
// Proves K-4.
func TestTheExamplesOfTheCommandsRun(t *testing.T) {
	script := strings.Builder{}
	script.WriteString(`home examples wide
person erin stepbeyond-approver stepbeyond-viewer
exec kubectl create deployment web -n examples --image=registry.acme.example/web:1
eventually pod/web- kubectl get pods -n examples -l app=web -o name
capture pod kubectl get pods -n examples -l app=web -o jsonpath={.items[0].metadata.name}
capture session kubectl get agentsessions.stepbeyond.dev -n examples -o jsonpath={.items[0].metadata.name}
`)
	lines := 0
	for _, command := range staged {
		for _, line := range examplesOf(t, command) {
			lines++
			script.WriteString(stage(lines, command, line))
		}
	}
	if lines < 15 {
		t.Errorf("only %d examples were found", lines)
	}
	script.WriteString("-- yes.txt --\ny\n")
	file := filepath.Join(t.TempDir(), "examples.txtar")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	p := parameters()
	p.Files = []string{file}
	testscript.Run(t, p)
}

// stage is one example with the question that it is about. The shell reads the line as a user's does.
func stage(i int, command, line string) string {
	var b strings.Builder
	question := fmt.Sprintf("foreign examples example-%d\nasks q%d kubectl delete configmap example-%d -n examples\n", i, i, i)
	if strings.Contains(line, "--command") {
		question = fmt.Sprintf("asks q%d kubectl exec $pod -n examples -- cat /etc/nginx/nginx.conf\n", i)
	}
	b.WriteString(question)
	fmt.Fprintf(&b, "env KUBECONFIG=$erin\ncapture digest%d kubectl get permissiongrant $q%d -n examples -o jsonpath={.spec.request.digest}\n", i, i)
	if command == "reopen" {
		fmt.Fprintf(&b, "exec kubectl stepbeyond deny $q%d -n examples\n", i)
	}
	line = strings.ReplaceAll(line, "-n checkout", "-n examples")
	line = exampleGrant.ReplaceAllLiteralString(line, fmt.Sprintf("$q%d", i))
	line = exampleSession.ReplaceAllLiteralString(line, "stepbeyond.dev/session=$session")
	line = exampleDigest.ReplaceAllLiteralString(line, fmt.Sprintf("$digest%d", i))
	if (command == "approve" || command == "deny") && !strings.Contains(line, " -y") {
		b.WriteString("ttyin -stdin yes.txt\n")
	}
	fmt.Fprintf(&b, "exec sh -c '%s'\nenv KUBECONFIG=$admin\n", strings.ReplaceAll(line, "'", "''"))
	return b.String()
}
