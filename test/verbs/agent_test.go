package verbs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
	"stepbeyond.dev/stepbeyond/policy"
)

// agent is a governed identity in a namespace of its own.
type agent struct {
	namespace  string
	username   string
	kubeconfig string
	// read is how much of the API server's audit log this agent has read: whole lines.
	read int64
}

// meet returns the agent of a namespace, once it has a session and the API server enforces there.
func meet(ctx context.Context, namespace string) (*agent, error) {
	pod := ""
	if err := eventually(ctx, func() error {
		var sessions v1alpha1.AgentSessionList
		if err := admin.List(ctx, &sessions, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(sessions.Items) != 1 || sessions.Items[0].Status.State != v1alpha1.SessionActive || len(sessions.Items[0].Status.LivePods) != 1 {
			return fmt.Errorf("%d sessions in %s, want one that is active with one pod", len(sessions.Items), namespace)
		}
		pod = sessions.Items[0].Status.LivePods[0].Name
		return nil
	}); err != nil {
		return nil, err
	}
	token, err := plane.ServiceAccountToken(ctx, namespace, "agent", pod)
	if err != nil {
		return nil, err
	}
	config := plane.Token(token)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	a := &agent{namespace: namespace, username: "system:serviceaccount:" + namespace + ":agent"}
	if a.kubeconfig, err = plane.Kubeconfig(namespace, config, namespace); err != nil {
		return nil, err
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", a.username, err)
	}
	return a, eventually(ctx, func() error { return a.governed(ctx, core) })
}

// governed tells whether the API server asks the manager, which stamps what the agent creates, and the floor.
func (a *agent) governed(ctx context.Context, core kubernetes.Interface) error {
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	probe := metav1.ObjectMeta{Name: "probe"}
	made, err := core.CoreV1().ConfigMaps(a.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: probe}, dryRun)
	if err != nil {
		return err
	}
	if made.Annotations[v1alpha1.AnnotationCreatedBy] == "" {
		return fmt.Errorf("a ConfigMap of %s is not stamped", a.username)
	}
	if _, err = core.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: probe}, dryRun); err == nil || !floorSpoke.MatchString(err.Error()) {
		return fmt.Errorf("the floor does not answer %s: %w", a.username, err)
	}
	return nil
}

// command is one command line of kubectl, the same at every run.
type command struct {
	args []string
	env  []string
}

// run is what came of one run of a command.
type run struct {
	output string // of both streams, without the log of requests
	failed bool
	// requests to the API server but those of discovery, as METHOD=status.
	requests []string
	// class is the largest that the answers and the API server's records name; 0 where nothing was gated.
	class policy.Class
	// grant that the refusal says to wait for.
	grant string
	// unlucky runs came before.
	unlucky int
}

// pending tells that a question is open.
func (r *run) pending() bool { return r.failed && pendingAnswer.MatchString(r.output) }

var (
	floorSpoke    = regexp.MustCompile(`ValidatingAdmissionPolicy '?"?stepbeyond-floor-[a-z]+`)
	webhookSpoke  = regexp.MustCompile(`admission webhook "` + regexp.QuoteMeta(enforcement.EntryEnforce) + `" denied the request: `)
	refusal       = regexp.MustCompile(`denied (?:the )?request: `)
	forbidden     = regexp.MustCompile(`denied (?:the )?request: Forbidden: `)
	pendingAnswer = regexp.MustCompile(`(?s)denied the request: Pending: .* Next: .*`)
	// askedGrant is the one to wait for; others that the answer names are spent.
	askedGrant    = regexp.MustCompile(`Next: [^\n]* get permissiongrant (pg-[a-z2-7]+(?:-\d+)?)`)
	inUse         = regexp.MustCompile(`; GrantInUse\]`)
	responseLog   = regexp.MustCompile(`(?m)^[IWE]\d{4} .*"Response".* verb="(\w+)" url="https?://[^/"]+([^"]*)" status="(\d*)`)
	anyLog        = regexp.MustCompile(`(?m)^[IWEF]\d{4} \d\d:\d\d:.*\n`)
	discoveryPath = regexp.MustCompile(`^/(?:api|api/v1|apis(?:/[^/?]+){0,2}|version|openapi/.*)(?:\?.*)?$`)
	// unlucky answers say nothing about the request: the manager had no time, or another writer came between.
	unlucky = regexp.MustCompile(`; (?:Undecided|PolicyNotLoaded|StaleRead)\]|failed calling webhook|Operation cannot be fulfilled|the object has been modified|etcdserver: |TLS handshake timeout|connection refused`)
)

// unluckyRuns counts those that were run again.
var unluckyRuns atomic.Int64

const luckyAfter = 30

// kubectl runs a command as the agent, again while the answer is unlucky.
func (a *agent) kubectl(t *testing.T, c command) *run {
	t.Helper()
	for attempt := 1; ; attempt++ {
		r, err := a.once(t, c)
		if err != nil {
			t.Fatalf("kubectl %q: %v", c.args, err)
		}
		if !r.failed || !unlucky.MatchString(r.output) || attempt == luckyAfter {
			r.unlucky = attempt - 1
			return r
		}
		unluckyRuns.Add(1)
	}
}

func (a *agent) once(t *testing.T, c command) (*run, error) {
	binary, err := env.Asset("kubectl")
	if err != nil {
		return nil, err
	}
	if _, err := a.records(); err != nil { // what came of earlier requests
		return nil, err
	}
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"-v=6"}, c.args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+a.kubeconfig, "KUBECACHEDIR="+filepath.Join(plane.Dir(), "kubectl-cache"), "TMPDIR="+t.TempDir())
	cmd.Env = append(cmd.Env, "GOGC=off", "GOMAXPROCS=1") // a run is short, and there are thousands
	cmd.Env = append(cmd.Env, c.env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	// kubectl cordon and drain end well when the API server refuses.
	r := &run{failed: err != nil || refusal.Match(out)}
	for _, m := range responseLog.FindAllSubmatch(out, -1) {
		if !discoveryPath.Match(m[2]) {
			r.requests = append(r.requests, fmt.Sprintf("%s=%s", m[1], m[3]))
		}
	}
	r.output = strings.TrimSpace(string(anyLog.ReplaceAll(append(bytes.TrimSpace(out), '\n'), nil)))
	return r, a.understand(r)
}

// understand reads class and grant.
func (a *agent) understand(r *run) error {
	events, err := a.records()
	if err != nil {
		return err
	}
	for _, event := range events {
		if class, ok := policy.ParseClass(event.Annotations[enforcement.EntryEnforce+"/class"]); ok {
			r.class = max(r.class, class)
		}
	}
	if !r.failed {
		return nil
	}
	if m := askedGrant.FindStringSubmatch(r.output); m != nil {
		r.grant = m[1]
	}
	if floorSpoke.MatchString(r.output) || forbidden.MatchString(r.output) {
		r.class = policy.ClassForbidden // the floor holds nothing else
	}
	return nil
}

// records returns what the API server has recorded of the agent's writes since the last call. The others write at the
// same time, so that a mark at the end of the file could be within a line.
func (a *agent) records() ([]auditv1.Event, error) {
	file, err := os.Open(filepath.Join(plane.Dir(), "logs", "audit.log"))
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(a.read, io.SeekStart); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	a.read += int64(len(text))
	var events []auditv1.Event
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, []byte(a.username)) {
			continue
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if event.User.Username == a.username {
			events = append(events, event)
		}
	}
	return events, nil
}
