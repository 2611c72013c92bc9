package main

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// refused is the one namespace whose ServiceAccounts the excluding policy does not exclude.
const refused = "refused"

// withExcluding has a policy that looks at every write, and excludes the caller by the same kind of match condition as
// ours.
func withExcluding(ctx context.Context, f *field, plane *env.Env) error {
	admin, err := plane.Client()
	if err != nil {
		return err
	}
	conditions, err := enforcement.Scope{Namespaces: []string{refused}}.Expressions()
	if err != nil {
		return err
	}
	policy, binding := excluding(conditions[0])
	if err := errors.Join(admin.Create(ctx, policy), admin.Create(ctx, binding)); err != nil {
		return fmt.Errorf("create policy: %w", err)
	}
	cfg, err := newCaller(ctx, plane)
	if err != nil {
		return err
	}
	if err := f.add(excluded, plane, cfg, callers, nil); err != nil {
		return err
	}
	other := plane.Admin()
	other.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + refused + ":someone", Groups: []string{"system:masters"}}
	client, err := kubernetes.NewForConfig(other)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	return eventually(ctx, func() error {
		_, err := client.CoreV1().ConfigMaps(callers).Create(ctx, configMap(0), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			return nil
		}
		return fmt.Errorf("the policy is not in force: %w", err)
	})
}

func excluding(condition string) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: excluded},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
					},
				}}},
				MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "governed", Expression: condition}},
				Validations:     []admissionregistrationv1.Validation{{Expression: "false"}},
				FailurePolicy:   new(admissionregistrationv1.Fail),
			},
		}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: excluded},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: excluded, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		}
}
