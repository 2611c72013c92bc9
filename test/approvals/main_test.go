// Package approvals_test has people answer what agents ask, on a real control plane with the manager as a process of its
// own. People hold shipped ClusterRoles and nothing else; the agents hold every right, so that what is refused to them is
// refused by Step Beyond. There is no authorization webhook, so that it is refused by admission.
package approvals_test

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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

const (
	// waitAtMost bounds every wait for what the manager or a controller does by itself.
	waitAtMost = time.Minute

	approverRole = "stepbeyond-approver"
	// sessionUser is the human behind every session of the shared cluster.
	sessionUser = "dora@acme.example"
	// refusing is the profile under which the session's user does not approve.
	refusing = "production"
)

// person is somebody with a client certificate.
type person struct {
	client.WithWatch
	name   string
	config *rest.Config
}

// The shared cluster, as TestMain made it. carla and ben approve everywhere, and so does dora, for whom the agents work;
// vera only looks.
var (
	shared                 *cluster.Cluster
	scheme                 = runtime.NewScheme()
	carla, ben, dora, vera *person
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/approvals:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log.SetLogger(logr.Discard()) // what the clients of the tests would say is in the answers
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return 0, fmt.Errorf("scheme: %w", err)
		}
	}
	if shared, err = cluster.StartWith(ctx, env.Options{ControllerManager: true, WithoutAuthorizer: true, Dir: os.Getenv("APPROVALS_DIR")}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()
	if err := addRefusingProfile(ctx); err != nil {
		return 0, err
	}
	for _, p := range []struct {
		to         **person
		name, role string
	}{{&carla, "carla@acme.example", approverRole}, {&ben, "ben@acme.example", approverRole}, {&dora, sessionUser, approverRole}, {&vera, "vera@acme.example", "stepbeyond-viewer"}} {
		cfg, err := shared.Env.User(p.name)
		if err != nil {
			return 0, err
		}
		if *p.to, err = as(p.name, cfg); err != nil {
			return 0, err
		}
		if err := shared.Admin.Create(ctx, everywhere(p.role, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: p.name})); err != nil {
			return 0, err
		}
	}
	return m.Run(), nil
}

func as(name string, cfg *rest.Config) (*person, error) {
	cfg.QPS, cfg.WarningHandlerWithContext = -1, rest.NoWarnings{}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme, Mapper: shared.Admin.RESTMapper()}) // who is impersonated need not discover
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", name, err)
	}
	return &person{WithWatch: c, name: name, config: cfg}, nil
}

// everywhere binds a ClusterRole in all namespaces.
func everywhere(role string, subject rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: role + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}
}

// addRefusingProfile binds a second profile, which wants another person than the session's user.
func addRefusingProfile(ctx context.Context) error {
	standard := &v1alpha1.AgentPolicy{}
	if err := shared.Admin.Get(ctx, client.ObjectKey{Namespace: env.SystemNamespace, Name: cluster.Profile}, standard); err != nil {
		return err
	}
	second := &v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: refusing}, Spec: *standard.Spec.DeepCopy()}
	second.Spec.Approvals = &v1alpha1.Approvals{SessionUser: v1alpha1.SessionUserRefuse}
	if err := shared.Admin.Create(ctx, second); err != nil {
		return err
	}
	return changePolicy(ctx, func(spec *v1alpha1.ClusterAgentPolicySpec) {
		spec.Profiles = append(spec.Profiles, v1alpha1.ProfileBinding{Name: refusing, AgentPolicyName: refusing, FloorEnforcement: v1alpha1.FloorEnforcementEnforce})
	})
}

func changePolicy(ctx context.Context, change func(*v1alpha1.ClusterAgentPolicySpec)) error {
	object := &v1alpha1.ClusterAgentPolicy{}
	if err := shared.Admin.Get(ctx, client.ObjectKey{Name: "default"}, object); err != nil {
		return err
	}
	before := object.DeepCopy()
	change(&object.Spec)
	return shared.Admin.Patch(ctx, object, client.MergeFrom(before))
}

func home(t *testing.T, namespace, profile string) *cluster.Home {
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

func remove(object client.Object) func(context.Context, *cluster.Actor) error {
	return func(ctx context.Context, a *cluster.Actor) error {
		return client.IgnoreNotFound(a.Delete(ctx, object.DeepCopyObject().(client.Object)))
	}
}

// ask sends a request of the agent that opens a question, and returns the question.
func ask(t *testing.T, h *cluster.Home, request func(context.Context, *cluster.Actor) error) *v1alpha1.PermissionGrant {
	t.Helper()
	name := grantOf(request(t.Context(), h.Agent))
	if name == "" {
		t.Fatalf("the request of the agent in %s asks nothing: %v", h.Namespace, request(t.Context(), h.Agent))
	}
	return grant(t, h.Namespace, name)
}

// grantOf is the grant that a refusal names; empty for none.
func grantOf(err error) string {
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) || refused.Status().Details == nil {
		return ""
	}
	for _, cause := range refused.Status().Details.Causes {
		if cause.Type == "stepbeyond.dev/Grant" {
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

// becomes waits until a grant has a state.
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

// answer is the JSON patch that status.approveCommand prints, with whatever else somebody claims.
func answer(g *v1alpha1.PermissionGrant, verdict v1alpha1.Verdict, claims map[string]any) client.Patch {
	value := map[string]any{"verdict": verdict, "shownDigest": g.Spec.Request.Digest}
	for key, claim := range claims {
		value[key] = claim
	}
	text, err := json.Marshal([]map[string]any{{"op": "add", "path": "/spec/decisions/-", "value": value}})
	if err != nil {
		panic(err) // the claims are literals of the tests
	}
	return client.RawPatch(types.JSONPatchType, text)
}

func decide(t *testing.T, who *person, g *v1alpha1.PermissionGrant, verdict v1alpha1.Verdict) {
	t.Helper()
	if err := who.Patch(t.Context(), g.DeepCopy(), answer(g, verdict, nil)); err != nil {
		t.Fatalf("%s answers: %v", who.name, err)
	}
}

// kubectl runs the real one as a person and returns what it printed.
func (p *person) kubectl(ctx context.Context, t *testing.T, environment []string, args ...string) (string, error) {
	t.Helper()
	binary, err := env.Asset("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := shared.Env.Kubeconfig(strings.ReplaceAll(p.name, ":", "."), p.config, "")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+filepath.Join(shared.Env.Dir(), "kubectl-cache")), environment...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
