// Package widths_test has people give answers of every width with kubectl, and agents use them, on a real control plane with
// the manager as a process of its own. People hold shipped ClusterRoles and nothing else; the agents hold every right.
package widths_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

const (
	// waitAtMost bounds every wait for what the manager does by itself.
	waitAtMost = time.Minute
	// maxSeconds and maxUses are what the profile allows.
	maxSeconds, maxUses = 600, 5
	// Profiles beside the shared one: changing has the same bounds and is changed by a test; under narrow less is allowed,
	// and under pair two people have to approve.
	changing, narrow, pair = "changing", "narrow", "pair"
)

// person answers with kubectl and a client certificate.
type person struct {
	name   string
	config *rest.Config
}

var (
	shared     *cluster.Cluster
	carla, ben *person
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/widths:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log.SetLogger(logr.Discard()) // what the clients of the tests would say is in the answers
	if shared, err = cluster.StartWith(ctx, env.Options{ControllerManager: true, WithoutAuthorizer: true, Dir: os.Getenv("WIDTHS_DIR")}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()
	if err := widen(ctx); err != nil {
		return 0, err
	}
	for _, p := range []struct {
		to   **person
		name string
	}{{&carla, "carla@acme.example"}, {&ben, "ben@acme.example"}} {
		cfg, err := shared.Env.User(p.name)
		if err != nil {
			return 0, err
		}
		*p.to = &person{name: p.name, config: cfg}
		if err := shared.Admin.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "approver-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "stepbeyond-approver"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: p.name}},
		}); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
}

// widen lets approvers answer for more than the exact operation, and binds the other profiles.
func widen(ctx context.Context) error {
	standard := &v1alpha1.AgentPolicy{}
	if err := shared.Admin.Get(ctx, client.ObjectKey{Namespace: env.SystemNamespace, Name: cluster.Profile}, standard); err != nil {
		return err
	}
	standard.Spec.Approvals = &v1alpha1.Approvals{WidestScope: v1alpha1.ScopeTimeBoxed, MaxTimeBoxSeconds: maxSeconds, MaxTimeBoxUses: maxUses}
	if err := shared.Admin.Update(ctx, standard); err != nil {
		return err
	}
	profiles := map[string]func(*v1alpha1.Approvals){
		changing: func(*v1alpha1.Approvals) {},
		narrow:   func(a *v1alpha1.Approvals) { a.WidestScope, a.MaxTimeBoxUses = v1alpha1.ScopeSession, 2 },
		pair: func(a *v1alpha1.Approvals) {
			a.Requirements = []v1alpha1.ApprovalRequirement{{Name: "two", Required: 2}}
		},
	}
	for name, edit := range profiles {
		profile := &v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: name}, Spec: *standard.Spec.DeepCopy()}
		edit(profile.Spec.Approvals)
		if err := shared.Admin.Create(ctx, profile); err != nil {
			return err
		}
	}
	return change(ctx, &v1alpha1.ClusterAgentPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, func(p *v1alpha1.ClusterAgentPolicy) {
		for name := range profiles {
			p.Spec.Profiles = append(p.Spec.Profiles, v1alpha1.ProfileBinding{Name: name, AgentPolicyName: name, FloorEnforcement: v1alpha1.FloorEnforcementEnforce})
		}
	})
}

// change writes one object as the administrator.
func change[T client.Object](ctx context.Context, object T, edit func(T)) error {
	if err := shared.Admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	before := object.DeepCopyObject().(client.Object)
	edit(object)
	return shared.Admin.Patch(ctx, object, client.MergeFrom(before))
}

func home(t *testing.T, namespace string) *cluster.Home {
	return homeUnder(t, namespace, cluster.Profile)
}

func homeUnder(t *testing.T, namespace, profile string) *cluster.Home {
	t.Helper()
	h, err := shared.HomeUnder(t.Context(), namespace, profile)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// must creates objects as the administrator; they are people's.
func must(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := shared.Admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"text": "hello"}}
}

// execute opens a connection as far as admission: no kubelet answers.
func execute(namespace, pod string, command ...string) request {
	return func(ctx context.Context, a *cluster.Actor) error {
		core, err := kubernetes.NewForConfig(a.Config)
		if err != nil {
			return err
		}
		options := &corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}
		return core.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("exec").
			VersionedParams(options, clientgoscheme.ParameterCodec).Do(ctx).Error()
	}
}

type request = func(context.Context, *cluster.Actor) error

// remove deletes an object as kubectl does.
func remove(object client.Object, options ...client.DeleteOption) request {
	return func(ctx context.Context, a *cluster.Actor) error {
		return a.Delete(ctx, object.DeepCopyObject().(client.Object), append([]client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground)}, options...)...)
	}
}

