package main

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
)

func webhookConfigurationDeleted() *row {
	return &row{
		name: "webhooks-deleted", title: "Webhook configuration deleted",
		auto:     "allowed",
		done:     "A cluster administrator deletes the validating and the mutating webhook configuration.",
		expected: "They are written again without help. Until then nothing stands between an agent and ASK, and what it may do by itself is not stamped; FORBIDDEN has the floor's answer.",
		exposed:  "until the configuration is there again",
		begin: func(ctx context.Context, s *scene) error {
			for _, object := range []client.Object{
				&admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{},
			} {
				object.SetName(enforcement.WebhookConfiguration)
				if err := s.admin.Delete(ctx, object); err != nil {
					return fmt.Errorf("delete %T: %w", object, err)
				}
			}
			return nil
		},
	}
}

func floorDeleted() *row {
	return &row{
		name: "floor-deleted", title: "Floor policies deleted",
		auto:     "allowed",
		done:     "A cluster administrator deletes every ValidatingAdmissionPolicy of the floor, and its bindings.",
		expected: "They are written again without help; until then the webhook refuses FORBIDDEN.",
		begin: func(ctx context.Context, s *scene) error {
			for _, list := range []client.ObjectList{
				&admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}, &admissionregistrationv1.ValidatingAdmissionPolicyList{},
			} {
				if err := s.deleteOurs(ctx, list); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// deleteOurs deletes what the manager has written, of the kind of the list.
func (s *scene) deleteOurs(ctx context.Context, list client.ObjectList) error {
	ours := labels.SelectorFromSet(labels.Set{"app.kubernetes.io/managed-by": "stepbeyond"})
	if err := s.admin.List(ctx, list, client.MatchingLabelsSelector{Selector: ours}); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	if meta.LenList(list) == 0 {
		return fmt.Errorf("%T: there is nothing of ours", list)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	for _, item := range items {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", item)
		}
		if err := s.admin.Delete(ctx, object); err != nil {
			return fmt.Errorf("delete %s: %w", object.GetName(), err)
		}
	}
	return nil
}

func clusterPolicyDeleted() *row {
	return &row{
		name: "cluster-policy-deleted", title: "Cluster policy deleted",
		auto: "refused", asksAgain: true,
		done:     "A platform engineer deletes the only ClusterAgentPolicy, and makes it again after the fault.",
		expected: "The last scope stays, and AUTO is refused with PolicyMissing. A new object is another policy: what was approved under the old one is asked again.",
		begin: func(ctx context.Context, s *scene) error {
			return s.cluster.Admin.Delete(ctx, &v1alpha1.ClusterAgentPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
		},
		end:    func(ctx context.Context, s *scene) error { return s.cluster.Reapply(ctx) },
		person: "apply the policy",
	}
}
