package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

const (
	replicas = 2
	readyFor = 2 * time.Minute
)

// scene is a control plane for one row. A bare one has nothing of Step Beyond, to see what the fault itself does.
type scene struct {
	row  *row
	bare bool

	env      *env.Env
	cluster  *cluster.Cluster // nil in a bare scene, like all that is below but the agent and the bystanders
	admin    client.Client
	balancer *env.Balancer
	managers []*env.Manager
	starts   []int64 // where in its log each replica's last start begins
	agent    client.Client
	grants   []*approval
	kubelet  kubelet
	faults   string // folder of the orders for the fault points of the grant protocol

	// A ServiceAccount and a component of the control plane, neither of them governed.
	bystander, scheduler client.Client
}

func newScene(ctx context.Context, r *row, bare bool) (_ *scene, err error) {
	s := &scene{row: r, bare: bare}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if s.faults, err = os.MkdirTemp("", "stepbeyond-faults-"); err != nil {
		return nil, fmt.Errorf("folder of the faults: %w", err)
	}
	options := env.Options{ControllerManager: true, Audit: true} // the bare one is compared with ours
	if bare {
		s.env, err = env.Start(ctx, options)
	} else if s.cluster, err = cluster.Prepare(ctx, options); err == nil {
		s.env = s.cluster.Env
	}
	if err != nil {
		return nil, err
	}
	if s.admin, err = newClient(s.env.Admin()); err != nil {
		return nil, err
	}
	if err := s.addBystanders(ctx); err != nil {
		return nil, err
	}
	if bare {
		err = s.addFreeAgent(ctx)
	} else {
		err = s.addManagers(ctx)
	}
	if err != nil {
		return nil, err
	}
	for worker := range agentWorkers {
		if err := s.admin.Create(ctx, service(fmt.Sprintf("asked-%d", worker))); err != nil {
			return nil, fmt.Errorf("service: %w", err)
		}
	}
	return s, nil
}

func (s *scene) stop() error {
	errs := []error{s.stopKubelet()}
	if s.balancer != nil {
		errs = append(errs, s.balancer.Close())
	}
	switch {
	case s.cluster != nil:
		errs = append(errs, s.cluster.Stop())
	case s.env != nil:
		errs = append(errs, s.env.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(s.faults))...)
}

func (s *scene) addBystanders(ctx context.Context) error {
	account := metav1.ObjectMeta{Namespace: free, Name: "worker"}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: free}},
		&corev1.ServiceAccount{ObjectMeta: account},
		&rbacv1.RoleBinding{
			ObjectMeta: account, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: free, Name: account.Name}},
		},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: free, Name: "settings"}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-scheduler"}},
	} {
		if err := s.admin.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	token, err := s.env.ServiceAccountToken(ctx, free, account.Name, "")
	if err != nil {
		return err
	}
	if s.bystander, err = newClient(s.env.Token(token)); err != nil {
		return err
	}
	scheduler, err := s.env.User("system:kube-scheduler")
	if err != nil {
		return err
	}
	s.scheduler, err = newClient(scheduler)
	return err
}

// addFreeAgent brings an agent with the rights of the governed one.
func (s *scene) addFreeAgent(ctx context.Context) error {
	account := metav1.ObjectMeta{Namespace: home, Name: "agent"}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}},
		&corev1.ServiceAccount{ObjectMeta: account},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "agent"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: account.Name}},
		},
	} {
		if err := s.admin.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	token, err := s.env.ServiceAccountToken(ctx, home, account.Name, "")
	if err != nil {
		return err
	}
	s.agent, err = newClient(s.env.Token(token))
	return err
}

