package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// actor is somebody with a credential of their own.
type actor struct {
	client.WithWatch
	username string
	config   *rest.Config
	core     kubernetes.Interface
}

func newActor(username string, cfg *rest.Config) (*actor, error) {
	cfg.QPS = -1 // the API server is asked as fast as the test can
	cfg.WarningHandlerWithContext = rest.NoWarnings{}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", username, err)
	}
	core, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", username, err)
	}
	return &actor{WithWatch: c, username: username, config: cfg, core: core}, nil
}

// accountActor acts with a token of a ServiceAccount; empty pod = bound to none.
func accountActor(ctx context.Context, namespace, name, pod string) (*actor, error) {
	token, err := plane.ServiceAccountToken(ctx, namespace, name, pod)
	if err != nil {
		return nil, err
	}
	return newActor("system:serviceaccount:"+namespace+":"+name, plane.Token(token))
}

// home is a governed namespace with the agent that works in it.
type home struct {
	namespace string
	agent     *actor
	pod       string
	// session of the agent's Deployment.
	session types.NamespacedName
}

var (
	atHome   = map[string]*home{}
	atHomeMu sync.Mutex
)

// at returns the home of a name in homes, once its agent has a session and the API server enforces there.
func at(t *testing.T, namespace string) *home {
	t.Helper()
	atHomeMu.Lock()
	defer atHomeMu.Unlock()
	if h := atHome[namespace]; h != nil {
		return h
	}
	h := &home{namespace: namespace}
	eventually(t, func() error {
		var sessions v1alpha1.AgentSessionList
		if err := admin.List(t.Context(), &sessions, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(sessions.Items) != 1 || sessions.Items[0].Status.State != v1alpha1.SessionActive || len(sessions.Items[0].Status.LivePods) != 1 {
			return fmt.Errorf("%d sessions in %s, want one that is active with one pod", len(sessions.Items), namespace)
		}
		h.session, h.pod = client.ObjectKeyFromObject(&sessions.Items[0]), sessions.Items[0].Status.LivePods[0].Name
		return nil
	})
	var err error
	if h.agent, err = accountActor(t.Context(), namespace, "agent", h.pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return governed(t, h.agent, namespace) })
	atHome[namespace] = h
	return h
}

// governed tells whether the API server asks the manager about writes of the actor: what it creates is stamped, and was
// decided. Those are two configurations, and an API server can know one before the other.
func governed(t *testing.T, a *actor, namespace string) error {
	t.Helper()
	probe := configMap(namespace, "probe")
	got := a.try(t, func(ctx context.Context, a *actor) error { return a.Create(ctx, probe, client.DryRunAll) })
	if got.err != nil {
		return got.err
	}
	if got.Class == "" {
		return fmt.Errorf("a ConfigMap of %s is not decided about", a.username)
	}
	if probe.Annotations[v1alpha1.AnnotationCreatedBy] == "" {
		return fmt.Errorf("a ConfigMap of %s is not stamped", a.username)
	}
	return nil
}

// outcome is what came of one request, by the answer that the client got and the record that the API server kept.
type outcome struct {
	Code    int32  // HTTP
	Status  string // status.reason, the word that kubectl prints
	Class   string
	Verdict string
	Reason  string // of the engine
	By      string // admission webhook or policy that refused
}

var (
	webhookSpoke = regexp.MustCompile(`admission webhook "([^"]+)" denied the request: (\w+):`)
	policySpoke  = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request: (\w+):`)
)

const (
	enforcer    = "enforce.stepbeyond.dev"
	causePrefix = "stepbeyond.dev/"
)

// attempt is one request and what came of it.
type attempt struct {
	outcome
	err     error
	message string
	grant   string // that the answer names
}

// try sends one request of the actor and reads what came of it. Requests of one actor must not overlap.
func (a *actor) try(t *testing.T, request func(context.Context, *actor) error) attempt {
	t.Helper()
	mark, err := plane.AuditMark()
	if err != nil {
		t.Fatal(err)
	}
	err = request(t.Context(), a)
	events, auditErr := plane.AuditSince(mark, a.username)
	if auditErr != nil {
		t.Fatal(auditErr)
	}
	return understand(err, events)
}

func understand(err error, events []auditv1.Event) attempt {
	got := attempt{err: err}
	if err != nil {
		got.message = err.Error()
	}
	var answered apierrors.APIStatus
	if errors.As(err, &answered) {
		status := answered.Status()
		got.Code, got.Status, got.message = status.Code, string(status.Reason), status.Message
		if details := status.Details; details != nil {
			for _, cause := range details.Causes {
				switch strings.TrimPrefix(string(cause.Type), causePrefix) {
				case "Class":
					got.Class = cause.Message
				case "Verdict":
					got.Verdict = cause.Message
				case "Reason":
					got.Reason = cause.Message
				case "Grant":
					got.grant = cause.Message
				}
			}
		}
	}
	if m := policySpoke.FindStringSubmatch(got.message); m != nil {
		got.By = m[1]
		return got
	}
	if m := webhookSpoke.FindStringSubmatch(got.message); m != nil {
		got.By = m[1]
		return got
	}
	for _, event := range events {
		if class, ok := event.Annotations[enforcer+"/class"]; ok {
			got.Class, got.Verdict, got.Reason = class, event.Annotations[enforcer+"/verdict"], event.Annotations[enforcer+"/reason"]
			got.grant = event.Annotations[enforcer+"/grant"]
		}
	}
	return got
}

// allowed, pending and refused are the outcomes that most rows want.
func allowed(class, reason string) outcome {
	return outcome{Class: class, Verdict: "Allow", Reason: reason}
}

func pending(reason string) outcome {
	return outcome{Code: 403, Status: reason, Class: "ASK", Verdict: "Pending", Reason: reason, By: enforcer}
}

func denied(class, status, reason string) outcome {
	return outcome{Code: 403, Status: status, Class: class, Verdict: "Deny", Reason: reason, By: enforcer}
}

// byFloor is a refusal of a ValidatingAdmissionPolicy; it names no class, because the floor holds nothing but FORBIDDEN.
func byFloor(policy string) outcome { return outcome{Code: 403, Status: "Forbidden", By: policy} }

// waitAtMost bounds every wait for something that the manager or a controller does by itself.
const waitAtMost = 30 * time.Second

// eventually calls done until it answers nil.
func eventually(t *testing.T, done func() error) {
	t.Helper()
	deadline := time.Now().Add(waitAtMost)
	for {
		err := done()
		if err == nil {
			return
		}
		if t.Context().Err() != nil || time.Now().After(deadline) {
			t.Fatalf("within %s: %v", waitAtMost, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// kubectl runs the real one as the actor and returns what it printed.
func (a *actor) kubectl(ctx context.Context, t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	binary, err := env.Asset("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := plane.Kubeconfig(strings.ReplaceAll(a.username, ":", "."), a.config, "")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+filepath.Join(plane.Dir(), "kubectl-cache"))
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// apiServerCounter sums a counter of the API server over all series with the labels.
func apiServerCounter(ctx context.Context, name string, labels map[string]string) (float64, error) {
	text, err := admin.core.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("metrics of the API server: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return 0, fmt.Errorf("metrics of the API server: %w", err)
	}
	var sum float64
	for _, metric := range families[name].GetMetric() {
		matches := 0
		for _, pair := range metric.GetLabel() {
			if labels[pair.GetName()] == pair.GetValue() {
				matches++
			}
		}
		if matches >= len(labels) {
			sum += metric.GetCounter().GetValue()
		}
	}
	return sum, nil
}
