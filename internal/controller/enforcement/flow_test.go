package enforcement_test

import (
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
)

// led are the namespaces whose ServiceAccounts the FlowSchema of agents names.
func led(t *testing.T) []string {
	t.Helper()
	var schema flowcontrolv1.FlowSchema
	if err := k8s.Get(t.Context(), client.ObjectKey{Name: admission.FlowAgents}, &schema); err != nil {
		t.Fatal(err)
	}
	if len(schema.OwnerReferences) > 0 {
		t.Errorf("it would go with its owner %+v", schema.OwnerReferences)
	}
	var namespaces []string
	for _, rule := range schema.Spec.Rules {
		for _, subject := range rule.Subjects {
			if subject.ServiceAccount != nil {
				namespaces = append(namespaces, subject.ServiceAccount.Namespace)
			}
		}
	}
	return namespaces
}

// Proves K-2.
func TestGovernedIdentitiesAreLedToTheirPriorityLevel(t *testing.T) {
	create(t, profile(), clusterPolicy("default"), namespace("led", "standard"))
	o := start(t)
	o.step(t)
	if got, scope := led(t), inForce(t).Namespaces; len(got) == 0 {
		t.Errorf("nobody is led, the scope has %v", scope)
	} else {
		want(t, "namespaces of the FlowSchema", scope, got)
	}
	var level flowcontrolv1.PriorityLevelConfiguration
	if err := k8s.Get(t.Context(), client.ObjectKey{Name: admission.PriorityLevel}, &level); err != nil {
		t.Fatal(err)
	}
	if err := k8s.Delete(t.Context(), &level); err != nil {
		t.Fatal(err)
	}
	o.step(t)
	if err := k8s.Get(t.Context(), client.ObjectKey{Name: admission.PriorityLevel}, &level); err != nil {
		t.Errorf("a deleted priority level comes back: %v", err)
	}
	if _, proven := o.scope.State.Proven(); !proven {
		t.Error("enforcement does not depend on the priority level")
	}
}
