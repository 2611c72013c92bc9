package grant

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/policy/kube"
)

// The kinds that the catalogue names, without Secrets: a grant on a kind that is not here is bound to the reviewed UID and
// has one attempt. A platform adds its own kinds with a ClusterRole labelled
// stepbeyond.dev/aggregate-to-manager: "true".
//
// +kubebuilder:rbac:groups="",resources=configmaps;endpoints;limitranges;namespaces;persistentvolumeclaims;pods;podtemplates;replicationcontrollers;resourcequotas;serviceaccounts;services,verbs=get;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions;daemonsets;deployments;replicasets;statefulsets,verbs=get;watch
// +kubebuilder:rbac:groups=batch,resources=cronjobs;jobs,verbs=get;watch
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;networkpolicies,verbs=get;watch

// target is the object that an operation acts on, as it is stored now.
type target struct {
	// readable is false for a kind that the manager may not read, or that the server does not serve.
	readable bool
	// object is nil when it does not exist.
	object *unstructured.Unstructured
	// kind of the resource; empty for one that the server does not serve.
	kind schema.GroupVersionKind
}

// lookAt reads the object of a request live. A subresource acts on its main object.
func (p *Protocol) lookAt(ctx context.Context, req *kube.Request) (target, error) {
	if req.Name == "" {
		return target{readable: true}, nil
	}
	return p.read(ctx, schema.GroupVersionResource{Group: req.Group, Version: req.Version, Resource: req.Resource}, req.Namespace, req.Name)
}

func (p *Protocol) read(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (target, error) {
	kind, err := p.Mapper.KindFor(resource)
	if meta.IsNoMatchError(err) {
		return target{}, nil
	}
	if err != nil {
		return target{}, fmt.Errorf("find kind of %s: %w", resource, err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if resource.Group == "" && resource.Resource == "namespaces" {
		namespace = "" // admission names the Namespace itself there
	}
	err = p.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	switch {
	case apierrors.IsForbidden(err):
		return target{kind: kind}, nil
	case apierrors.IsNotFound(err):
		return target{readable: true, kind: kind}, nil
	case err != nil:
		return target{}, fmt.Errorf("read %s %s/%s: %w", resource.Resource, namespace, name, err)
	}
	return target{readable: true, object: object, kind: kind}, nil
}

// stale tells that a review does not speak of the object that is stored: it was forged, or overtaken. A kind that cannot
// be read is never stale; its grant is bound to the reviewed UID and has one attempt.
func (t *target) stale(req *kube.Request) bool {
	if !t.readable || req.Name == "" {
		return false
	}
	switch req.Operation {
	case "UPDATE", "DELETE":
		if t.object == nil {
			return true
		}
		metadata, _ := req.OldObject["metadata"].(map[string]any)
		version, _ := metadata["resourceVersion"].(string)
		uid, _ := metadata["uid"].(string)
		return version != t.object.GetResourceVersion() || uid != string(t.object.GetUID())
	case "CREATE":
		// A subresource is created on an object that is there; an object where there is none.
		return (t.object == nil) == (req.Subresource != "")
	default:
		return t.object == nil
	}
}
