package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

// actor is somebody with a credential of their own, at one API server.
type actor struct {
	client.WithWatch
	username string
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
	return &actor{WithWatch: c, username: username, core: core}, nil
}

// home is a governed namespace with the agent that works in it.
type home struct {
	namespace string
	// agents are one agent with one token, at the first and at the second API server.
	agents  [2]*actor
	pod     corev1.Pod
	session types.NamespacedName
}

var (
	atHome   = map[string]*home{}
	atHomeMu sync.Mutex
)

// at returns the home of a name in homes, once its agent has a session and both API servers enforce there.
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
		h.session = client.ObjectKeyFromObject(&sessions.Items[0])
		return admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: sessions.Items[0].Status.LivePods[0].Name}, &h.pod)
	})
	token, err := plane.ServiceAccountToken(t.Context(), namespace, "agent", h.pod.Name)
	if err != nil {
		t.Fatal(err)
	}
	cfg := plane.Token(token)
	for i, cfg := range []*rest.Config{cfg, second.At(cfg)} {
		if h.agents[i], err = newActor("system:serviceaccount:"+namespace+":agent", cfg); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error { return governed(t, i, h.agents[i], namespace) })
	}
	atHome[namespace] = h
	return h
}

// governed tells whether API server i asks the manager about writes of the actor: what it creates is stamped, and was
// decided. Those are two configurations, and an API server can know one before the other.
func governed(t *testing.T, i int, a *actor, namespace string) error {
	t.Helper()
	mark, err := servers()[i].AuditMark()
	if err != nil {
		return err
	}
	probe := configMap(namespace, "probe")
	if err := a.Create(t.Context(), probe, client.DryRunAll); err != nil {
		return err
	}
	events, err := servers()[i].AuditSince(mark, a.username)
	if err != nil {
		return err
	}
	decided := func(e auditv1.Event) bool { return e.Annotations[enforcer+"/class"] != "" }
	if !slices.ContainsFunc(events, decided) {
		return fmt.Errorf("a ConfigMap of %s is not decided about", a.username)
	}
	if probe.Annotations[v1alpha1.AnnotationCreatedBy] == "" {
		return fmt.Errorf("a ConfigMap of %s is not stamped", a.username)
	}
	return nil
}

// request is one write of an agent.
type request func(context.Context, *actor) error

// answer is what the client of a request learned.
type answer struct {
	// word is the policy's reason, or the API server's word; empty for success.
	word string
	// grant that the answer names.
	grant   string
	message string
}

func (a answer) succeeded() bool { return a.word == "" }

const (
	causePrefix = "stepbeyond.dev/"
	noAnswer    = "NoAnswer" // no HTTP status
)

func understand(err error) answer {
	if err == nil {
		return answer{}
	}
	got := answer{word: noAnswer, message: err.Error()}
	var answered apierrors.APIStatus
	if !errors.As(err, &answered) {
		return got
	}
	status := answered.Status()
	got.word, got.message = string(status.Reason), status.Message
	if status.Reason == metav1.StatusReasonUnknown {
		got.word = noAnswer
	}
	if status.Details == nil {
		return got
	}
	for _, cause := range status.Details.Causes {
		switch strings.TrimPrefix(string(cause.Type), causePrefix) {
		case "Reason":
			got.word = cause.Message
		case "Grant":
			got.grant = cause.Message
		}
	}
	return got
}

// passing are the words of refusals that say nothing about the grant: a replica that died or was short of time, a version
// that was overtaken, a write that lost.
func (a answer) passing() bool {
	switch a.word {
	case string(policy.ReasonUndecided), string(policy.ReasonStaleRead), string(policy.ReasonPolicyNotLoaded), string(policy.ReasonUnstamped), noAnswer,
		string(metav1.StatusReasonConflict), string(metav1.StatusReasonInternalError), string(metav1.StatusReasonTimeout),
		string(metav1.StatusReasonServerTimeout), string(metav1.StatusReasonServiceUnavailable), string(metav1.StatusReasonTooManyRequests):
		return true
	default:
		return false
	}
}

// ask sends a request until its answer names an open question, and returns the question.
func (h *home) ask(t *testing.T, r request) *v1alpha1.PermissionGrant {
	t.Helper()
	var got answer
	for try := 0; ; try++ {
		got = understand(r(t.Context(), h.agents[try%2]))
		if !got.passing() || try == maxTries {
			break
		}
		time.Sleep(pause)
	}
	if got.grant == "" {
		t.Fatalf("asking: %s %s, want a question", got.word, got.message)
	}
	return h.grant(t, got.grant)
}

// maxTries bounds how often a request is sent again after a passing refusal, with a pause in between.
const (
	maxTries = 100
	pause    = 100 * time.Millisecond
)

func (h *home) grant(t *testing.T, name string) *v1alpha1.PermissionGrant {
	t.Helper()
	g := &v1alpha1.PermissionGrant{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: name}, g); err != nil {
		t.Fatal(err)
	}
	return g
}

func patchOf(operations ...map[string]any) client.Patch {
	text, err := json.Marshal(operations)
	if err != nil {
		panic(err) // the operations are literals of the tests
	}
	return client.RawPatch(types.JSONPatchType, text)
}

func mergePatch(text string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(text))
}

// approve has carla answer a question as status.approveCommand says.
func (h *home) approve(t *testing.T, g *v1alpha1.PermissionGrant) {
	t.Helper()
	patch := patchOf(map[string]any{"op": "add", "path": "/spec/decisions/-", "value": map[string]any{
		"verdict": v1alpha1.VerdictApprove, "shownDigest": g.Spec.Request.Digest,
	}})
	eventually(t, func() error { return carla.Patch(t.Context(), g.DeepCopy(), patch) })
}

// approved asks and has carla approve.
func (h *home) approved(t *testing.T, r request) *v1alpha1.PermissionGrant {
	t.Helper()
	g := h.ask(t, r)
	h.approve(t, g)
	return g
}

// waitAtMost bounds every wait for something that a replica or a controller does by itself.
const waitAtMost = 60 * time.Second

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
		time.Sleep(20 * time.Millisecond)
	}
}