// addManagers starts the replicas, and brings the agent.
func (s *scene) addManagers(ctx context.Context) (err error) {
	if err := s.addRule(ctx); err != nil {
		return err
	}
	if s.balancer, err = env.StartBalancer(); err != nil {
		return err
	}
	s.starts = make([]int64, replicas)
	if err := s.newManagers(ctx); err != nil {
		return err
	}
	if err := s.startManagers(ctx); err != nil {
		return err
	}
	s.startKubelet(ctx)
	h, err := s.cluster.Home(ctx, home)
	if err != nil {
		return err
	}
	s.agent = h.Agent
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "probe"}}
	if err := eventually(ctx, func() error {
		if got := understand(s.agent.Create(ctx, quota.DeepCopy(), client.DryRunAll)); !got.Floor {
			return fmt.Errorf("the floor does not hold the rule of the cluster policy yet: %d %s", got.Code, got.Message)
		}
		return nil
	}); err != nil {
		return err
	}
	return s.addGrants(ctx)
}

// addRule gives the cluster policy its rule, before there is anybody who validates it.
func (s *scene) addRule(ctx context.Context) error {
	s.cluster.Rules = forbidding()
	policy := &v1alpha1.ClusterAgentPolicy{}
	if err := s.cluster.Admin.Get(ctx, client.ObjectKey{Name: "default"}, policy); err != nil {
		return fmt.Errorf("cluster policy: %w", err)
	}
	policy.Spec.Rules = s.cluster.Rules
	if err := s.cluster.Admin.Update(ctx, policy); err != nil {
		return fmt.Errorf("cluster policy: %w", err)
	}
	return nil
}

// newManagers makes replicas with tokens of their own, instead of those from before, which have been taken down. They do
// not run yet.
func (s *scene) newManagers(ctx context.Context) error {
	s.managers = nil
	generation := time.Now().UnixNano()
	for i := range replicas {
		m, err := s.env.NewManager(ctx, env.ManagerOptions{
			Name: fmt.Sprintf("manager-%d-%d", i+1, generation), Build: s.row.build, AnyServer: s.row.build.Clock,
			Args: append([]string{"--webhook-url=https://" + s.balancer.Address(), "--leader-elect=true"}, s.row.args...),
			Env:  append([]string{"FAULTS_DIR=" + s.faults}, s.row.variables...),
		})
		if err != nil {
			return err
		}
		s.balancer.Add(m.WebhookAddress())
		s.managers = append(s.managers, m)
	}
	return nil
}

// eachManager does something with every replica.
func (s *scene) eachManager(do func(*env.Manager) error) error {
	var errs []error
	for _, m := range s.managers {
		errs = append(errs, do(m))
	}
	return errors.Join(errs...)
}

// leader is the replica that runs the controllers.
func (s *scene) leader(ctx context.Context) (leader *env.Manager, err error) {
	err = eventually(ctx, func() error {
		for i, m := range s.managers {
			text, err := os.ReadFile(m.Logs())
			if err != nil {
				return fmt.Errorf("log of the manager: %w", err)
			}
			if bytes.Contains(text[min(s.starts[i], int64(len(text))):], []byte("uccessfully acquired lease")) {
				leader = m
				return nil
			}
		}
		return errors.New("no replica leads")
	})
	return leader, err
}

// kubectl runs the real one as the administrator.
func (s *scene) kubectl(ctx context.Context, args ...string) error {
	return run(ctx, s.env, args...)
}

// install applies config/default and what GitOps holds, and gives the replicas tokens of the new ServiceAccount.
func (s *scene) install(ctx context.Context) error {
	if err := eventually(ctx, func() error {
		return s.env.ApplyKustomization(ctx, "config/default", "Deployment", "Service", "PodDisruptionBudget")
	}); err != nil {
		return err
	}
	if err := s.newManagers(ctx); err != nil {
		return err
	}
	if err := s.raise(); err != nil {
		return err
	}
	return s.cluster.Reapply(ctx)
}

func repository(elem ...string) (string, error) {
	root, err := env.RepositoryRoot()
	return filepath.Join(append([]string{root}, elem...)...), err
}

// eventually calls done until it answers nil, for at most two minutes.
func eventually(ctx context.Context, done func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := done()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
