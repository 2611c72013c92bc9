package origin

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// +kubebuilder:rbac:groups="",resources=services,verbs=list

// selected fills in what the labels and selectors of a request reach that the session did not make. What may not be
// listed is not looked at.
func (f *Finder) selected(ctx context.Context, req *kube.Request, session string, found *Found) error {
	selection := kube.SelectionOf(req)
	var err error
	if len(selection.Labels) > 0 {
		if found.Serves, err = f.serves(ctx, req.Namespace, selection.Labels, session); err != nil {
			return err
		}
	}
	if selection.Bare {
		if found.Adopted, err = f.adopted(ctx, req.Namespace, selection.Labels[0], session); err != nil {
			return err
		}
	}
	if selection.Orphans != "" {
		found.Adopts, err = f.adopts(ctx, req.Namespace, selection, session)
	}
	return err
}

// serves tells that a Service of somebody else selects one of the sets of labels.
func (f *Finder) serves(ctx context.Context, namespace string, sets []map[string]string, session string) (bool, error) {
	var services corev1.ServiceList
	if err := f.list(ctx, &services, namespace, labels.Everything()); err != nil {
		return false, err
	}
	return slices.ContainsFunc(services.Items, func(s corev1.Service) bool {
		selector := labels.SelectorFromSet(s.Spec.Selector)
		return len(s.Spec.Selector) > 0 && f.byStamp(&s, "", "services", session) != policy.OriginThisSession &&
			slices.ContainsFunc(sets, func(set map[string]string) bool { return selector.Matches(labels.Set(set)) })
	}), nil
}

// adopted tells that a ReplicaSet of somebody else would take a Pod with these labels.
func (f *Finder) adopted(ctx context.Context, namespace string, set map[string]string, session string) (bool, error) {
	var controllers appsv1.ReplicaSetList
	if err := f.list(ctx, &controllers, namespace, labels.Everything()); err != nil {
		return false, err
	}
	return slices.ContainsFunc(controllers.Items, func(c appsv1.ReplicaSet) bool {
		selector, err := metav1.LabelSelectorAsSelector(c.Spec.Selector)
		return err == nil && !selector.Empty() && selector.Matches(labels.Set(set)) &&
			f.byStamp(&c, "apps", "replicasets", session) != policy.OriginThisSession
	}), nil
}

// adopts tells that the workload of a selection would take what somebody else made.
func (f *Finder) adopts(ctx context.Context, namespace string, selection kube.Selection, session string) (bool, error) {
	var plain metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(selection.Selector, &plain); err != nil {
		return false, nil // the API server refuses it
	}
	selector, err := metav1.LabelSelectorAsSelector(&plain)
	if err != nil || selector.Empty() {
		return false, nil
	}
	foreign := func(object client.Object) bool {
		return metav1.GetControllerOf(object) == nil && f.byStamp(object, groupOf[selection.Orphans], selection.Orphans, session) != policy.OriginThisSession
	}
	if selection.Orphans == "replicasets" {
		var orphans appsv1.ReplicaSetList
		err := f.list(ctx, &orphans, namespace, selector)
		return slices.ContainsFunc(orphans.Items, func(o appsv1.ReplicaSet) bool { return foreign(&o) }), err
	}
	var orphans corev1.PodList
	err = f.list(ctx, &orphans, namespace, selector)
	return slices.ContainsFunc(orphans.Items, func(o corev1.Pod) bool { return foreign(&o) }), err
}

var groupOf = map[string]string{"pods": "", "replicasets": "apps"}

// list leaves the list empty where the manager may not list the kind.
func (f *Finder) list(ctx context.Context, into client.ObjectList, namespace string, selector labels.Selector) error {
	err := f.Live.List(ctx, into, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("list %T in %s: %w", into, namespace, err)
	}
	return nil
}
