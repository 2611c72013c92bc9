package env_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

const workload = `
apiVersion: v1
kind: Namespace
metadata: {name: checkout}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: agent, namespace: checkout}
---
apiVersion: v1
kind: Pod
metadata: {name: agent-0, namespace: checkout}
spec:
  serviceAccountName: agent
  containers: [{name: agent, image: registry.example/agent}]
`

// identity is what the API server says about a caller.
type identity struct {
	Username string
	Extra    []string // keys
	Pod      []string
}

const (
	credentialID = "authentication.kubernetes.io/credential-id"
	podName      = "authentication.kubernetes.io/pod-name"
	podUID       = "authentication.kubernetes.io/pod-uid"
)

func whoAmI(t *testing.T, cfg *rest.Config) identity {
	t.Helper()
	review, err := kubernetes.NewForConfigOrDie(cfg).AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := identity{Username: review.Status.UserInfo.Username, Pod: review.Status.UserInfo.Extra[podName]}
	for key := range review.Status.UserInfo.Extra {
		got.Extra = append(got.Extra, key)
	}
	slices.Sort(got.Extra)
	return got
}

func TestTheControlPlaneIsReal(t *testing.T) {
	e, err := env.Start(t.Context(), env.Options{ControllerManager: true, Audit: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	objects, err := env.Decode([]byte(workload))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}

	t.Run("a token bound to a pod carries the pod and its own credential-id", func(t *testing.T) {
		token, err := e.ServiceAccountToken(t.Context(), "checkout", "agent", "agent-0")
		if err != nil {
			t.Fatal(err)
		}
		want := identity{
			Username: "system:serviceaccount:checkout:agent",
			Extra:    []string{credentialID, podName, podUID},
			Pod:      []string{"agent-0"},
		}
		if diff := cmp.Diff(want, whoAmI(t, e.Token(token))); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("a client certificate carries its own credential-id", func(t *testing.T) {
		user, err := e.User("carla@acme.example", "acme:sre")
		if err != nil {
			t.Fatal(err)
		}
		want := identity{Username: "carla@acme.example", Extra: []string{credentialID}}
		if diff := cmp.Diff(want, whoAmI(t, user)); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("an impersonated identity carries no credential-id", func(t *testing.T) {
		cfg := e.Admin()
		cfg.Impersonate.UserName = "carla@acme.example"
		want := identity{Username: "carla@acme.example"}
		if diff := cmp.Diff(want, whoAmI(t, cfg)); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("a second API server knows the same callers, and has an audit log and a life of its own", func(t *testing.T) {
		expectSecondAPIServer(t, e)
	})

	t.Run("etcd tells how much it holds", func(t *testing.T) {
		if keys, err := e.EtcdMetric(t.Context(), "etcd_debugging_mvcc_keys_total"); err != nil || keys < 1 {
			t.Errorf("%v keys, %v", keys, err)
		}
	})

	t.Run("a kubeconfig file works with the real kubectl", func(t *testing.T) {
		user, err := e.User("carla@acme.example")
		if err != nil {
			t.Fatal(err)
		}
		kubeconfig, err := e.Kubeconfig("carla", user, "checkout")
		if err != nil {
			t.Fatal(err)
		}
		kubectl, err := env.Asset("kubectl")
		if err != nil {
			t.Fatal(err)
		}
		got, err := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", kubeconfig, "get", "pods").CombinedOutput()
		want := `Error from server (Forbidden): pods is forbidden: User "carla@acme.example" cannot list resource "pods" in API group "" in the namespace "checkout"` + "\n"
		if diff := cmp.Diff(want, string(got)); diff != "" || err == nil {
			t.Errorf("error %v, output (-want +got):\n%s", err, diff)
		}
	})

	t.Run("its components end and come back with what they held", func(t *testing.T) { expectComponentsEndAndComeBack(t, e) })
}

// namespaceMaker creates a Namespace through one API server.
func namespaceMaker(t *testing.T, cfg *rest.Config) func(name string) {
	t.Helper()
	c := kubernetes.NewForConfigOrDie(cfg)
	return func(name string) {
		t.Helper()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func expectSecondAPIServer(t *testing.T, e *env.Env) {
	second, err := e.StartAPIServer(t.Context(), "second")
	if err != nil {
		t.Fatal(err)
	}
	token, err := e.ServiceAccountToken(t.Context(), "checkout", "agent", "agent-0")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whoAmI(t, e.Token(token)), whoAmI(t, second.At(e.Token(token)))); diff != "" {
		t.Errorf("the caller at the second (-first +second):\n%s", diff)
	}
	marks := [2]env.AuditMark{}
	if marks[0], err = e.AuditMark(); err != nil {
		t.Fatal(err)
	}
	if marks[1], err = second.AuditMark(); err != nil {
		t.Fatal(err)
	}
	namespaceMaker(t, second.At(e.Admin()))("by-second")
	if _, err := kubernetes.NewForConfigOrDie(e.Admin()).CoreV1().Namespaces().Get(t.Context(), "by-second", metav1.GetOptions{}); err != nil {
		t.Errorf("at the first: %v", err)
	}
	if err := second.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := kubernetes.NewForConfigOrDie(second.At(e.Admin())).Discovery().ServerVersion(); err == nil {
		t.Error("a killed API server answers")
	}
	if err := second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	namespaceMaker(t, second.At(e.Admin()))("by-second-again")
	admin := whoAmI(t, e.Admin()).Username
	for i, since := range []func(env.AuditMark, string) ([]auditv1.Event, error){e.AuditSince, second.AuditSince} {
		events, err := since(marks[i], admin)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, event := range events {
			if event.ObjectRef != nil && event.ObjectRef.Resource == "namespaces" {
				names = append(names, event.ObjectRef.Name)
			}
		}
		want := [][]string{nil, {"by-second", "by-second-again"}}[i]
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("audit log of API server %d (-want +got):\n%s", i+1, diff)
		}
	}
}

// deadOwner makes the test binary the owner of an environment that then dies without a word.
const deadOwner = "STEPBEYOND_TEST_DEAD_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(deadOwner) == "" {
		os.Exit(m.Run())
	}
	e, err := env.Start(context.Background(), env.Options{ControllerManager: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(e.Dir())
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func TestNothingSurvivesAnOwnerThatIsKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	owner := exec.CommandContext(t.Context(), self)
	owner.Env = append(os.Environ(), deadOwner+"=1")
	owner.Stderr = os.Stderr
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Wait() })
	var dir string
	if _, err := fmt.Fscan(out, &dir); err != nil {
		t.Fatal(err)
	}
	env.Await(t, func() error {
		if _, err := os.Stat(dir); err == nil {
			return fmt.Errorf("%s is still there", dir)
		}
		return nil
	})
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	if len(processes) == 0 {
		t.Skip("this system does not list processes under /proc")
	}
	for _, file := range processes {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), dir) {
			t.Errorf("still running: %s", strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
}
