package config_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// one reads the only object of a file into a typed one.
func one(t *testing.T, file string, into any) {
	t.Helper()
	objects, err := env.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 1 {
		t.Fatalf("%d objects in %s", len(objects), file)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[0].Object, into, true); err != nil {
		t.Fatal(err)
	}
}

func TestTheNetworkPolicyIsAboutTheManagersPods(t *testing.T) {
	var policy networkingv1.NetworkPolicy
	one(t, "config/network/network_policy.yaml", &policy)
	var deployment appsv1.Deployment
	one(t, "config/manager/deployment.yaml", &deployment)
	if policy.Namespace != deployment.Namespace ||
		!labels.SelectorFromSet(policy.Spec.PodSelector.MatchLabels).Matches(labels.Set(deployment.Spec.Template.Labels)) {
		t.Error("the policy selects no pod of the manager")
	}
	open := map[string]bool{}
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			name := port.Port.StrVal
			if port.Port.Type != intstr.String || !slices.ContainsFunc(deployment.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == name }) {
				t.Errorf("port %v is none that the manager names", port.Port)
			}
			if len(rule.From) == 0 {
				t.Errorf("port %s is open to everybody", name)
			}
			open[name] = true
		}
	}
	if !open["webhook"] || !open["metrics"] || len(open) != 2 {
		t.Errorf("open ports %v, want webhook and metrics", open)
	}
}
