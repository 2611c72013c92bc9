// Package authorization_test proves what the optional files for the hosts of the control plane do, on a real API server
// that follows them: the authorization webhook, and the static admission policy.
package authorization_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
)

const (
	home        = "checkout"
	readyWithin = time.Minute
)

// The shared cluster, as TestMain made it. Agent and bystander have the same rights: all.
var (
	shared           *cluster.Cluster
	agent, bystander *rest.Config
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/authorization:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log.SetLogger(logr.Discard()) // what the clients of the tests would say is in the answers
	if shared, err = cluster.Start(ctx, nil); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()
	if agent, bystander, err = callers(ctx, shared); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// callers are a governed agent, and a ServiceAccount of a namespace that nobody governs.
func callers(ctx context.Context, c *cluster.Cluster) (governed, free *rest.Config, err error) {
	h, err := c.Home(ctx, home)
	if err != nil {
		return nil, nil, err
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "free"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "free", Name: "bystander"}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "everything-free"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "free", Name: "bystander"}},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "db"}, StringData: map[string]string{"password": "hunter2"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "settings"}},
	} {
		if err := c.Admin.Create(ctx, object); err != nil {
			return nil, nil, fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	token, err := c.Env.ServiceAccountToken(ctx, "free", "bystander", "")
	if err != nil {
		return nil, nil, err
	}
	return h.Agent.Config, c.Env.Token(token), nil
}

func clientOf(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	k8s, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return k8s
}

// eventually calls done until it answers nil.
func eventually(t *testing.T, done func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := done()
		if err == nil {
			return
		}
		if t.Context().Err() != nil || time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// awaitAuthorizer returns once the API server asks about the agent's reads of Secrets.
func awaitAuthorizer(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		if _, err := clientOf(t, agent).CoreV1().Secrets(home).Get(t.Context(), "db", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the agent reads a Secret: %w", err)
		}
		return nil
	})
}
