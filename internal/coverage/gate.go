package coverage

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	admissionregistration "k8s.io/client-go/applyconfigurations/admissionregistration/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/policy"
)

// Gate is the part that enforces a class.
type Gate string

const (
	// GateNone: the request passes neither.
	GateNone Gate = "not gated"
	// GateWebhook is enforce.stepbeyond.dev.
	GateWebhook Gate = "webhook"
	// GateFloor are the ValidatingAdmissionPolicies, which Kubernetes asks also where it asks no webhook.
	GateFloor Gate = "floor"
	// GateBoth: the floor refuses, and the webhook would; so it holds while no replica of the manager answers.
	GateBoth Gate = "floor and webhook"
)

// reviews pass neither policies nor webhooks: https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/kubeapiserver/admission/exclusion/resources.go
var reviews = []schema.GroupResource{
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	{Group: "authentication.k8s.io", Resource: "tokenreviews"},
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
}

// policies pass neither policies nor webhooks, lest one keeps an administrator from removing it.
var policies = []schema.GroupResource{
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicybindings"},
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"},
}

// gates knows which requests the floor closes.
type gates struct{ closed []rules.Matcher }

// newGates reads the rules of the floor against authority escalation, as they would be applied.
func newGates(baseline policy.Policy) (*gates, error) {
	floor, err := enforcement.Floor(enforcement.Scope{Namespaces: []string{home}}, baseline.Catalogue, baseline.ID.UID)
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	g := &gates{}
	for _, object := range floor {
		if p, ok := object.(*admissionregistration.ValidatingAdmissionPolicyApplyConfiguration); ok && *p.Name == enforcement.FloorAuthority {
			for _, rule := range p.Spec.MatchConstraints.ResourceRules {
				g.closed = append(g.closed, rules.Matcher{Rule: admissionregistrationv1.RuleWithOperations{
					Operations: rule.Operations,
					Rule: admissionregistrationv1.Rule{
						APIGroups: rule.APIGroups, APIVersions: rule.APIVersions, Resources: rule.Resources, Scope: rule.Scope,
					},
				}})
			}
		}
	}
	if len(g.closed) == 0 {
		return nil, fmt.Errorf("floor: %s has no rules", enforcement.FloorAuthority)
	}
	return g, nil
}

var admissionOperation = map[Operation]admission.Operation{
	OperationCreate: admission.Create, OperationUpdate: admission.Update, OperationDelete: admission.Delete,
	OperationDeleteCollection: admission.Delete, OperationConnect: admission.Connect,
}

// of is the gate of an operation whose worst class is given. Rules of the floor that look at an object close nothing
// that the engine leaves open, so they count only where the class is FORBIDDEN.
func (g *gates) of(r *Resource, operation Operation, class policy.Class) Gate {
	resource := r.GroupResource()
	if operation == OperationRead || slices.Contains(reviews, resource) || slices.Contains(policies, resource) {
		return GateNone
	}
	attributes := admission.NewAttributesRecord(nil, nil, r.Kind, "", "", r.GroupVersionResource, r.Subresource,
		admissionOperation[operation], nil, false, nil)
	closed := class == policy.ClassForbidden && (r.Group == v1alpha1.GroupVersion.Group ||
		slices.ContainsFunc(g.closed, func(m rules.Matcher) bool { m.Attr = attributes; return m.Matches() }))
	switch exempt := rules.IsExemptAdmissionConfigurationResource(attributes); {
	case closed && exempt:
		return GateFloor
	case closed:
		return GateBoth
	case exempt:
		return GateNone
	default:
		return GateWebhook
	}
}
