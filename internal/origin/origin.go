// Package origin finds out who made the target of an operation, from the API server's own data: the verified
// created-by stamp, the owner chain of a Pod, and the field managers. It decides friction: an agent may freely change
// what it made itself, and unknown counts as foreign.
package origin

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/stamp"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// Finder finds origins.
type Finder struct {
	// Live reads targets of subresources and owners of pods.
	Live    client.Reader
	Mapper  meta.RESTMapper
	Stamper stamp.Stamper
}

// Found is what is known about the target.
type Found struct {
	Origin     policy.Origin
	LastWriter string
	// UID of the target where the request itself does not show it.
	UID string
	// Parent is the object that a scale request changes; nil for anything else.
	Parent map[string]any
	// Recreated tells that the target is a Pod whose controller has another ready replica.
	Recreated bool
}

// Of looks at the target of a request of the session with that key. What cannot be read leaves the origin Unknown, which
// counts as foreign; an error means that the API server did not answer.
func (f *Finder) Of(ctx context.Context, req *kube.Request, session string) (Found, error) {
	object, err := f.target(ctx, req)
	if err != nil || object == nil {
		return Found{Origin: policy.OriginUnknown}, err
	}
	found := Found{LastWriter: lastWriter(object), UID: string(object.GetUID())}
	if req.Subresource == "scale" {
		found.Parent = object.Object
	}
	found.Origin = f.byStamp(object, req.Group, req.Resource, session)
	if found.Origin != policy.OriginUnknown {
		return found, nil
	}
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return found, nil
	}
	found.Origin = policy.OriginController
	if req.Group == "" && req.Resource == "pods" {
		return found, f.ofPod(ctx, object, owner, session, &found)
	}
	return found, nil
}

// target is the object itself: as the review shows it, or read live for a subresource.
func (f *Finder) target(ctx context.Context, req *kube.Request) (*unstructured.Unstructured, error) {
	if req.Subresource == "" {
		if req.OldObject == nil {
			return nil, nil // what is created has no origin yet
		}
		return &unstructured.Unstructured{Object: req.OldObject}, nil
	}
	if req.Name == "" {
		return nil, nil
	}
	kind, err := f.Mapper.KindFor(schema.GroupVersionResource{Group: req.Group, Version: req.Version, Resource: req.Resource})
	if err != nil {
		return nil, ignoreNoMatch(err)
	}
	return f.get(ctx, kind, req.Namespace, req.Name)
}

func (f *Finder) get(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err := f.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s/%s: %w", kind.Kind, namespace, name, err)
	}
	return object, nil
}

func (f *Finder) byStamp(object *unstructured.Unstructured, group, resource, session string) policy.Origin {
	creator, ok := f.Stamper.Verify(object.GetAnnotations()[v1alpha1.AnnotationCreatedBy], stamp.Subject{
		Group: group, Resource: resource, Namespace: object.GetNamespace(), Name: object.GetName(), GenerateName: object.GetGenerateName(),
	})
	switch {
	case !ok:
		return policy.OriginUnknown
	case creator == session && session != "":
		return policy.OriginThisSession
	default:
		return policy.OriginOtherSession
	}
}

// maxOwners bounds a pod's owner chain: ReplicaSet and Deployment, or Job and CronJob.
const maxOwners = 2

// ofPod follows the controllers of a pod: it is ThisSession if the chain ends in an object that is.
func (f *Finder) ofPod(ctx context.Context, pod *unstructured.Unstructured, owner *metav1.OwnerReference, session string, found *Found) error {
	for step := 0; owner != nil && step < maxOwners; step++ {
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		object, err := f.get(ctx, kind, pod.GetNamespace(), owner.Name)
		if err != nil {
			return err
		}
		if object == nil || object.GetUID() != owner.UID {
			return nil
		}
		if step == 0 {
			found.Recreated = hasAnotherReady(object, pod)
		}
		mapping, err := f.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return ignoreNoMatch(err)
		}
		if origin := f.byStamp(object, mapping.Resource.Group, mapping.Resource.Resource, session); origin != policy.OriginUnknown {
			found.Origin = origin
			return nil
		}
		owner = metav1.GetControllerOf(object)
	}
	return nil
}

// hasAnotherReady compares what the controller reports with whether the pod itself is among it.
func hasAnotherReady(controller, pod *unstructured.Unstructured) bool {
	if controller.GetKind() == "DaemonSet" {
		return false // the other pods of a DaemonSet run on other nodes and replace nothing here
	}
	ready, _, err := unstructured.NestedInt64(controller.Object, "status", "readyReplicas")
	if err != nil {
		return false
	}
	if podReady(pod) {
		ready--
	}
	return ready > 0
}

func podReady(pod *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == "Ready" {
			return c["status"] == "True"
		}
	}
	return false
}

// lastWriter is the field manager of the newest change of the object itself, not of its status.
func lastWriter(object *unstructured.Unstructured) string {
	var newest time.Time
	writer := ""
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource != "" || entry.Time == nil || entry.Time.Time.Before(newest) {
			continue
		}
		newest, writer = entry.Time.Time, entry.Manager
	}
	return writer
}

func ignoreNoMatch(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return fmt.Errorf("find kind of the target: %w", err)
}
