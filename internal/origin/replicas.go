package origin

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxReplicas bounds how many pods are read to find one that stands in; with none among them, none does.
const maxReplicas = 500

// recreates lists the controllers that make a pod anew and whose pods are each other's replicas. The pods of a DaemonSet
// run on other nodes and replace nothing here; the work of a Job's pod is lost.
var recreates = map[string]string{"ReplicaSet": "apps", "StatefulSet": "apps", "ReplicationController": ""}

// replaced tells that the pod's controller makes it anew and that another replica serves meanwhile. The pods are counted
// live, because the controller's own count lags, and without those whose deletion was asked about a moment ago. A dry run
// deletes nothing, so nothing is to be remembered of it.
func (f *Finder) replaced(ctx context.Context, controller, pod *unstructured.Unstructured, dryRun bool) (bool, error) {
	group, ok := recreates[controller.GetKind()]
	if !ok || controller.GroupVersionKind().Group != group || controller.GetDeletionTimestamp() != nil {
		return false, nil
	}
	selector, ok := selectorOf(controller)
	if !ok {
		return false, nil
	}
	var replicas corev1.PodList
	err := f.Live.List(ctx, &replicas, client.InNamespace(pod.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}, client.Limit(maxReplicas))
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("list pods of %s %s/%s: %w", controller.GetKind(), pod.GetNamespace(), controller.GetName(), err)
	}
	var others []types.UID
	for i := range replicas.Items {
		other := &replicas.Items[i]
		if other.UID != pod.GetUID() && metav1.IsControlledBy(other, controller) && other.DeletionTimestamp == nil && podReady(other) {
			others = append(others, other.UID)
		}
	}
	return f.leaving.stays(pod.GetUID(), others, dryRun, time.Now()), nil
}

// selectorOf the controller's pods. A ReplicationController has plain labels.
func selectorOf(controller *unstructured.Unstructured) (labels.Selector, bool) {
	fields, _, err := unstructured.NestedMap(controller.Object, "spec", "selector")
	if err != nil || len(fields) == 0 {
		return nil, false
	}
	if controller.GetKind() == "ReplicationController" {
		fields = map[string]any{"matchLabels": fields}
	}
	var plain metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &plain); err != nil {
		return nil, false
	}
	selector, err := metav1.LabelSelectorAsSelector(&plain)
	return selector, err == nil && !selector.Empty()
}

func podReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return pod.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

// leavingFor is the longest that the API server takes from admitting a request to writing it (34 s, fixed), rounded up.
const leavingFor = 35 * time.Second

// leaving remembers the pods whose deletion rested on a replica, until it shows in the API server. Several deletions at
// once would otherwise rest on each other. It is one replica's memory and only ever makes the answer stricter.
type leaving struct {
	mu   sync.Mutex
	pods map[types.UID]time.Time
}

// stays tells that one of the others is not leaving; if so, and this is no dry run, the pod itself is from now on.
func (l *leaving) stays(pod types.UID, others []types.UID, dryRun bool, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, until := range l.pods {
		if now.After(until) {
			delete(l.pods, uid)
		}
	}
	for _, other := range others {
		if _, going := l.pods[other]; going {
			continue
		}
		if l.pods == nil {
			l.pods = map[types.UID]time.Time{}
		}
		if !dryRun {
			l.pods[pod] = now.Add(leavingFor)
		}
		return true
	}
	return false
}
