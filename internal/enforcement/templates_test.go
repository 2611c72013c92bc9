package enforcement

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"stepbeyond.dev/stepbeyond/internal/stamp"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// A kind that one of the tables has and another has not would be stamped and refused for want of a stamp, or judged by
// the floor and not by the engine.
func TestConditionsStampsAndEngineFindTheSamePodTemplates(t *testing.T) {
	candidates := map[schema.GroupResource]bool{}
	for kind := range scheme.Scheme.AllKnownTypes() {
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		candidates[resource.GroupResource()] = true
		candidates[schema.GroupResource{Group: "example.com", Resource: resource.Resource}] = true
	}
	var found int
	for resource := range candidates {
		want := conditionImage(resource)
		if want != "" {
			found++
		}
		got := map[string]string{"stamp": stampImage(resource), "engine": engineImage(t, resource)}
		if diff := cmp.Diff(map[string]string{"stamp": want, "engine": want}, got); diff != "" {
			t.Errorf("%s: where the template is (-conditions +others):\n%s", resource, diff)
		}
	}
	if found != len(podTemplateKinds) {
		t.Errorf("%d kinds with a pod template were compared, want %d", found, len(podTemplateKinds))
	}
}

// everywhere is an object with a pod spec in each place that a built-in kind has one. The image names the place.
func everywhere() map[string]any {
	spec := func(image string, more map[string]any) map[string]any {
		fields := map[string]any{"containers": []any{map[string]any{"name": "c", "image": image}}}
		for key, value := range more {
			fields[key] = value
		}
		return fields
	}
	template := func(image string) map[string]any { return map[string]any{"spec": spec(image, nil)} }
	return map[string]any{
		"metadata": map[string]any{"name": "web", "namespace": "shop"},
		"template": template("template"),
		"spec": spec("object", map[string]any{
			"template":    template("spec.template"),
			"jobTemplate": map[string]any{"spec": map[string]any{"template": template("spec.jobTemplate.spec.template")}},
		}),
	}
}

func imageOf(spec map[string]any) string {
	return spec["containers"].([]any)[0].(map[string]any)["image"].(string)
}

// conditionImage follows the path that the match conditions and the floor use.
func conditionImage(resource schema.GroupResource) string {
	for _, kind := range podTemplateKinds {
		if (schema.GroupResource{Group: kind.group, Resource: kind.resource}) != resource {
			continue
		}
		holder := everywhere()
		for _, key := range strings.Split(kind.template, ".?")[1:] {
			holder = holder[key].(map[string]any)
		}
		return imageOf(holder["spec"].(map[string]any))
	}
	return ""
}

func stampImage(resource schema.GroupResource) string {
	template, ok := stamp.TemplateOf(everywhere(), resource)
	if !ok {
		return ""
	}
	return imageOf(template.Spec)
}

func engineImage(t *testing.T, resource schema.GroupResource) string {
	t.Helper()
	op, err := kube.Operation(kube.Request{
		Operation: "CREATE", Group: resource.Group, Version: "v1", Resource: resource.Resource, Namespace: "shop", Name: "web", Object: everywhere(),
	}, kube.Known{})
	if err != nil {
		t.Fatalf("%s: %v", resource, err)
	}
	if len(op.Kubernetes.PodTemplates) != 1 {
		return "" // the engine searches all of an object of any other kind, and finds every one
	}
	return op.Kubernetes.PodTemplates[0].Images[0]
}
