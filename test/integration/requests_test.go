package integration_test

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// create, remove and merge are requests for try and ask.
func create(object client.Object, options ...client.CreateOption) func(context.Context, *actor) error {
	return func(ctx context.Context, a *actor) error {
		return a.Create(ctx, object.DeepCopyObject().(client.Object), options...)
	}
}

func remove(object client.Object, options ...client.DeleteOption) func(context.Context, *actor) error {
	return func(ctx context.Context, a *actor) error {
		return a.Delete(ctx, object.DeepCopyObject().(client.Object), options...)
	}
}

// merge sends a merge patch.
func merge(object client.Object, patch string) func(context.Context, *actor) error {
	return func(ctx context.Context, a *actor) error {
		return a.Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

func execute(namespace, pod string, command ...string) func(context.Context, *actor) error {
	return connect(namespace, pod, "exec", &corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true})
}

// connect opens a connection to a pod, as far as admission: no kubelet answers.
func connect(namespace, pod, subresource string, options runtime.Object) func(context.Context, *actor) error {
	return func(ctx context.Context, a *actor) error {
		return a.core.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod).SubResource(subresource).
			VersionedParams(options, clientgoscheme.ParameterCodec).Do(ctx).Error()
	}
}

func evict(namespace, pod string) func(context.Context, *actor) error {
	return func(ctx context.Context, a *actor) error {
		return a.core.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod}})
	}
}

func scaled(namespace, name string, replicas int32) func(context.Context, *actor) error {
	return func(ctx context.Context, a *actor) error {
		scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
		_, err := a.core.AppsV1().Deployments(namespace).UpdateScale(ctx, name, scale, metav1.UpdateOptions{})
		return err
	}
}
