package verbs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// subject is the object of a kind in the hands of ben.
type subject struct {
	kind *kind
	base *unstructured.Unstructured // as ben writes it
	// readable by the manager.
	readable bool
	// redone counts verbs that got another object.
	redone int
}

func (s *subject) client() dynamic.ResourceInterface {
	all := ben.Resource(s.kind.resource.GroupVersionResource)
	if s.kind.resource.Namespaced {
		return all.Namespace(s.base.GetNamespace())
	}
	return all
}

// get returns nil for an object that is not there.
func (s *subject) get(ctx context.Context) (*unstructured.Unstructured, error) {
	live, err := s.client().Get(ctx, s.base.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// remove deletes the object and waits until it is gone.
func (s *subject) remove(ctx context.Context) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), PropagationPolicy: new(metav1.DeletePropagationBackground)}
	if err := s.client().Delete(ctx, s.base.GetName(), now); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return eventually(ctx, func() error {
		live, err := s.get(ctx)
		if err == nil && live != nil {
			err = fmt.Errorf("%s is still there", s.kind.target(s.base.GetName()))
			s.hurry(ctx, live)
		}
		return err
	})
}

// hurry takes the finalizers of controllers that take their time; if it fails, the controllers do it.
func (s *subject) hurry(ctx context.Context, live *unstructured.Unstructured) {
	live = live.DeepCopy()
	switch live.GetKind() {
	case "Namespace": // it is empty
		unstructured.RemoveNestedField(live.Object, "spec", "finalizers")
		_, _ = s.client().Update(ctx, live, metav1.UpdateOptions{}, "finalize")
	case "ServiceCIDR":
		live.SetFinalizers(nil)
		_, _ = s.client().Update(ctx, live, metav1.UpdateOptions{})
	}
}

// make creates the object and returns it once its controller has seen it.
func (s *subject) make(ctx context.Context) (*unstructured.Unstructured, error) {
	if _, err := s.client().Create(ctx, s.base.DeepCopy(), metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return s.settled(ctx)
}

// observed kinds say in status.observedGeneration which spec their controller has worked on.
var observed = []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "PodDisruptionBudget"}

// settled waits until the controller has worked on the object, so that it makes no version between two requests.
func (s *subject) settled(ctx context.Context) (live *unstructured.Unstructured, err error) {
	return live, eventually(ctx, func() error {
		if live, err = s.get(ctx); err != nil {
			return err
		}
		if live == nil {
			return fmt.Errorf("%s is not there", s.kind.target(s.base.GetName()))
		}
		if live.GetKind() == "ServiceCIDR" && len(live.GetFinalizers()) == 0 {
			return errors.New("the ServiceCIDR has no finalizer yet")
		}
		if !slices.Contains(observed, live.GetKind()) {
			return nil
		}
		generation, _, err := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
		if err == nil && generation != live.GetGeneration() {
			err = fmt.Errorf("%s is observed at generation %d of %d", s.kind.target(live.GetName()), generation, live.GetGeneration())
		}
		return err
	})
}

