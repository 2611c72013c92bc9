package enforcement

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/confinement"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

// namedEscapes bounds how many findings the message of IdentitiesConfined names.
const namedEscapes = 8

// escapes are what RBAC allows past admission to the governed identities of one policy: the ServiceAccounts of its
// namespaces and its users. What a group gives in several namespaces is one finding.
func escapes(snapshot *policystore.Snapshot, report *confinement.Report, namespaces []string, users []v1alpha1.GovernedUser) []confinement.Finding {
	var found []confinement.Finding
	add := func(findings []confinement.Finding) {
		for _, f := range findings {
			if !slices.Contains(found, f) {
				found = append(found, f)
			}
		}
	}
	for _, namespace := range namespaces {
		add(report.OfNamespace(namespace, func(name string) bool {
			return slices.Contains(snapshot.Scope.Exempt, admission.ServiceAccount{Namespace: namespace, Name: name})
		}))
	}
	for _, user := range users {
		add(report.OfUser(user.Name))
	}
	return found
}

// identitiesConfined is the condition of that name (requirement K-10).
func (in input) identitiesConfined() (metav1.ConditionStatus, v1alpha1.ConditionReason, string) {
	if len(in.escapes) == 0 {
		return metav1.ConditionTrue, v1alpha1.ReasonRolesConfined, "No role of a governed identity allows a way past admission or reads Secrets."
	}
	var sentences []string
	for _, f := range in.escapes[:min(len(in.escapes), namedEscapes)] {
		sentences = append(sentences, f.String())
	}
	message := strings.Join(sentences, "; ")
	if more := len(in.escapes) - len(sentences); more > 0 {
		message += fmt.Sprintf(" (and %d more)", more)
	}
	return metav1.ConditionFalse, v1alpha1.ReasonRoleEscapes,
		message + ". Sessions of these identities are not runtime-backed; bind ClusterRole stepbeyond-agent-workload instead."
}
