package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

const (
	home = "payments" // governed
	free = "free"     // nobody governs it

	// Each worker sends once per period; several, because an answer can take as long as a webhook's deadline.
	agentWorkers = 8
	agentPeriod  = time.Second
	leasePeriod  = 50 * time.Millisecond
	writePeriod  = 100 * time.Millisecond
)

// callers send all the time, from before the fault until everything is over.
type callers struct {
	forbidden, ask, auto stream // of the agent
	leases, writes       stream // of bystanders
	reads                stream

	stop context.CancelFunc
	all  sync.WaitGroup
	made atomic.Int64
}

// start lets bystanders and the agent send; in a bare cluster it is a load like that of the others, which nobody refuses.
func (c *callers) start(ctx context.Context, s *scene) {
	ctx, c.stop = context.WithCancel(ctx)
	passed := func(a answer) bool { return a.passed() }
	c.leases.send(ctx, &c.all, 1, leasePeriod, renewals(s.scheduler), passed)
	c.writes.send(ctx, &c.all, 1, writePeriod, func(ctx context.Context, _ int) error {
		return s.bystander.Update(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: free, Name: "settings"}, Data: map[string]string{"n": fmt.Sprint(c.made.Add(1))},
		})
	}, passed)
	c.reads.send(ctx, &c.all, 1, writePeriod, func(ctx context.Context, _ int) error {
		return s.bystander.Get(ctx, client.ObjectKey{Namespace: free, Name: "settings"}, &corev1.ConfigMap{})
	}, passed)
	c.forbidden.send(ctx, &c.all, agentWorkers, agentPeriod, func(ctx context.Context, worker int) error {
		if worker%2 == 0 { // of the baseline
			return s.agent.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: c.name("role")}})
		}
		return s.agent.Create(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: c.name("quota")}})
	}, func(a answer) bool { return a.Code == 403 && a.Floor })
	asking := agentPeriod
	if s.row.exposed != "" {
		asking /= 10 // the time until the repair is what this row is about
	}
	c.ask.send(ctx, &c.all, agentWorkers, asking, s.askAbout, func(a answer) bool { return a.Class == "ASK" && a.Grant != "" })
	c.auto.send(ctx, &c.all, cmp.Or(s.row.writers, agentWorkers), agentPeriod, c.work(s), func(a answer) bool { return a.passed() && !a.Unstamped })
}

// forbidding is the cluster policy's own rule.
func forbidding() []v1alpha1.Rule {
	return []v1alpha1.Rule{{
		Name: "no-quotas", Class: v1alpha1.RuleClassForbidden,
		Match: v1alpha1.OperationMatch{Kubernetes: []v1alpha1.KubernetesMatch{{
			Groups: []string{""}, Resources: []string{"resourcequotas"}, Verbs: []v1alpha1.Verb{v1alpha1.VerbCreate},
		}}},
	}}
}

func (c *callers) end() {
	c.stop()
	c.all.Wait()
}

func (c *callers) name(kind string) string { return fmt.Sprintf("%s-%d", kind, c.made.Add(1)) }

var errUnstamped = errors.New("went past the manager")

// work is what the agent may do by itself. Written without the manager's stamp it is not what it was before.
func (c *callers) work(s *scene) func(context.Context, int) error {
	return func(ctx context.Context, _ int) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: c.name("note")}}
		if err := s.agent.Create(ctx, object); err != nil {
			return err
		}
		if object.Annotations[v1alpha1.AnnotationCreatedBy] == "" {
			return errUnstamped
		}
		return nil
	}
}

// askAbout has the agent change a Service of people, for which nobody gave a grant. What passes is undone, so that the
// next one is a change again.
func (s *scene) askAbout(ctx context.Context, worker int) error {
	name := fmt.Sprintf("asked-%d", worker)
	err := s.agent.Patch(ctx, service(name), selectorPatch("canary"))
	if err == nil {
		s.undo(name)
	}
	return err
}

// renewals renew a Lease as kube-scheduler does: read it after any failure, then update what was read.
func renewals(c client.Client) func(context.Context, int) error {
	var lease *coordinationv1.Lease
	return func(ctx context.Context, _ int) error {
		if lease == nil {
			fresh := &coordinationv1.Lease{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kube-scheduler"}, fresh); err != nil {
				return err
			}
			lease = fresh
		}
		now := metav1.NowMicro()
		lease.Spec.RenewTime = &now
		err := c.Update(ctx, lease)
		if err != nil {
			lease = nil
		}
		if apierrors.IsConflict(err) {
			return nil // an update whose answer was lost had come through
		}
		return err
	}
}

func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func selectorPatch(app string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(`{"spec":{"selector":{"app":"`+app+`"}}}`))
}

func newClient(cfg *rest.Config) (client.Client, error) {
	cfg.QPS, cfg.WarningHandlerWithContext = -1, rest.NoWarnings{}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return c, nil
}
