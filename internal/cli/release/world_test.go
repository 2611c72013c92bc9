package release

import (
	"context"
	"errors"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/enforcement"
)

// inForce is an API server with these webhook entries and policies of the floor.
type inForce struct {
	client.Reader
	entries []admissionregistrationv1.ValidatingWebhook
	floor   map[string][]admissionregistrationv1.MatchCondition
}

func (f inForce) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.(*admissionregistrationv1.ValidatingWebhookConfiguration).Webhooks = f.entries
	return nil
}

func (f inForce) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	for name, conditions := range f.floor {
		policies := list.(*admissionregistrationv1.ValidatingAdmissionPolicyList)
		policies.Items = append(policies.Items, admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       admissionregistrationv1.ValidatingAdmissionPolicySpec{MatchConditions: conditions},
		})
	}
	return nil
}

// governedBy are the match conditions of the scope, one for each shard.
func governedBy(t *testing.T, namespaces ...string) []admissionregistrationv1.MatchCondition {
	t.Helper()
	expressions, err := enforcement.Scope{Namespaces: namespaces}.Expressions()
	if err != nil {
		t.Fatal(err)
	}
	var conditions []admissionregistrationv1.MatchCondition
	for i, expression := range expressions {
		name := enforcement.Governed
		if i > 0 {
			name = fmt.Sprintf("%s-%d", name, i+1)
		}
		conditions = append(conditions, admissionregistrationv1.MatchCondition{Name: name, Expression: expression})
	}
	return conditions
}

// Proves K-4, K-9.
func TestANamespaceIsEnforcedWhileAnyObjectHoldsIt(t *testing.T) {
	many := make([]string, 4000)
	for i := range many {
		many[i] = fmt.Sprintf("team-with-a-long-name-%04d", i)
	}
	large, small := governedBy(t, many...), governedBy(t, "shop")
	if len(large) < 2 {
		t.Fatalf("the large scope has %d shards", len(large))
	}
	foreign := []admissionregistrationv1.MatchCondition{{Name: enforcement.Governed, Expression: "true"}}
	onboarding := []admissionregistrationv1.MatchCondition{{Name: "onboarding", Expression: "true"}}
	entry := func(name string, conditions []admissionregistrationv1.MatchCondition) admissionregistrationv1.ValidatingWebhook {
		return admissionregistrationv1.ValidatingWebhook{Name: name, MatchConditions: conditions}
	}
	enforce := func(conditions []admissionregistrationv1.MatchCondition) []admissionregistrationv1.ValidatingWebhook {
		return []admissionregistrationv1.ValidatingWebhook{entry(enforcement.EntryEnforce, conditions), entry("onboarding.stepbeyond.dev", onboarding)}
	}
	type floor = map[string][]admissionregistrationv1.MatchCondition
	tests := []struct {
		name, namespace string
		api             inForce
		want            bool
		err             error
	}{
		{"first shard of the webhook", many[0], inForce{entries: enforce(large)}, true, nil},
		{"last shard of the webhook", many[len(many)-1], inForce{entries: enforce(large)}, true, nil},
		{"in no shard", "shop", inForce{entries: enforce(large), floor: floor{enforcement.FloorAuthority: large}}, false, nil},
		{"last shard of the floor", many[len(many)-1], inForce{floor: floor{enforcement.FloorPods: large}}, true, nil},
		{"the floor still holds what the webhook let go", "shop", inForce{entries: enforce(large), floor: floor{enforcement.FloorSelf: small}}, true, nil},
		{"the webhook still holds what the floor let go", "shop", inForce{entries: enforce(small), floor: floor{enforcement.FloorSelf: large}}, true, nil},
		{"another's policy counts nothing", "shop", inForce{floor: floor{"by-a-person": small}}, false, nil},
		{"another entry counts nothing", "shop", inForce{entries: []admissionregistrationv1.ValidatingWebhook{entry("other", foreign)}}, false, nil},
		{"a shard is missing", "shop", inForce{entries: enforce(large[:1])}, false, enforcement.ErrForeignExpression},
		{"unreadable and held elsewhere", "shop", inForce{entries: enforce(foreign), floor: floor{enforcement.FloorSelf: small}}, true, nil},
		{"unreadable and held nowhere", "shop", inForce{entries: enforce(foreign), floor: floor{enforcement.FloorSelf: large}}, false, enforcement.ErrForeignExpression},
		{"nothing is there", "shop", inForce{}, false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := enforced(t.Context(), tt.api, tt.namespace)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("enforced %v, %v; want %v, %v", got, err, tt.want, tt.err)
			}
		})
	}
}
