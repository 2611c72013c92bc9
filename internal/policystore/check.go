package policystore

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/baseline"
)

// CheckCluster says what keeps a ClusterAgentPolicy from coming into force, beyond its schema.
func CheckCluster(object *v1alpha1.ClusterAgentPolicy) []policy.Problem {
	var problems []policy.Problem
	if !slices.Contains(baseline.Versions(), object.Spec.BaselineVersion) {
		problems = append(problems, policy.Problem{Field: "baselineVersion", Rule: object.Spec.BaselineVersion,
			Message: "this binary embeds " + strings.Join(baseline.Versions(), ", ")})
	}
	if _, err := metav1.LabelSelectorAsSelector(&object.Spec.Governed.NamespaceSelector); err != nil {
		problems = append(problems, policy.Problem{Field: "governed.namespaceSelector", Rule: object.Name, Message: err.Error()})
	}
	problems = append(problems, checkSubjects(&object.Spec.Governed)...)
	_, compiled := policy.Compile(policy.Set{Cluster: []policy.Policy{FromClusterAgentPolicy(object)}})
	return append(problems, compiled...)
}

// checkSubjects asks the compiler of the scope, entry by entry, so that no policy comes into force whose scope would be
// refused: one bad entry would keep every later namespace out of the scope.
func checkSubjects(governed *v1alpha1.GovernedSubjects) []policy.Problem {
	var problems []policy.Problem
	check := func(path, entry string, scope enforcement.Scope) {
		if _, err := scope.Expressions(); err != nil {
			problems = append(problems, policy.Problem{Field: "governed." + path, Rule: entry, Message: err.Error()})
		}
	}
	for i, user := range governed.Users {
		check(fmt.Sprintf("users[%d].name", i), user.Name, enforcement.Scope{Users: []string{user.Name}})
		check(fmt.Sprintf("users[%d].sessionNamespace", i), user.Name, enforcement.Scope{Namespaces: []string{user.SessionNamespace}})
	}
	for i, account := range governed.ExemptServiceAccounts {
		check(fmt.Sprintf("exemptServiceAccounts[%d]", i), account.Name, enforcement.Scope{
			Exempt: []enforcement.ServiceAccount{{Namespace: account.Namespace, Name: account.Name}},
		})
	}
	return problems
}

// CheckAgentPolicy says what keeps an AgentPolicy from coming into force, beyond its schema.
func CheckAgentPolicy(object *v1alpha1.AgentPolicy) []policy.Problem {
	profile := object.Namespace == enforcement.SystemNamespace
	_, problems := policy.Compile(policy.Set{Cluster: []policy.Policy{FromAgentPolicy(object, profile)}})
	return problems
}
