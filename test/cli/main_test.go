// Package cli_test runs kubectl stepbeyond as a user types it: testscript files, the real kubectl, a real control plane
// with kube-controller-manager, and the manager as a process that leads. CLI_DIR set to a folder keeps logs and certificates.
package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// waitAtMost bounds every wait for what the manager or the API server does by itself.
const waitAtMost = time.Minute

// world is the shared cluster, as TestMain made it.
var world *cluster.Cluster

func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){"kubectl-stepbeyond": plugin})
}

// plugin is what the real kubectl finds on the PATH.
func plugin() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := cli.Run(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(code)
}

type suite struct{ m *testing.M }

func (s suite) Run() int {
	flag.Parse()
	code, err := s.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/cli:", err)
		return 1
	}
	return code
}

func (s suite) run() (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log.SetLogger(logr.Discard())
	if world, err = cluster.Start(ctx, nil); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, world.Stop()) }()
	if err := bindProfiles(ctx); err != nil {
		return 0, err
	}
	if err := lead(ctx); err != nil {
		return 0, err
	}
	return s.m.Run(), nil
}

// lead replaces the cluster's manager by one that holds the leader's Lease.
func lead(ctx context.Context) error {
	if err := world.Manager.Stop(); err != nil {
		return err
	}
	leader, err := world.Env.NewManager(ctx, env.ManagerOptions{Name: "leader", Args: []string{"--leader-elect=true"}})
	if err != nil {
		return err
	}
	world.Manager = leader
	if err := leader.Start(); err != nil {
		return err
	}
	return leader.WaitReady(ctx, waitAtMost)
}

// Profiles beside the standard one: guarded wants more people, two for Secrets and an owner for ConfigMaps; under wide an
// approver may choose any width.
var profiles = map[string]*v1alpha1.Approvals{
	"guarded": {Requirements: []v1alpha1.ApprovalRequirement{
		{Name: "two-people", Required: 2, Match: &v1alpha1.RequirementMatch{Resources: []string{"secrets"}}},
		{Name: "owner", Required: 1, ApproverGroups: []string{"acme:owners"}, Match: &v1alpha1.RequirementMatch{Resources: []string{"configmaps"}}},
	}},
	"wide": {WidestScope: v1alpha1.ScopeTimeBoxed},
}

// bindProfiles is done before any script runs, because a change of the policies ends approvals.
func bindProfiles(ctx context.Context) error {
	var standard v1alpha1.AgentPolicy
	if err := world.Admin.Get(ctx, client.ObjectKey{Namespace: env.SystemNamespace, Name: cluster.Profile}, &standard); err != nil {
		return err
	}
	var bindings []v1alpha1.ProfileBinding
	for name, approvals := range profiles {
		profile := &v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: name}, Spec: *standard.Spec.DeepCopy()}
		profile.Spec.Approvals = approvals
		if err := world.Admin.Create(ctx, profile); err != nil {
			return err
		}
		bindings = append(bindings, v1alpha1.ProfileBinding{Name: name, AgentPolicyName: name, FloorEnforcement: v1alpha1.FloorEnforcementEnforce})
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var governance v1alpha1.ClusterAgentPolicy
		if err := world.Admin.Get(ctx, client.ObjectKey{Name: "default"}, &governance); err != nil {
			return err
		}
		governance.Spec.Profiles = append(governance.Spec.Profiles, bindings...)
		return world.Admin.Update(ctx, &governance)
	})
}
