package identity

import (
	"context"
	"fmt"

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
// StatefulSet, DaemonSet or whatever else owns it. A pod without a controller is its own root. Only metadata is read.
func RootOwner(ctx context.Context, reader client.Reader, pod *corev1.Pod) (v1alpha1.RootOwner, error) {
	root := v1alpha1.RootOwner{Kind: "Pod", Name: pod.Name, UID: pod.UID}
	owner := metav1.GetControllerOf(pod)
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
			break // the owner is gone; the chain ends at what the pod itself says
		}
		if err != nil {
			return root, fmt.Errorf("read %s %s/%s: %w", owner.Kind, pod.Namespace, owner.Name, err)
		}
		if object.GetUID() != owner.UID {
			break
		}
		owner = metav1.GetControllerOf(object)
	}
	return root, nil
}

// Released tells that a pod was made by a controller and belongs to none any more: it was relabelled out of its workload,
// which would otherwise give it a fresh session of its own, without the deadline, holds and caps of the workload's.
func Released(pod *corev1.Pod) bool {
	return pod.GenerateName != "" && metav1.GetControllerOf(pod) == nil
}
