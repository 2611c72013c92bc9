package cli_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Proves G-1, G-3, G-4, G-6, K-4.
func TestQuestionsAreListedAndAnsweredAsAUserTypesIt(t *testing.T) {
	testscript.Run(t, parameters("grants-pending", "grants-show", "grants-approve", "grants-people", "grants-batch", "grants-width", "grants-takeback", "grants-watch", "grants-complete"))
}

// Proves K-4.
func TestEveryWrongCommandLineAboutGrantsNamesWhatIsWrong(t *testing.T) {
	testscript.Run(t, parameters("grants-wrong"))
}

// Proves G-4, K-4.
func TestPlainKubectlAnswersAsWell(t *testing.T) {
	testscript.Run(t, parameters("grants-kubectl"))
}

// Proves K-4.
func TestSessionsAreListedAsATree(t *testing.T) {
	testscript.Run(t, parameters("sessions"))
}

var askedAs = regexp.MustCompile(`permissiongrant/(pg-[a-z0-9-]+)`)

// asks NAME COMMAND... has the agent send something that needs an approval; $NAME is the grant.
func asks(ts *testscript.TestScript, _ bool, args []string) {
	output, err := run(ts, ts.Getenv("agent"), args[1], args[2:]...)
	found := askedAs.FindAllSubmatch(output, -1)
	if err == nil || found == nil {
		ts.Fatalf("%q asks for nothing: %v\n%s", args[1:], err, output)
	}
	// Of several the last is the one that is open.
	ts.Setenv(args[0], string(found[len(found)-1][1]))
}

// capture NAME COMMAND... puts the standard output of a command into $NAME.
func capture(ts *testscript.TestScript, _ bool, args []string) {
	output, err := run(ts, ts.Getenv("KUBECONFIG"), args[1], args[2:]...)
	if err != nil {
		ts.Fatalf("%q: %v\n%s", args[1:], err, output)
	}
	ts.Setenv(args[0], strings.TrimSpace(string(output)))
}

func run(ts *testscript.TestScript, kubeconfig, program string, args ...string) ([]byte, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+ts.Getenv("HOME"), "PATH="+ts.Getenv("PATH"))
	return cmd.CombinedOutput()
}

// foreign NAMESPACE NAME... makes ConfigMaps that are no agent's, so that deleting one needs an approval.
func foreign(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args[1:] {
		ts.Check(world.Admin.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: args[0], Name: name}}))
	}
}

// masked FILE rewrites what differs from run to run in a file: times, uids, names and digests of grants and pods.
func masked(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	for _, mask := range masks {
		text = mask.pattern.ReplaceAllString(text, mask.with)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

var masks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`v1:[0-9a-f]{64}`), "DIGEST"},
	{regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`20\d\d-\d\d-\d\d( \d\d:\d\d UTC \([0-9dhms]+\))?`), "DATE"},
	{regexp.MustCompile(`\d\d-\d\d \d\d:\d\dZ`), "EXPIRES"},
	{regexp.MustCompile(`pg-[a-z2-7]{16}`), "GRANT"},
	{regexp.MustCompile(`question=[a-z2-7]{16}`), "question=QUESTION"},
	{regexp.MustCompile(`agent-[0-9a-f]{5}\b`), "SESSION"},
	{regexp.MustCompile(`agent-[a-z0-9]{8,10}-[a-z0-9]{5}`), "POD"},
	{regexp.MustCompile(`(Resource Version: +)\d+`), "${1}VERSION"},
	{regexp.MustCompile(`\b\d+s ago`), "AGE ago"},
}

// untold NAME USER OLD NEW puts a connection of the user into $NAME on which every answer that is read has NEW for OLD: what
// is shown there is not what is stored.
func untold(ts *testscript.TestScript, _ bool, args []string) {
	connect(ts, args[0], args[1], func(*http.Request) {}, func(r *http.Response) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		body = bytes.ReplaceAll(body, []byte(args[2]), []byte(args[3]))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	})
}

// logged FILE PATTERN waits until a file matches, which a command in the background writes.
func logged(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile(args[1])
	for deadline := time.Now().Add(waitAtMost); ; time.Sleep(50 * time.Millisecond) {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && pattern.Match(text) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s never has %s: %v\n%s", args[0], args[1], err, text)
		}
	}
}
