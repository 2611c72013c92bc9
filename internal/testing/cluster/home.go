package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// account is the agent's ServiceAccount, Deployment and session template.
const account = "agent"

// Home is a governed namespace with the agent that works in it.
type Home struct {
	Namespace string
	Agent     *Actor
}

// Home makes a governed namespace whose agent is cluster-admin, and returns once the agent has a session and the API
// server enforces there.
func (c *Cluster) Home(ctx context.Context, namespace string) (*Home, error) {
	return c.HomeUnder(ctx, namespace, Profile)
}

// HomeUnder is Home for another profile, which must be bound.
func (c *Cluster) HomeUnder(ctx context.Context, namespace, profile string) (*Home, error) {
	labels := map[string]string{"app": account}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{v1alpha1.LabelProfile: profile}}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "everything-" + namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
		},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: account, Image: "registry.acme.example/agent:1"}}},
				},
			},
		},
	} {
		if err := c.Admin.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	pod := ""
	err := eventually(ctx, func() error {
		var sessions v1alpha1.AgentSessionList
		if err := c.Admin.List(ctx, &sessions, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list sessions of %s: %w", namespace, err)
		}
		if len(sessions.Items) != 1 || sessions.Items[0].Status.State != v1alpha1.SessionActive || len(sessions.Items[0].Status.LivePods) != 1 {
			return fmt.Errorf("%d sessions in %s, want one that is active with one pod", len(sessions.Items), namespace)
		}
		pod = sessions.Items[0].Status.LivePods[0].Name
		return nil
	})
	if err != nil {
		return nil, err
	}
	token, err := c.Env.ServiceAccountToken(ctx, namespace, account, pod)
	if err != nil {
		return nil, err
	}
	home := &Home{Namespace: namespace}
	if home.Agent, err = c.actor("system:serviceaccount:"+namespace+":"+account, c.Env.Token(token)); err != nil {
		return nil, err
	}
	return home, eventually(ctx, func() error { return home.enforced(ctx) })
}

// enforced tells whether the API server asks the manager about the agent's writes, and refuses what the floor forbids: what
// the agent creates is stamped, and was decided. Those are configurations of their own, and an API server can know one
// before the other.
func (h *Home) enforced(ctx context.Context) error {
	probe := applycorev1.ConfigMap("probe", h.Namespace)
	// An apply, because benchmarks make none and record nothing else.
	answer, err := h.Agent.Try(ctx, func(ctx context.Context, a *Actor) error {
		return a.Apply(ctx, probe, client.FieldOwner(account), client.DryRunAll)
	})
	if err = errors.Join(err, answer.Err); err != nil {
		return fmt.Errorf("probe of %s: %w", h.Namespace, err)
	}
	if answer.Class == "" && !answer.Counted {
		return fmt.Errorf("what the agent of %s makes is not decided about", h.Namespace)
	}
	if probe.Annotations[v1alpha1.AnnotationCreatedBy] == "" {
		return fmt.Errorf("what the agent of %s makes is not stamped", h.Namespace)
	}
	if answer.Counted {
		return nil // such a namespace has no floor
	}
	// Of the floor's policies the one about our own namespaces is written last.
	own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: "probe"}}
	if err := h.Agent.Create(ctx, own, client.DryRunAll); err == nil || !strings.Contains(err.Error(), floorSpoke) {
		return fmt.Errorf("what the floor forbids the agent of %s is not refused by it: %w", h.Namespace, err)
	}
	return nil
}
