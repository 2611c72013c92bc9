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

// Finder finds origins. Its zero value with the three fields set is ready for use by many goroutines.
type Finder struct {
	// Live reads targets of subresources, owners and replicas of pods, claims and what autoscalers scale.
	Live    client.Reader
	Mapper  meta.RESTMapper
	Stamper stamp.Stamper

	leaving leaving
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
	// ScaleTarget and OwnClaims are those of kube.Known.
	ScaleTarget policy.Origin
	OwnClaims   []string
	// Serves, Adopted and Adopts are those of kube.Known.
	Serves, Adopted, Adopts bool
}

// Of looks at the target of a request of the session with that key. What cannot be read leaves the origin Unknown, which
// counts as foreign; an error means that the API server did not answer.
func (f *Finder) Of(ctx context.Context, req *kube.Request, session string) (Found, error) {
	object, err := f.target(ctx, req)
	if err != nil {
		return Found{Origin: policy.OriginUnknown}, err
	}
	found := Found{Origin: policy.OriginUnknown}
	if object != nil {
		if found, err = f.ofObject(ctx, req, object, session); err != nil {
			return found, err
		}
	}
	if target, ok := kube.ScaleTargetOf(req); ok {
		if found.ScaleTarget, err = f.ofScaleTarget(ctx, req.Namespace, target, session); err != nil {
			return found, err
		}
	}
	if found.OwnClaims, err = f.ownClaims(ctx, req, &found, session); err != nil {
		return found, err
	}
	return found, f.selected(ctx, req, session, &found)
}

func (f *Finder) ofObject(ctx context.Context, req *kube.Request, object *unstructured.Unstructured, session string) (Found, error) {
	found := Found{LastWriter: lastWriter(object), UID: string(object.GetUID())}
	if req.Subresource == "scale" {
		found.Parent = object.Object
	}
	owner := metav1.GetControllerOf(object)
	if owner == nil || req.Group != "" || req.Resource != "pods" {
		found.Origin = f.byStamp(object, req.Group, req.Resource, session)
		return found, nil
	}
	controller, err := f.ofPod(ctx, object, owner, session, &found)
	if err != nil || controller == nil || found.Origin == policy.OriginThisSession || !deletes(req) {
		return found, err
	}
	found.Recreated, err = f.replaced(ctx, controller, object, req.DryRun)
	return found, err
}

// deletes tells that the request ends a pod. An eviction is a deletion.
func deletes(req *kube.Request) bool {
	return req.Operation == "DELETE" && req.Subresource == "" || req.Operation == "CREATE" && req.Subresource == "eviction"
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
	object, _, err := f.get(ctx, kind, req.Namespace, req.Name)
	return object, err
}

// get reads one object. It is nil when it does not exist, and when nothing says whether it does: readable tells which.
func (f *Finder) get(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (object *unstructured.Unstructured, readable bool, err error) {
	object = &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err = f.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return nil, true, nil
	case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err), meta.IsNoMatchError(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("read %s %s/%s: %w", kind.Kind, namespace, name, err)
	}
	return object, true, nil
}

// byStamp is the origin of an object that is not a Pod of a controller. What has a controller was made by it, whatever
// stamp it carries: a stamp in a template is copied onto every object with a generated name that is made from it.
func (f *Finder) byStamp(object metav1.Object, group, resource, session string) policy.Origin {
	if metav1.GetControllerOf(object) != nil {
		return policy.OriginController
	}
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

// ofPod follows the controllers of a pod: it is ThisSession if the chain ends in an object that is and the pod was made
// from a template that this session wrote. A controller adopts pods that match its selector; those stay foreign. It
// returns the pod's own controller, nil when that cannot be read.
func (f *Finder) ofPod(
	ctx context.Context, pod *unstructured.Unstructured, owner *metav1.OwnerReference, session string, found *Found,
) (controller *unstructured.Unstructured, err error) {
	found.Origin = policy.OriginController
	for step := 0; owner != nil && step < maxOwners; step++ {
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		object, _, err := f.get(ctx, kind, pod.GetNamespace(), owner.Name)
		if err != nil || object == nil || object.GetUID() != owner.UID {
			return controller, err
		}
		if step == 0 {
			controller = object
		}
		if owner = metav1.GetControllerOf(object); owner != nil {
			continue
		}
		mapping, err := f.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return controller, ignoreNoMatch(err)
		}
		origin := f.byStamp(object, mapping.Resource.Group, mapping.Resource.Resource, session)
		adopted := pod.GetAnnotations()[v1alpha1.AnnotationTemplateWriter] != session
		if origin == policy.OriginOtherSession || origin == policy.OriginThisSession && !adopted {
			found.Origin = origin
		}
	}
	return controller, nil
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
