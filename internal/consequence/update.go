package consequence

import (
	"context"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"stepbeyond.dev/stepbeyond/policy/kube"
)

// update tells what follows from a change. How to undo it stands in the change itself: the old values.
func (l *look) update(ctx context.Context) {
	switch {
	case l.req.Subresource == "scale":
		l.scaled(l.storedFields())
	case l.kind() == pods && l.req.Subresource == "ephemeralcontainers":
		l.effect("the container runs beside the others of the Pod, with its ServiceAccount and network")
		l.undone("none while the Pod lives: such a container cannot be taken out; delete the Pod")
		return
	case l.req.Subresource != "":
	default:
		l.changed(ctx)
	}
	if kube.EmptiesFinalizers(l.change) && deleting(l.req.OldObject) {
		l.effect("the object is being deleted, and is gone when its last finalizer goes")
		l.undone("none once it is gone")
		return
	}
	l.putBack()
}

func (l *look) changed(ctx context.Context) {
	switch l.kind() {
	case deployments, statefulSets, daemonSets, replicaSets, controllers:
		l.scaled(l.req.OldObject)
		l.replaced()
	case services:
		if old, now, ok := before[corev1.Service](l); ok {
			l.rerouted(ctx, old, now)
			l.exposes(old, now)
		}
	case ingresses:
		if !reflect.DeepEqual(l.req.OldObject["spec"], l.req.Object["spec"]) {
			l.routes(l.req.OldObject, "reached until now")
			l.routes(l.req.Object, "will reach")
		}
	case networkPolicies:
		l.selects(ctx, l.req.OldObject, "applied until now to")
		l.selects(ctx, l.req.Object, "will apply to")
	case secrets:
		l.usedBy(ctx, usesSecret(l.req.Name))
	case configMaps:
		l.usedBy(ctx, usesConfigMap(l.req.Name))
	}
}

// putBack says how to undo a change. Lines with short digests do not hold the old values.
func (l *look) putBack() {
	hidden := slices.ContainsFunc(l.change, func(line string) bool { return strings.Contains(line, ": "+digestMark) })
	switch {
	case l.kind() == secrets:
		l.undone("put back the old values; they are not kept here and have to come from where they were made")
	case hidden:
		l.undone("put back the old values; those that change shows as %s are not kept here: take them from Git or a backup", digestMark)
	default:
		l.undone("put back the old values that stand under change")
	}
}

// digestMark begins what stands for a value that is not shown.
const digestMark = "v1:"

func deleting(object map[string]any) bool {
	_, deleting, _ := unstructured.NestedString(object, "metadata", "deletionTimestamp")
	return deleting
}

// scaled tells of another number of replicas. workload is the object as it is, with its status; a scale has replicas where
// the workload has them.
func (l *look) scaled(workload map[string]any) {
	was, hadReplicas, _ := unstructured.NestedInt64(l.req.OldObject, "spec", "replicas")
	now, hasReplicas, _ := unstructured.NestedInt64(l.req.Object, "spec", "replicas")
	if !hadReplicas && l.req.Subresource != "scale" || !hasReplicas && l.req.Subresource != "scale" || was == now {
		return
	}
	switch {
	case now == 0:
		l.effect("all its Pods (%d ready) are stopped: nothing of it is left to serve", ready(workload))
	case now < was:
		l.effect("%d of %d Pods are stopped (%d ready now)", was-now, was, ready(workload))
	default:
		l.effect("%d more Pods are started, with what they use", now-was)
	}
	if kept, _, _ := unstructured.NestedString(workload, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled"); now < was && kept == "Delete" {
		l.effect("the claims of the Pods that go are deleted too, and their data as their volumes' reclaimPolicy says")
		l.undone("none for data on volumes with reclaimPolicy Delete")
	}
}

// replaced tells that another template makes a controller start its Pods anew.
func (l *look) replaced() {
	path := []string{"spec", "template"}
	was, _, _ := unstructured.NestedFieldNoCopy(l.req.OldObject, path...)
	now, _, _ := unstructured.NestedFieldNoCopy(l.req.Object, path...)
	if reflect.DeepEqual(was, now) {
		return
	}
	count := ready(l.req.OldObject)
	if l.kind() == replicaSets || l.kind() == controllers {
		l.effect("Pods that it makes from now on follow the new template; those that run (%d ready) stay", count)
		return
	}
	field := "updateStrategy"
	if l.kind() == deployments {
		field = "strategy"
	}
	strategy, _, _ := unstructured.NestedString(l.req.Object, "spec", field, "type")
	switch strategy {
	case "Recreate":
		l.effect("all its Pods (%d ready) stop before new ones start", count)
	case "OnDelete":
		l.effect("its Pods (%d ready) follow the new template when they are deleted", count)
	default:
		l.effect("its Pods (%d ready) are replaced step by step", count)
	}
	l.undone("kubectl -n %s rollout undo %s/%s, while the earlier revision is kept", l.req.Namespace, l.req.Resource, l.req.Name)
}
