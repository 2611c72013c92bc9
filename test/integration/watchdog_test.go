package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The edits are ones that leave everything closed, because other tests use the same cluster.
//
// Proves M-2, K-2, K-6.
func TestTheManagerRepairsWithItsOwnRoleAndTellsInEventAndMetric(t *testing.T) {
	const prefix = "stepbeyond"
	tests := []struct{ name, apiVersion, kind, object, patch, note string }{
		{"a webhook configuration", "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", prefix,
			`[{"op": "add", "path": "/webhooks/0/matchConditions/-", "value": {"name": "always", "expression": "true"}}]`,
			"webhooks[enforce.stepbeyond.dev].matchConditions[always] by integration"},
		{"a policy", "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", prefix + "-floor-self",
			`[{"op": "add", "path": "/spec/matchConditions/-", "value": {"name": "always", "expression": "true"}}]`,
			"spec.matchConditions[always] by integration"},
		{"a binding", "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", prefix + "-floor-self",
			`[{"op": "replace", "path": "/spec/validationActions", "value": ["Deny"]}]`, "spec.validationActions"},
		{"a definition", "apiextensions.k8s.io/v1", "CustomResourceDefinition", "agentsessions.stepbeyond.dev",
			`[{"op": "add", "path": "/spec/names/shortNames/-", "value": "agsess"}]`, "spec.names.shortNames by integration"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			labels := map[string]string{"kind": tt.kind, "name": tt.object}
			before, err := manager.Counter(t.Context(), "stepbeyond_enforcement_repairs_total", labels)
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{}
			object.SetAPIVersion(tt.apiVersion)
			object.SetKind(tt.kind)
			object.SetName(tt.object)
			start := time.Now()
			if err := admin.Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, []byte(tt.patch)), client.FieldOwner("integration")); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() error {
				after, err := manager.Counter(t.Context(), "stepbeyond_enforcement_repairs_total", labels)
				if err == nil && after != before+1 {
					err = fmt.Errorf("%v repairs counted, want %v", after, before+1)
				}
				return err
			})
			t.Logf("repaired and counted after %s", time.Since(start).Round(time.Millisecond))
			eventually(t, func() error { return toldOfRepair(t, tt.kind, tt.object, tt.note) })
		})
	}
}

// toldOfRepair looks for the event on the policy.
func toldOfRepair(t *testing.T, kind, name, note string) error {
	t.Helper()
	var list eventsv1.EventList
	if err := admin.List(t.Context(), &list, client.InNamespace("default")); err != nil {
		return err
	}
	for i := range list.Items {
		event := &list.Items[i]
		if event.Reason == "EnforcementRepaired" && event.Type == "Warning" && event.Regarding.Kind == "ClusterAgentPolicy" &&
			event.Related != nil && event.Related.Kind == kind && event.Related.Name == name && strings.Contains(event.Note, note) {
			return nil
		}
	}
	return fmt.Errorf("no event about %s %s with %q", kind, name, note)
}
