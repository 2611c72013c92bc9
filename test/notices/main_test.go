// Package notices_test has people be told of questions: a real control plane, the manager as a process with the RBAC of
// config/, and endpoints that speak real TLS. NOTICES_DIR set to a folder keeps logs and certificates.
package notices_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// waitAtMost bounds every wait for what the manager does by itself.
const waitAtMost = time.Minute

// The shared cluster and the endpoints, as TestMain made them.
var (
	world *cluster.Cluster
	// bot takes signed CloudEvents and is told of everything, chat takes text and is told of questions. late begins to
	// listen when a test says so.
	bot, chat, late *receiver
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/notices:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log.SetLogger(logr.Discard())
	if world, err = cluster.Prepare(ctx, env.Options{ControllerManager: true, Dir: os.Getenv("NOTICES_DIR")}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, world.Stop()) }()
	if err := profiles(ctx); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "stepbeyond-notices-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	file, err := configure(dir)
	if err != nil {
		return 0, err
	}
	defer bot.close()
	defer chat.close()
	defer late.close()
	world.Manager, err = world.Env.NewManager(ctx, env.ManagerOptions{Args: []string{"--config=" + file, "--secrets-directory=" + dir}})
	if err != nil {
		return 0, err
	}
	if err := world.Manager.Start(); err != nil {
		return 0, err
	}
	if err := world.Manager.WaitReady(ctx, waitAtMost); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// profiles are standard with other times and caps.
func profiles(ctx context.Context) error {
	var standard v1alpha1.AgentPolicy
	if err := world.Admin.Get(ctx, key(env.SystemNamespace, cluster.Profile), &standard); err != nil {
		return err
	}
	var bindings []v1alpha1.ProfileBinding
	for name, change := range map[string]func(*v1alpha1.AgentPolicySpec){
		"hasty": func(s *v1alpha1.AgentPolicySpec) {
			s.Approvals = &v1alpha1.Approvals{DecideWithinSeconds: 24, UseWithinSeconds: 24, WarnBeforeExpirySeconds: 12}
		},
		"brief": func(s *v1alpha1.AgentPolicySpec) {
			s.Approvals = &v1alpha1.Approvals{AskAgainAfterSeconds: 80}
			s.Retention = &v1alpha1.Retention{FinishedGrantSeconds: 60}
		},
		"narrow": func(s *v1alpha1.AgentPolicySpec) {
			s.Caps = &v1alpha1.Caps{MaxPendingGrants: new(int32(3)), MaxPendingGrantsPerSession: new(int32(2))}
		},
	} {
		profile := &v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: name}, Spec: *standard.Spec.DeepCopy()}
		change(&profile.Spec)
		if err := world.Admin.Create(ctx, profile); err != nil {
			return err
		}
		bindings = append(bindings, v1alpha1.ProfileBinding{Name: name, AgentPolicyName: name, FloorEnforcement: v1alpha1.FloorEnforcementEnforce})
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var governing v1alpha1.ClusterAgentPolicy
		if err := world.Admin.Get(ctx, key("", "default"), &governing); err != nil {
			return err
		}
		governing.Spec.Profiles = append(governing.Spec.Profiles, bindings...)
		return world.Admin.Update(ctx, &governing)
	})
}

// configure starts the endpoints and writes what a deployment would mount. It returns the configuration file.
func configure(dir string) (string, error) {
	bot, chat, late = newReceiver(), newReceiver(), newReceiver()
	bot.listen()
	chat.listen()
	late.reserve()
	const text = `apiVersion: config.stepbeyond.dev/v1alpha1
kind: ManagerConfig
notifications:
- name: bot
  type: SignedHTTP
  urlSecretRef: {name: bot, key: url}
  signingSecretRef: {name: bot, key: signing-keys}
  authoritiesSecretRef: {name: bot, key: ca.crt}
  events: [GrantPending, GrantExpiring, EnforcementLost, NamespaceLeft]
  mergeWindowSeconds: 4
  allowedNetworks: [127.0.0.0/8]
- name: chat
  type: SlackIncomingWebhook
  urlSecretRef: {name: chat, key: url}
  authoritiesSecretRef: {name: chat, key: ca.crt}
  events: [GrantPending]
  mergeWindowSeconds: 4
  allowedNetworks: [127.0.0.0/8]
- name: late
  type: SignedHTTP
  urlSecretRef: {name: late, key: url}
  signingSecretRef: {name: late, key: signing-keys}
  authoritiesSecretRef: {name: late, key: ca.crt}
  events: [GrantPending]
  mergeWindowSeconds: 1
  allowedNetworks: [127.0.0.0/8]
- name: forbidden
  type: SignedHTTP
  urlSecretRef: {name: bot, key: url}
  signingSecretRef: {name: bot, key: signing-keys}
  authoritiesSecretRef: {name: bot, key: ca.crt}
  events: [GrantPending]
`
	for name, r := range map[string]*receiver{"bot": bot, "chat": chat, "late": late} {
		for file, text := range map[string]string{"url": r.url(), "signing-keys": signingKeys, "ca.crt": r.authority()} {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
				return "", err
			}
			if err := os.WriteFile(filepath.Join(dir, name, file), []byte(text+"\n"), 0o600); err != nil {
				return "", err
			}
		}
	}
	path := filepath.Join(dir, "config.yaml")
	return path, os.WriteFile(path, []byte(strings.TrimSpace(text)), 0o600)
}
