package consequence

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// deletion tells what goes with an object, and what can be had back. gone is nil when the object cannot be read.
func (l *look) deletion(ctx context.Context, gone map[string]any) {
	object := &unstructured.Unstructured{Object: gone}
	switch l.kind() {
	case claims:
		l.deletedClaim(ctx, as[corev1.PersistentVolumeClaim](gone))
		return
	case namespaces:
		l.effect("everything in the namespace is deleted with it, data too")
		if found, ok := l.podsThat(ctx, func(*corev1.Pod) bool { return true }); ok {
			l.effect("in it now: %s", l.counted(found))
		}
		l.undone("none: a namespace of that name can be made again, empty")
		return
	case secrets:
		l.usedBy(ctx, usesSecret(object.GetName()))
		l.undone("none here: its values are not kept; they have to come from where they were made")
		return
	case configMaps:
		l.usedBy(ctx, usesConfigMap(object.GetName()))
	case deployments, statefulSets, daemonSets, replicaSets, controllers, jobs, cronJobs:
		l.deletedWorkload(object)
	case pods:
		l.deletedPod(object)
		return
	case services:
		if s := as[corev1.Service](gone); s != nil {
			l.ledTo(ctx, s, "clients that use it reach nothing any more")
			l.losesAddress(s)
		}
	case ingresses:
		l.routes(gone, "will not reach")
	case networkPolicies:
		l.selects(ctx, gone, "no longer applies to")
	}
	l.madeAgain(object)
	l.undone("make it again from its manifest, in Git or a backup; its uid, status and history do not come back")
}

// madeAgain names the controller that makes the object again.
func (l *look) madeAgain(object *unstructured.Unstructured) {
	if object.Object == nil {
		return
	}
	if owner := metav1.GetControllerOf(object); owner != nil {
		l.effect("%s %s controls it, and makes another when it still wants one", owner.Kind, owner.Name)
	}
}

// deletedClaim tells what becomes of the volume. The API server keeps a claim until no Pod uses it.
func (l *look) deletedClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	if claim == nil {
		return
	}
	if users, ok := l.podsThat(ctx, claimOf(claim.Name)); ok && len(users) > 0 {
		l.effect("used by %s; the deletion waits until no Pod uses it", l.counted(users))
	} else if ok && !l.podList.more {
		l.effect("no Pod uses it now")
	}
	if claim.Spec.VolumeName == "" {
		l.effect("it is bound to no volume, so no data are lost")
		l.undone("make it again from its manifest")
		return
	}
	volume := &corev1.PersistentVolume{}
	if !l.get(ctx, volume, "PersistentVolume", "", claim.Spec.VolumeName) {
		l.undone("not known, because the volume could not be seen: count on none")
		return
	}
	size := volume.Spec.Capacity.Storage().String()
	switch policy := volume.Spec.PersistentVolumeReclaimPolicy; policy {
	case corev1.PersistentVolumeReclaimRetain:
		l.effect("PersistentVolume %s has reclaimPolicy Retain: its %s stay", volume.Name, size)
		l.undone("make the claim again; a person who manages volumes binds %s to it", volume.Name)
	default:
		l.effect("PersistentVolume %s has reclaimPolicy %s: its %s are destroyed", volume.Name, policy, size)
		l.undone("none for the data, unless there is a snapshot or a backup")
	}
}

func (l *look) deletedPod(pod *unstructured.Unstructured) {
	if pod.Object == nil {
		return
	}
	if metav1.GetControllerOf(pod) == nil {
		l.effect("no controller makes it again")
		l.undone("make it again from its manifest; what it held in memory and in its own file system is lost")
		return
	}
	l.madeAgain(pod)
	l.undone("not needed for the Pod; what it held in memory and in its own file system is lost")
}

// deletedWorkload tells what runs under a controller. Without another propagation its Pods go with it.
func (l *look) deletedWorkload(object *unstructured.Unstructured) {
	propagation, _ := l.req.Options["propagationPolicy"].(string)
	orphan, _ := l.req.Options["orphanDependents"].(bool)
	running := ready(object.Object)
	switch {
	case propagation == string(metav1.DeletePropagationOrphan) || orphan:
		l.effect("its Pods (%d ready) stay, and nobody replaces them when they end", running)
	case l.kind() == cronJobs:
		l.effect("its Jobs and their Pods are deleted with it; nothing runs on its schedule any more")
	case l.kind() == jobs:
		active, _, _ := unstructured.NestedInt64(object.Object, "status", "active")
		l.effect("its Pods (%d active) are deleted with it, with their logs", active)
	default:
		l.effect("its Pods (%d ready) are deleted with it", running)
	}
	if l.kind() != statefulSets {
		return
	}
	if kept, _, _ := unstructured.NestedString(object.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"); kept == "Delete" {
		l.effect("its claims are deleted too, and their data as their volumes' reclaimPolicy says")
		l.undone("none for data on volumes with reclaimPolicy Delete")
	} else if templates, _, _ := unstructured.NestedSlice(object.Object, "spec", "volumeClaimTemplates"); len(templates) > 0 {
		l.effect("its claims stay, with their data")
	}
}

// ready counts the Pods of a workload that serve, as its controller last saw them.
func ready(object map[string]any) int64 {
	field := "readyReplicas"
	if kind, _ := object["kind"].(string); kind == "DaemonSet" {
		field = "numberReady"
	}
	n, _, _ := unstructured.NestedInt64(object, "status", field)
	return n
}
