// Package rotation_test shows on a real control plane, with two replicas of the manager behind one address, what happens to
// the writes of agents and of everybody else while the webhook's certificates are rotated, expire, or are asked for.
package rotation_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// timing makes rotations short. An API server acts on a new configuration within a second or two; on a busy machine later.
var timing = []string{
	"--authority-lifetime=24h", "--certificate-lifetime=1h", "--rotate-every=12h",
	"--rotation-settle=5s", "--rotation-overlap=5s", "--rotation-poll=500ms",
}

const (
	waitAtMost = 3 * time.Minute
	bystander  = "ben@acme.example"
)

// The shared cluster, as TestMain made it.
var (
	shared   *cluster.Cluster
	replicas [2]*env.Manager
	balancer *env.Balancer
	home     *cluster.Home
	ben      client.Client // not governed
	callers  *clientAuthority
)

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/rotation:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "stepbeyond-rotation-")
	if err != nil {
		return 0, fmt.Errorf("folder of the certificates: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if callers, err = newClientAuthority(dir); err != nil {
		return 0, err
	}
	if shared, err = cluster.Prepare(ctx, env.Options{
		ControllerManager: true, Dir: os.Getenv("ROTATION_DIR"), Progress: progress,
		APIServerArgs: []string{"--admission-control-config-file=" + filepath.Join(dir, admissionFile)},
	}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()
	if balancer, err = env.StartBalancer(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, balancer.Close()) }()
	if err := start(ctx); err != nil {
		return 0, err
	}
	if home, err = shared.Home(ctx, "payments"); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

func progress(step string) {
	if testing.Verbose() {
		fmt.Fprintln(os.Stderr, time.Now().Format(time.TimeOnly), step)
	}
}

func start(ctx context.Context) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bystander"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: bystander}},
	}
	if err := shared.Admin.Create(ctx, binding); err != nil {
		return err
	}
	cfg, err := shared.Env.User(bystander)
	if err != nil {
		return err
	}
	cfg.QPS = -1
	if ben, err = client.New(cfg, client.Options{}); err != nil {
		return err
	}
	for i := range replicas {
		if replicas[i], err = manager(ctx, fmt.Sprintf("manager-%d", i+1), "--webhook-url=https://"+balancer.Address(), "--leader-elect=true"); err != nil {
			return err
		}
		balancer.Add(replicas[i].WebhookAddress())
		if err := replicas[i].Start(); err != nil {
			return err
		}
	}
	for _, replica := range replicas {
		if err := replica.WaitReady(ctx, waitAtMost); err != nil {
			return err
		}
	}
	return nil
}

func manager(ctx context.Context, name string, args ...string) (*env.Manager, error) {
	return shared.Env.NewManager(ctx, env.ManagerOptions{Name: name, Args: append(timing[:len(timing):len(timing)], args...)})
}
