package protocol_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// family is one kind of effect, and how somebody takes it back so that another one is possible.
type family struct {
	name string
	home string
	// object is what the effect is on; its kind is what is watched.
	object func(namespace, name string) client.Object
	list   func() client.ObjectList
	// exists tells whether people make the object first.
	exists  bool
	attempt func(ctx context.Context, agent *actor, object client.Object) error
	// effect tells whether an event is one, after the event of the same object before it (nil for none).
	effect func(event watch.Event, before client.Object) bool
	undo   func(ctx context.Context, object client.Object) error
	// again tells that a request which the API server had to try again may find the change made by another one: it then
	// succeeds, with the reason of its first review, and changes nothing.
	again bool
}

var families = []*family{
	{
		name: "create", home: "by-create", object: ingress, list: func() client.ObjectList { return &networkingv1.IngressList{} },
		attempt: func(ctx context.Context, agent *actor, object client.Object) error { return agent.Create(ctx, object) },
		effect:  func(event watch.Event, _ client.Object) bool { return event.Type == watch.Added },
		undo:    func(ctx context.Context, object client.Object) error { return admin.Delete(ctx, object) },
	},
	onService("patch", func(ctx context.Context, agent *actor, object client.Object) error {
		return agent.Patch(ctx, object, selectorPatch("canary"))
	}),
	onService("put", func(ctx context.Context, agent *actor, object client.Object) error {
		s := &corev1.Service{}
		if err := agent.Get(ctx, client.ObjectKeyFromObject(object), s); err != nil {
			return err
		}
		s.Spec.Selector = map[string]string{"app": "canary"}
		return agent.Update(ctx, s)
	}),
	onService("apply", func(ctx context.Context, agent *actor, object client.Object) error {
		wish := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": object.GetNamespace(), "name": object.GetName()},
			"spec": map[string]any{"selector": map[string]any{"app": "canary"}},
		}}
		return agent.Apply(ctx, client.ApplyConfigurationFromUnstructured(wish), client.FieldOwner("agent"), client.ForceOwnership)
	}),
	{
		name: "scale", home: "by-scale", object: deployment, list: func() client.ObjectList { return &appsv1.DeploymentList{} }, exists: true, again: true,
		attempt: func(ctx context.Context, agent *actor, object client.Object) error {
			return scale(ctx, agent, object, 0)
		},
		effect: func(event watch.Event, before client.Object) bool {
			return event.Type == watch.Modified && replicasOf(event.Object) == 0 && replicasOf(before) != 0
		},
		undo: func(ctx context.Context, object client.Object) error { return scale(ctx, admin, object, 1) },
	},
	{
		name: "delete", home: "by-delete", object: configMapObject, list: func() client.ObjectList { return &corev1.ConfigMapList{} }, exists: true,
		attempt: func(ctx context.Context, agent *actor, object client.Object) error { return agent.Delete(ctx, object) },
		effect:  gone, undo: func(ctx context.Context, object client.Object) error { return admin.Create(ctx, object) },
	},
	{
		name: "evict", home: "by-evict", object: pod, list: func() client.ObjectList { return &corev1.PodList{} }, exists: true,
		attempt: func(ctx context.Context, agent *actor, object client.Object) error {
			return agent.core.PolicyV1().Evictions(object.GetNamespace()).Evict(ctx, &policyv1.Eviction{
				ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()},
			})
		},
		effect: gone, undo: func(ctx context.Context, object client.Object) error { return admin.Create(ctx, object) },
	},
	{
		name: "status", home: "by-status", object: service, list: func() client.ObjectList { return &corev1.ServiceList{} }, exists: true, again: true,
		attempt: func(ctx context.Context, agent *actor, object client.Object) error {
			return agent.Status().Patch(ctx, object, conditionPatch("True"))
		},
		effect: func(event watch.Event, before client.Object) bool {
			return event.Type == watch.Modified && hasCondition(event.Object) && !hasCondition(before)
		},
		undo: func(ctx context.Context, object client.Object) error {
			return admin.Status().Patch(ctx, object, mergePatch(`{"status":{"conditions":null}}`))
		},
	},
}

// familyOf finds one by its name.
func familyOf(t *testing.T, name string) *family {
	t.Helper()
	for _, f := range families {
		if f.name == name {
			return f
		}
	}
	t.Fatalf("no family %s", name)
	return nil
}

// onService changes the selector of a Service.
func onService(name string, attempt func(context.Context, *actor, client.Object) error) *family {
	return &family{
		name: name, home: "by-" + name, object: service, list: func() client.ObjectList { return &corev1.ServiceList{} }, exists: true, again: true,
		attempt: attempt,
		effect: func(event watch.Event, before client.Object) bool {
			return event.Type == watch.Modified && selects(event.Object, "canary") && !selects(before, "canary")
		},
		undo: func(ctx context.Context, object client.Object) error {
			return admin.Patch(ctx, object, selectorPatch("web"))
		},
	}
}

func gone(event watch.Event, _ client.Object) bool { return event.Type == watch.Deleted }

func selects(object any, app string) bool {
	s, ok := object.(*corev1.Service)
	return ok && s.Spec.Selector["app"] == app
}

func selectorPatch(app string) client.Patch {
	return mergePatch(`{"spec":{"selector":{"app":"` + app + `"}}}`)
}

const conditionType = "acme.example/Seen"

func hasCondition(object any) bool {
	s, ok := object.(*corev1.Service)
	return ok && meta.FindStatusCondition(s.Status.Conditions, conditionType) != nil
}

func conditionPatch(status string) client.Patch {
	return mergePatch(`{"status":{"conditions":[{"type":"` + conditionType + `","status":"` + status +
		`","reason":"Seen","message":"","lastTransitionTime":"2026-11-30T12:00:00Z"}]}}`)
}

func scale(ctx context.Context, a *actor, object client.Object, replicas int32) error {
	wish := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas},
	}
	_, err := a.core.AppsV1().Deployments(object.GetNamespace()).UpdateScale(ctx, object.GetName(), wish, metav1.UpdateOptions{})
	return err
}

// replicasOf is -1 for what is no Deployment.
func replicasOf(object any) int32 {
	d, ok := object.(*appsv1.Deployment)
	if !ok || d.Spec.Replicas == nil {
		return -1
	}
	return *d.Spec.Replicas
}

func service(namespace, name string) client.Object {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func ingress(namespace, name string) client.Object {
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
		}},
	}
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"text": "hello"}}
}

func configMapObject(namespace, name string) client.Object { return configMap(namespace, name) }

// deployment is paused, so that no controller makes anything of it.
func deployment(namespace, name string) client.Object {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Paused: true, Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
		},
	}
}

func pod(namespace, name string) client.Object {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: podSpec()}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.acme.example/main:1"}}}
}

// must creates objects as the administrator; they are people's.
func must(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}
