package permissiongrant

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/grant"
)

// covering names the grant of the session whose wider approval answers an open question; empty when none does. An end is
// for good, so what the cache finds is looked at live.
func (r *Reconciler) covering(ctx context.Context, g *v1alpha1.PermissionGrant) (string, error) {
	snapshot := r.Store.Current()
	if g.Status.State != v1alpha1.GrantPending || snapshot == nil {
		return "", nil
	}
	request := &g.Spec.Request
	_, identity := snapshot.Engine.Identity(request.Session.Namespace, request.Operation.Target.Namespace)
	list, err := r.ofSameSession(ctx, g, client.HasLabels{v1alpha1.LabelScope})
	if err != nil {
		return "", err
	}
	for i := range list.Items {
		wide := &list.Items[i]
		if wide.UID == g.UID || !grant.CoveredBy(wide, g, identity, r.Now()) {
			continue
		}
		live := &v1alpha1.PermissionGrant{}
		if err := r.Protocol.Live.Get(ctx, client.ObjectKeyFromObject(wide), live); err != nil {
			return "", fmt.Errorf("read permissiongrant %s/%s: %w", wide.Namespace, wide.Name, err)
		}
		if grant.CoveredBy(live, g, identity, r.Now()) {
			return live.Name, nil
		}
	}
	return "", nil
}

// twins finds the open questions that a wider approval could answer.
func (r *Reconciler) twins(ctx context.Context, object client.Object) []reconcile.Request {
	g, ok := object.(*v1alpha1.PermissionGrant)
	if !ok || g.Labels[v1alpha1.LabelScope] == "" {
		return nil
	}
	list, err := r.ofSameSession(ctx, g)
	if err != nil {
		return nil // a cache that cannot list has no grants to wake either
	}
	var requests []reconcile.Request
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID != g.UID && other.Status.State == v1alpha1.GrantPending {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
		}
	}
	return requests
}

// ofSameSession lists the grants in the namespace of a grant that its session asked for.
func (r *Reconciler) ofSameSession(ctx context.Context, g *v1alpha1.PermissionGrant, options ...client.ListOption) (*v1alpha1.PermissionGrantList, error) {
	session := &g.Spec.Request.Session
	list := &v1alpha1.PermissionGrantList{}
	options = append(options, client.InNamespace(g.Namespace), client.MatchingLabels{
		v1alpha1.LabelSession: session.Name, v1alpha1.LabelSessionNamespace: session.Namespace,
	})
	if err := r.Client.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list grants of session %s/%s: %w", session.Namespace, session.Name, err)
	}
	return list, nil
}
