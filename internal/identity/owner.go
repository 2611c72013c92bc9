package identity

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// intermediate are the owners that have an owner of their own in the built-in workloads.
var intermediate = map[string]schema.GroupVersionKind{
	"ReplicaSet": {Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	"Job":        {Group: "batch", Version: "v1", Kind: "Job"},
}

// RootOwner follows a pod's controllers to the workload that a person or an agent wrote: a Deployment, CronJob, Job,
// StatefulSet, DaemonSet or whatever else owns it. A pod that nothing ever owned is its own root. Only metadata is read.
//
// released tells that the pod no longer hangs on the workload that it was made for: the pod or what made it was taken out
// by another label or owner, or what made it is gone. As a root of its own it would get a fresh session, without the
// deadline, suspension and caps of the workload's.
func RootOwner(ctx context.Context, reader client.Reader, pod *corev1.Pod) (root v1alpha1.RootOwner, released bool, err error) {
	root = v1alpha1.RootOwner{Kind: "Pod", Name: pod.Name, UID: pod.UID}
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return root, pod.GenerateName != "", nil
	}
	// ReplicaSet to Deployment and Job to CronJob are the only chains of the built-in kinds: two steps.
	for step := 0; owner != nil && step < 2; step++ {
		root = v1alpha1.RootOwner{Kind: owner.Kind, Name: owner.Name, UID: owner.UID}
		kind, ok := intermediate[owner.Kind]
		if !ok || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group != kind.Group {
			break
		}
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		err := reader.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, object)
		if apierrors.IsNotFound(err) {
			return root, true, nil
		}
		if err != nil {
			return root, false, fmt.Errorf("read %s %s/%s: %w", owner.Kind, pod.Namespace, owner.Name, err)
		}
		if object.GetUID() != owner.UID {
			return root, true, nil
		}
		if owner = metav1.GetControllerOf(object); owner == nil {
			return root, orphaned(object), nil
		}
	}
	return root, false, nil
}

// orphaned tells that a Deployment made the ReplicaSet, or a CronJob the Job: it carries the mark of its maker, and
// belongs to none.
func orphaned(object *metav1.PartialObjectMetadata) bool {
	_, ofDeployment := object.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	_, ofCronJob := object.Annotations[batchv1.CronJobScheduledTimestampAnnotation]
	return ofDeployment || ofCronJob
}
