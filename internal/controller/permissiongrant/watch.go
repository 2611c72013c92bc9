package permissiongrant

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// ofSession finds the grants that a changed session could end.
func (r *Reconciler) ofSession(ctx context.Context, session client.Object) []reconcile.Request {
	var list v1alpha1.PermissionGrantList
	err := r.Client.List(ctx, &list, client.MatchingLabels{
		v1alpha1.LabelSession: session.GetName(), v1alpha1.LabelSessionNamespace: session.GetNamespace(),
	})
	if err != nil {
		return nil // a cache that cannot list has no grants to wake either
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if open(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
