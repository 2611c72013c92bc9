// Package installed reads the policies of a cluster and compiles them as the manager does.
package installed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

// Policies are what a cluster decides by.
type Policies struct {
	// Cluster and Agent are the objects that were read, sorted by name.
	Cluster []v1alpha1.ClusterAgentPolicy
	Agent   []v1alpha1.AgentPolicy
	// Namespaces that were read, sorted.
	Namespaces []corev1.Namespace
	// Snapshot is what the objects as they are make. An object that is not valid is left out of it; a manager that knows
	// an earlier generation keeps deciding by that.
	Snapshot *policystore.Snapshot
}

// ErrNotInstalled tells that the cluster has no kinds of Step Beyond.
var ErrNotInstalled = errors.New("the kinds of Step Beyond are not installed in this cluster")

// Everywhere reads the policies of all namespaces. Needs the right to list clusteragentpolicies, agentpolicies and
// namespaces.
func Everywhere(ctx context.Context, c client.Reader) (*Policies, error) {
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	var agent v1alpha1.AgentPolicyList
	if err := c.List(ctx, &agent); err != nil {
		return nil, asked("agentpolicies", err)
	}
	return read(ctx, c, agent.Items, namespaces.Items)
}

// For reads the policies that count in one namespace. Needs the right to list clusteragentpolicies, to list agentpolicies
// there and in the system's namespace, and to get the namespace.
func For(ctx context.Context, c client.Reader, name string) (*Policies, error) {
	var namespace corev1.Namespace
	err := c.Get(ctx, client.ObjectKey{Name: name}, &namespace)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("namespace %s does not exist", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read namespace %s: %w", name, err)
	}
	var agent []v1alpha1.AgentPolicy
	for _, in := range slices.Compact([]string{enforcement.SystemNamespace, name}) {
		var list v1alpha1.AgentPolicyList
		if err := c.List(ctx, &list, client.InNamespace(in)); err != nil {
			return nil, asked("agentpolicies of namespace "+in, err)
		}
		agent = append(agent, list.Items...)
	}
	return read(ctx, c, agent, []corev1.Namespace{namespace})
}

func read(ctx context.Context, c client.Reader, agent []v1alpha1.AgentPolicy, namespaces []corev1.Namespace) (*Policies, error) {
	cluster, err := Cluster(ctx, c)
	if err != nil {
		return nil, err
	}
	return Compile(policystore.Input{Cluster: cluster, Policies: agent, Namespaces: namespaces, Now: metav1.Now()})
}

// Cluster lists the cluster's policies, sorted by name.
func Cluster(ctx context.Context, c client.Reader) ([]v1alpha1.ClusterAgentPolicy, error) {
	var list v1alpha1.ClusterAgentPolicyList
	if err := c.List(ctx, &list); err != nil {
		return nil, asked("clusteragentpolicies", err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.ClusterAgentPolicy) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

func asked(what string, err error) error {
	if meta.IsNoMatchError(err) {
		return ErrNotInstalled
	}
	return fmt.Errorf("list %s: %w", what, err)
}

// Compile makes policies of what was read.
func Compile(in policystore.Input) (*Policies, error) {
	slices.SortFunc(in.Policies, func(a, b v1alpha1.AgentPolicy) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	slices.SortFunc(in.Namespaces, func(a, b corev1.Namespace) int { return strings.Compare(a.Name, b.Name) })
	snapshot, err := policystore.Build(in)
	if err != nil {
		return nil, fmt.Errorf("compile the policies: %w", err)
	}
	return &Policies{Cluster: in.Cluster, Agent: in.Policies, Namespaces: in.Namespaces, Snapshot: snapshot}, nil
}

// Governed are the names of the namespaces that were read and are governed, sorted.
func (p *Policies) Governed() []string {
	var names []string
	for i := range p.Namespaces {
		if name := p.Namespaces[i].Name; p.Snapshot.Governs(name) {
			names = append(names, name)
		}
	}
	return names
}

// MustGovern errs when nothing governs the namespace.
func (p *Policies) MustGovern(namespace string) error {
	if p.Snapshot.Governs(namespace) {
		return nil
	}
	return fmt.Errorf("namespace %s is not governed: no ClusterAgentPolicy selects it", namespace)
}

// Own is the AgentPolicy of a namespace that is no profile; nil when it has none.
func (p *Policies) Own(namespace string) *v1alpha1.AgentPolicy {
	for i := range p.Agent {
		if a := &p.Agent[i]; a.Namespace == namespace && a.Name == policystore.NamespacePolicyName && namespace != enforcement.SystemNamespace {
			return a
		}
	}
	return nil
}