// restore brings the object back to how it was, under the same uid; one that is gone is made anew, as it was at first.
func (s *subject) restore(ctx context.Context, was *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	err := eventually(ctx, func() error {
		live, err := s.get(ctx)
		switch {
		case err != nil:
			return err
		case live == nil || live.GetUID() != was.GetUID() || live.GetDeletionTimestamp() != nil:
			if err := s.remove(ctx); err != nil {
				return err
			}
			_, err = s.client().Create(ctx, s.base.DeepCopy(), metav1.CreateOptions{})
			return err
		case same(live, was):
			return nil
		}
		again := bare(was)
		again.SetResourceVersion(live.GetResourceVersion())
		_, err = s.client().Update(ctx, again, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.settled(ctx)
}

// bare is what a person sends of an object that they have read.
func bare(live *unstructured.Unstructured) *unstructured.Unstructured {
	object := live.DeepCopy()
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	unstructured.RemoveNestedField(object.Object, "status")
	return object
}

func same(a, b *unstructured.Unstructured) bool {
	a, b = bare(a), bare(b)
	for _, o := range []*unstructured.Unstructured{a, b} {
		o.SetGeneration(0)
		annotations := o.GetAnnotations()
		delete(annotations, "deployment.kubernetes.io/revision") // the controller counts on
		o.SetAnnotations(annotations)
	}
	return reflect.DeepEqual(a.Object, b.Object)
}

// changed is an object with a merge patch applied.
func changed(object *unstructured.Unstructured, patch map[string]any) (*unstructured.Unstructured, error) {
	was, err := json.Marshal(object.Object)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	if was, err = jsonpatch.MergePatch(was, text); err != nil {
		return nil, err
	}
	result := &unstructured.Unstructured{}
	return result, result.UnmarshalJSON(was)
}

// anything stands for any value in what is wanted.
const anything = "ANY"

// contains tells whether an object holds everything that a merge patch would put into it. Items of lists are compared
// in their order and with what the patch says about them.
func contains(live, want any) bool {
	switch w := want.(type) {
	case nil:
		return live == nil
	case map[string]any:
		fields, ok := live.(map[string]any)
		if !ok && len(w) > 0 {
			return false
		}
		for key, value := range w {
			if !contains(fields[key], value) {
				return false
			}
		}
		return true
	case []any:
		items, ok := live.([]any)
		if !ok || len(items) != len(w) {
			return false
		}
		for i := range w {
			if !contains(items[i], w[i]) {
				return false
			}
		}
		return true
	default:
		return w == anything && live != nil || fmt.Sprint(live) == fmt.Sprint(w)
	}
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// operations are the JSON patch that does to an object what a merge patch does.
func operations(live, patch map[string]any, path string) []operation {
	var result []operation
	for key, value := range patch {
		at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		was, isObject := live[key].(map[string]any)
		if below, ok := value.(map[string]any); ok && isObject {
			result = append(result, operations(was, below, at)...)
			continue
		}
		result = append(result, operation{"add", at, value})
	}
	return result
}

// editorVariable makes the test binary the editor of kubectl edit: its value is the merge patch that is edited in.
const editorVariable = "VERBS_EDIT"

func edit(path, change string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("file to edit: %w", err)
	}
	objects, err := env.Decode(text)
	if err != nil || len(objects) != 1 {
		return fmt.Errorf("file to edit: %d objects, want one: %w", len(objects), err)
	}
	patch := map[string]any{}
	if err := json.Unmarshal([]byte(change), &patch); err != nil {
		return fmt.Errorf("edit: %w", err)
	}
	edited, err := changed(objects[0], patch)
	if err != nil {
		return fmt.Errorf("edit: %w", err)
	}
	if text, err = yaml.Marshal(edited.Object); err != nil {
		return fmt.Errorf("edit: %w", err)
	}
	return os.WriteFile(path, text, 0o600)
}

// readable tells whether the manager may read objects of the kind.
func (k *kind) readable(ctx context.Context) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + env.SystemNamespace + ":" + env.ManagerServiceAccount,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + env.SystemNamespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "get", Group: k.resource.Group, Version: k.resource.Version, Resource: k.resource.Resource, Namespace: homeOf(0), Name: "subject",
		},
	}}
	if !k.resource.Namespaced {
		review.Spec.ResourceAttributes.Namespace = ""
	}
	err := admin.Create(ctx, review)
	return review.Status.Allowed, err
}

// prepare is what a person changes before a command.
func (s *subject) prepare(ctx context.Context, patch map[string]any) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	if _, err := s.client().Patch(ctx, s.base.GetName(), types.MergePatchType, text, metav1.PatchOptions{}); err != nil {
		return nil, err
	}
	return s.settled(ctx)
}
