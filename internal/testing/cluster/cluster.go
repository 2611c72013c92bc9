package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// Profile is the one that every home joins.
const Profile = "standard"

// user is the human behind every session.
const user = "dora@acme.example"

// waitAtMost bounds every wait for something that the manager or a controller does by itself.
const waitAtMost = time.Minute

// Cluster is a running control plane with the manager.
type Cluster struct {
	Env     *env.Env
	Manager *env.Manager
	// Admin is in group system:masters and not governed.
	Admin *Actor
	// Rules of the cluster policy that Reapply makes; omitted, none.
	Rules []v1alpha1.Rule

	scheme *runtime.Scheme
}

// Start brings up a cluster; progress is told each slow step, nil = nobody is. Stop ends it.
func Start(ctx context.Context, progress func(step string)) (*Cluster, error) {
	return StartWith(ctx, env.Options{ControllerManager: true, Progress: progress})
}

// StartWith is Start on a control plane of the caller's choice, with an audit log. Without ControllerManager no home has
// an agent.
func StartWith(ctx context.Context, options env.Options) (*Cluster, error) {
	options.Audit = true // actors read in it what was decided about them
	e, err := env.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	return Govern(ctx, e)
}

// Govern installs Step Beyond on a control plane that has kube-controller-manager and an audit log. Stop ends the control plane too; so
// does an error.
func Govern(ctx context.Context, e *env.Env) (_ *Cluster, err error) {
	c, err := install(ctx, e)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if c.Manager, err = c.Env.NewManager(ctx, env.ManagerOptions{}); err != nil {
		return nil, err
	}
	if err := c.Manager.Start(); err != nil {
		return nil, err
	}
	return c, c.Manager.WaitReady(ctx, waitAtMost)
}

// Prepare is StartWith without a manager; Manager stays nil. Stop ends it.
func Prepare(ctx context.Context, options env.Options) (*Cluster, error) {
	options.Audit = true
	e, err := env.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	return install(ctx, e)
}

func install(ctx context.Context, e *env.Env) (_ *Cluster, err error) {
	c := &Cluster{Env: e, scheme: runtime.NewScheme()}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(c.scheme); err != nil {
			return nil, fmt.Errorf("scheme: %w", err)
		}
	}
	if c.Admin, err = c.actor("admin", c.Env.Admin()); err != nil {
		return nil, err
	}
	if err := c.Env.ApplyKustomization(ctx, "config/default", "Deployment", "Service", "PodDisruptionBudget"); err != nil {
		return nil, err
	}
	for _, object := range governance() {
		if err := c.Admin.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	return c, nil
}

// Stop ends everything that Start has started.
func (c *Cluster) Stop() error {
	var errs []error
	if c.Manager != nil {
		errs = append(errs, c.Manager.Stop())
	}
	return errors.Join(append(errs, c.Env.Stop())...)
}

// governance is a cluster policy that governs by label, and the profile.
func governance() []client.Object {
	return []client.Object{
		&v1alpha1.AgentPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: Profile},
			Spec: v1alpha1.AgentPolicySpec{
				Caps: &v1alpha1.Caps{MaxPendingGrantsPerSession: new(int32(100))},
				SessionTemplates: []v1alpha1.SessionTemplate{{
					Name: account, ServiceAccountName: account, Lifetime: v1alpha1.SessionLifetimeWorkload,
					User: v1alpha1.TemplateUser{Source: v1alpha1.UserSourceFixed, Name: user},
					Authority: v1alpha1.Authority{
						Stages:       []v1alpha1.Stage{v1alpha1.StageUnderstand, v1alpha1.StagePropose, v1alpha1.StageExecute},
						Capabilities: []v1alpha1.Capability{v1alpha1.CapabilityReadContext, v1alpha1.CapabilityExecuteLocal},
					},
				}},
			},
		},
		&v1alpha1.ClusterAgentPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "default"},
			Spec: v1alpha1.ClusterAgentPolicySpec{
				BaselineVersion: "v1",
				Governed: v1alpha1.GovernedSubjects{NamespaceSelector: metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1alpha1.LabelProfile, Operator: metav1.LabelSelectorOpExists}},
				}},
				Profiles: []v1alpha1.ProfileBinding{{Name: Profile, AgentPolicyName: Profile, FloorEnforcement: v1alpha1.FloorEnforcementEnforce}},
			},
		},
	}
}

// eventually calls done until it answers nil.
func eventually(ctx context.Context, done func() error) error {
	ctx, cancel := context.WithTimeout(ctx, waitAtMost)
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