func merge(object client.Object, patch string) request {
	return func(ctx context.Context, a *cluster.Actor) error {
		return a.Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
}

// ask sends a request of the agent that opens a question, and returns the question.
func ask(t *testing.T, h *cluster.Home, send request) *v1alpha1.PermissionGrant {
	t.Helper()
	err := send(t.Context(), h.Agent)
	name := grantOf(err)
	if name == "" {
		t.Fatalf("the request of the agent in %s asks nothing: %v", h.Namespace, err)
	}
	return grant(t, h.Namespace, name)
}

// grantOf is the grant that a refusal names; empty for none.
func grantOf(err error) string { return causeOf(err, "Grant") }

func causeOf(err error, kind string) string {
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) || refused.Status().Details == nil {
		return ""
	}
	for _, cause := range refused.Status().Details.Causes {
		if string(cause.Type) == "stepbeyond.dev/"+kind {
			return cause.Message
		}
	}
	return ""
}

func grant(t *testing.T, namespace, name string) *v1alpha1.PermissionGrant {
	t.Helper()
	g := &v1alpha1.PermissionGrant{}
	if err := shared.Admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, g); err != nil {
		t.Fatal(err)
	}
	return g
}

// becomes waits until a grant is in a state, and stays there long enough to be read.
func becomes(t *testing.T, g *v1alpha1.PermissionGrant, state v1alpha1.GrantState) *v1alpha1.PermissionGrant {
	t.Helper()
	var now *v1alpha1.PermissionGrant
	eventually(t, func() error {
		now = grant(t, g.Namespace, g.Name)
		if now.Status.State != state {
			return fmt.Errorf("permissiongrant %s/%s is %s (%s), want %s", g.Namespace, g.Name, now.Status.State, now.Status.Reason, state)
		}
		return nil
	})
	return now
}

func eventually(t *testing.T, done func() error) {
	t.Helper()
	for deadline := time.Now().Add(waitAtMost); ; time.Sleep(50 * time.Millisecond) {
		err := done()
		if err == nil {
			return
		}
		if t.Context().Err() != nil || time.Now().After(deadline) {
			t.Fatalf("within %s: %v", waitAtMost, err)
		}
	}
}

// uses tells whether a request of the agent is let through under a grant, and fails when it is refused.
func uses(t *testing.T, h *cluster.Home, send request) {
	t.Helper()
	got, err := h.Agent.Try(t.Context(), send)
	if err != nil {
		t.Fatal(err)
	}
	if got.Class != "ASK" || got.Reason != "Granted" {
		t.Fatalf("the agent's request: class %s, reason %s: %v; want it granted", got.Class, got.Reason, got.Err)
	}
}

// asksAnew wants a request to be refused with a new question.
func asksAnew(t *testing.T, h *cluster.Home, wide *v1alpha1.PermissionGrant, send request) *v1alpha1.PermissionGrant {
	t.Helper()
	g := ask(t, h, send)
	if g.Name == wide.Name {
		t.Fatalf("the request is refused in the name of %s, want a question of its own", wide.Name)
	}
	return g
}

type fields = map[string]any

func answerPatch(g *v1alpha1.PermissionGrant, verdict v1alpha1.Verdict, scope fields) string {
	value := fields{"verdict": verdict, "shownDigest": g.Spec.Request.Digest}
	if scope != nil {
		value["scope"] = scope
	}
	text, err := json.Marshal([]fields{{"op": "add", "path": "/spec/decisions/-", "value": value}})
	if err != nil {
		panic(err) // the scopes are literals of the tests
	}
	return string(text)
}

// patches sends a JSON patch of a grant with kubectl.
func (p *person) patches(t *testing.T, g *v1alpha1.PermissionGrant, patch string) (string, error) {
	t.Helper()
	return p.kubectl(t, "-n", g.Namespace, "patch", "permissiongrant", g.Name, "--type=json", "-p", patch)
}

// approves gives an answer of this width, which is taken, and returns the grant once it is approved.
func (p *person) approves(t *testing.T, g *v1alpha1.PermissionGrant, scope fields) *v1alpha1.PermissionGrant {
	t.Helper()
	if out, err := p.patches(t, g, answerPatch(g, v1alpha1.VerdictApprove, scope)); err != nil {
		t.Fatalf("%s approves: %v: %s", p.name, err, out)
	}
	return becomes(t, g, v1alpha1.GrantApproved)
}

func (p *person) kubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	binary, err := env.Asset("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := shared.Env.Kubeconfig(p.name, p.config, "")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+filepath.Join(shared.Env.Dir(), "kubectl-cache"))
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
