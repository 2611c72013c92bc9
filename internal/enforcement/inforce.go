package enforcement

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// InForce reads the scope that the API server enforces, past any cache.
type InForce struct{ Live client.Reader }

// Scope is that of the floor. Without a floor nothing is in force, which is an error.
func (f InForce) Scope(ctx context.Context) (Scope, error) {
	var floor admissionregistrationv1.ValidatingAdmissionPolicy
	if err := f.Live.Get(ctx, client.ObjectKey{Name: FloorAuthority}, &floor); err != nil {
		return Scope{}, fmt.Errorf("read ValidatingAdmissionPolicy %s: %w", FloorAuthority, err)
	}
	expressions := GovernedExpressions(floor.Spec.MatchConditions)
	if len(expressions) == 0 {
		return Scope{}, fmt.Errorf("%w: %s has no match condition %s", ErrForeignExpression, FloorAuthority, Governed)
	}
	return ReadBack(expressions...)
}

// Governs tells whether the scope holds the identity. credential tells whether the request carries a credential ID.
func (s Scope) Governs(username string, credential bool) bool {
	if slices.Contains(s.Users, username) {
		return true
	}
	account, ok := parseServiceAccount(username)
	if !ok || account.Namespace != CanaryNamespace && !slices.Contains(s.Namespaces, account.Namespace) {
		return false
	}
	return !credential || !slices.Contains(s.Exempt, account)
}
