package enforcement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=get,resourceNames=stepbeyond
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies,verbs=get,resourceNames=stepbeyond-floor-authority;stepbeyond-floor-forbidden
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=stepbeyond.dev,resources=clusteragentpolicies,verbs=get;list;watch

// wanted is the scope that should be in force: what the policies say, and what a scope in force does not let go.
func (r *Scope) wanted(ctx context.Context, snapshot *policystore.Snapshot, last admission.Scope) (admission.Scope, error) {
	complete, err := r.complete(ctx, snapshot)
	if err != nil {
		return admission.Scope{}, err
	}
	held := admission.Scope{}
	for _, namespace := range last.Namespaces {
		if _, named := slices.BinarySearch(snapshot.Scope.Namespaces, namespace); named || slices.Contains(snapshot.Released, namespace) {
			continue
		}
		exists, err := r.namespaceExists(ctx, namespace)
		if err != nil {
			return admission.Scope{}, err
		}
		if exists {
			held.Namespaces = append(held.Namespaces, namespace)
		}
	}
	if !complete {
		held.Users, held.Exempt = last.Users, last.Exempt
	}
	return join(snapshot.Scope, held), nil
}

// complete is false without a valid cluster policy, and while one has never been valid since the start: then nobody
// knows whom it governs, and users and exemptions of the last scope stay.
func (r *Scope) complete(ctx context.Context, snapshot *policystore.Snapshot) (bool, error) {
	var list v1alpha1.ClusterAgentPolicyList
	if err := r.Client.List(ctx, &list); err != nil {
		return false, fmt.Errorf("list cluster agent policies: %w", err)
	}
	for i := range list.Items {
		if inForce(snapshot, &list.Items[i]) == 0 {
			return false, nil
		}
	}
	return len(list.Items) > 0, nil
}

// inForce is the generation of a cluster policy that the engine decides with; 0 when none is.
func inForce(snapshot *policystore.Snapshot, object *v1alpha1.ClusterAgentPolicy) int64 {
	ids, _ := snapshot.Engine.Identity("", "") // the policies that count everywhere
	for _, id := range ids {
		if id.UID == string(object.UID) {
			return id.Generation
		}
	}
	return 0
}

// namespaceExists asks the API server itself when the cache has no such namespace: what is held must not be let go
// because a cache lags.
func (r *Scope) namespaceExists(ctx context.Context, name string) (bool, error) {
	for _, reader := range []client.Reader{r.Client, r.Live} {
		err := reader.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		if err == nil {
			return true, nil
		}
		if !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("read namespace %s: %w", name, err)
		}
	}
	return false, nil
}

// live reads the scope in force back from the API server: from the webhook configuration and from the floor, which hold
// the same one, so that a lost or edited one of them does not let a namespace go. Without both nothing was ever enforced.
func (r *Scope) live(ctx context.Context) (admission.Scope, error) {
	var scope admission.Scope
	var failures []error
	read := 0
	for _, source := range []func(context.Context) ([]string, error){r.webhookExpressions, r.floorExpressions} {
		expressions, err := source(ctx)
		if err != nil {
			return admission.Scope{}, err
		}
		if len(expressions) == 0 {
			continue
		}
		part, err := admission.ReadBack(expressions...)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		scope, read = join(scope, part), read+1
	}
	if read == 0 && len(failures) > 0 {
		return admission.Scope{}, fmt.Errorf("read the scope in force back: %w", errors.Join(failures...))
	}
	return scope, nil
}

func (r *Scope) webhookExpressions(ctx context.Context) ([]string, error) {
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	if found, err := r.read(ctx, admission.WebhookConfiguration, &configuration); !found {
		return nil, err
	}
	for i := range configuration.Webhooks {
		if configuration.Webhooks[i].Name == admission.EntryEnforce {
			return admission.GovernedExpressions(configuration.Webhooks[i].MatchConditions), nil
		}
	}
	return nil, nil
}

func (r *Scope) floorExpressions(ctx context.Context) ([]string, error) {
	var floor admissionregistrationv1.ValidatingAdmissionPolicy
	if found, err := r.read(ctx, admission.FloorAuthority, &floor); !found {
		return nil, err
	}
	return admission.GovernedExpressions(floor.Spec.MatchConditions), nil
}

func (r *Scope) read(ctx context.Context, name string, object client.Object) (bool, error) {
	err := r.Live.Get(ctx, client.ObjectKey{Name: name}, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %T %s: %w", object, name, err)
	}
	return true, nil
}

// join is the union of two scopes, sorted.
func join(a, b admission.Scope) admission.Scope {
	return admission.Scope{
		Namespaces: union(a.Namespaces, b.Namespaces, cmp.Compare), Users: union(a.Users, b.Users, cmp.Compare),
		Exempt: union(a.Exempt, b.Exempt, func(x, y admission.ServiceAccount) int {
			return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
		}),
	}
}

func union[E comparable](a, b []E, compare func(E, E) int) []E {
	all := slices.Concat(a, b)
	slices.SortFunc(all, compare)
	return slices.Compact(all)
}
