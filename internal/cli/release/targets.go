package release

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// target is one object that is removed.
type target struct {
	kind           schema.GroupVersionKind
	resource, name string
}

func (t target) String() string {
	return fmt.Sprintf("%s.%s/%s", strings.ToLower(t.kind.Kind), t.kind.Group, t.name)
}

func (t target) object() client.Object {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: t.name}}
	object.SetGroupVersionKind(t.kind)
	return object
}

// removed lists what the manager writes, in the order of removal. First the webhooks, which without a manager refuse
// every governed write, so that the floor stands until nothing fails closed any more; a binding before its policy, so
// that none is left without.
var removed = []struct{ group, kind, resource string }{
	{"admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"},
	{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"},
	{"admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"},
	{"admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"},
	{"flowcontrol.apiserver.k8s.io", "FlowSchema", "flowschemas"},
	{"flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", "prioritylevelconfigurations"},
}

// everything that the manager wrote and that is still there, in the order of removal.
func everything(ctx context.Context, c client.Reader) ([]target, error) {
	var found []target
	for _, r := range removed {
		kind := schema.GroupVersionKind{Group: r.group, Version: "v1", Kind: r.kind}
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(r.kind + "List"))
		if err := c.List(ctx, &list); meta.IsNoMatchError(err) {
			continue // this API server serves none
		} else if err != nil {
			return nil, fmt.Errorf("list %s: %w", r.resource, err)
		}
		list.Items = slices.DeleteFunc(list.Items, func(o metav1.PartialObjectMetadata) bool { return !ours(&o) })
		for i := range list.Items {
			found = append(found, target{kind: kind, resource: r.resource, name: list.Items[i].Name})
		}
	}
	return found, nil
}
