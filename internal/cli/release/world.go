package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

// world is what decides whether a namespace is enforced.
type world struct {
	namespace *corev1.Namespace
	// policies sorted by name.
	policies []v1alpha1.ClusterAgentPolicy
	profiles []v1alpha1.AgentPolicy
	// enforced is true while webhook or floor covers the namespace.
	enforced bool
}

func look(ctx context.Context, c client.Reader, name string) (*world, error) {
	w := &world{namespace: &corev1.Namespace{}}
	err := c.Get(ctx, client.ObjectKey{Name: name}, w.namespace)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("namespace %s does not exist", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read namespace %s: %w", name, err)
	}
	var policies v1alpha1.ClusterAgentPolicyList
	if err := c.List(ctx, &policies); meta.IsNoMatchError(err) {
		return nil, errors.New("the kinds of Step Beyond are not installed, so no single namespace can be released; --cluster removes all enforcement")
	} else if err != nil {
		return nil, fmt.Errorf("list clusteragentpolicies: %w", err)
	}
	w.policies = policies.Items
	slices.SortFunc(w.policies, func(a, b v1alpha1.ClusterAgentPolicy) int { return strings.Compare(a.Name, b.Name) })
	var profiles v1alpha1.AgentPolicyList
	if err := c.List(ctx, &profiles, client.InNamespace(enforcement.SystemNamespace)); err != nil {
		return nil, fmt.Errorf("list agentpolicies of namespace %s: %w", enforcement.SystemNamespace, err)
	}
	w.profiles = profiles.Items
	w.enforced, err = enforced(ctx, c, name)
	return w, err
}

// snapshot is what the manager makes of the policies, with other labels on the namespace.
func (w *world) snapshot(labels map[string]string) (*policystore.Snapshot, error) {
	namespace := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace.Name, Labels: labels}}
	return policystore.Build(policystore.Input{
		Cluster: slices.Clone(w.policies), Policies: w.profiles, Namespaces: []corev1.Namespace{namespace}, Now: metav1.Now(),
	})
}

// enforced tells whether the scope of the enforcing webhook or of any policy of the floor holds the namespace. What cannot
// be read matters only while nothing else holds it.
func enforced(ctx context.Context, c client.Reader, namespace string) (bool, error) {
	holders, err := scopesInForce(ctx, c)
	if err != nil {
		return false, err
	}
	var failures []error
	for _, h := range holders {
		// Shards are one scope only together, and only those of the same object are.
		expressions := enforcement.GovernedExpressions(h.conditions)
		if len(expressions) == 0 {
			continue
		}
		scope, err := enforcement.ReadBack(expressions...)
		if err != nil {
			failures = append(failures, fmt.Errorf("read the scope in force of %s: %w; use the plugin of the manager's version", h.name, err))
			continue
		}
		if slices.Contains(scope.Namespaces, namespace) {
			return true, nil
		}
	}
	return false, errors.Join(failures...)
}

// holder is one webhook entry or policy of the floor, with the match conditions that may hold a scope.
type holder struct {
	name       string
	conditions []admissionregistrationv1.MatchCondition
}

func scopesInForce(ctx context.Context, c client.Reader) ([]holder, error) {
	var holders []holder
	var webhooks admissionregistrationv1.ValidatingWebhookConfiguration
	err := c.Get(ctx, client.ObjectKey{Name: enforcement.WebhookConfiguration}, &webhooks)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the webhook configuration: %w", err)
	}
	for i := range webhooks.Webhooks {
		if webhooks.Webhooks[i].Name == enforcement.EntryEnforce {
			holders = append(holders, holder{enforcement.EntryEnforce, webhooks.Webhooks[i].MatchConditions})
		}
	}
	var policies admissionregistrationv1.ValidatingAdmissionPolicyList
	if err := c.List(ctx, &policies); err != nil {
		return nil, fmt.Errorf("list the floor's policies: %w", err)
	}
	for i := range policies.Items {
		if ours(&policies.Items[i]) {
			holders = append(holders, holder{policies.Items[i].Name, policies.Items[i].Spec.MatchConditions})
		}
	}
	return holders, nil
}
