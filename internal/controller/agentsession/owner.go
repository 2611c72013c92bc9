package agentsession

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets;replicasets,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs;cronjobs,verbs=get

// owners are the kinds whose end can be seen. A session of any other owner lives until its deadline.
var owners = map[string]schema.GroupVersionKind{
	"Pod":         {Version: "v1", Kind: "Pod"},
	"Deployment":  {Group: "apps", Version: "v1", Kind: "Deployment"},
	"StatefulSet": {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	"DaemonSet":   {Group: "apps", Version: "v1", Kind: "DaemonSet"},
	"ReplicaSet":  {Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	"Job":         {Group: "batch", Version: "v1", Kind: "Job"},
	"CronJob":     {Group: "batch", Version: "v1", Kind: "CronJob"},
}

// ownerGone tells whether the one owner or Pod that the session follows no longer exists. Its UID never comes back, so
// such a session only takes a place under caps.maxSessions. It is asked only when no Pod of the session is left, and
// live, because it ends the session for good.
func (r *Status) ownerGone(ctx context.Context, session *v1alpha1.AgentSession) (bool, error) {
	id := &session.Spec.Identity
	kind, name, uid := "Pod", id.PodName, id.PodUID
	if id.RootOwner != nil {
		kind, name, uid = id.RootOwner.Kind, id.RootOwner.Name, id.RootOwner.UID
	}
	gvk, ok := owners[kind]
	if !ok || uid == "" {
		return false, nil
	}
	return r.gone(ctx, gvk, client.ObjectKey{Namespace: session.Namespace, Name: name}, uid)
}

func (r *Status) gone(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey, uid types.UID) (bool, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(gvk)
	err := r.Live.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s %s: %w", gvk.Kind, key, err)
	}
	return object.UID != uid, nil
}
