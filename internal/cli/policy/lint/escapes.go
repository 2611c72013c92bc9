package lint

import (
	"fmt"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/internal/confinement"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
)

// agentRole is the ClusterRole that ships for agents.
const agentRole = "stepbeyond-agent-workload"

// binding is one role that somebody has by one binding.
type binding struct {
	subject, roleKind, roleName, namespace, name string
}

// escapes finds what RBAC lets agents do past admission. What one binding allows is one finding.
func (w *world) escapes() []Finding {
	if w.roles == nil {
		return nil
	}
	var order []binding
	allowed := map[binding][]confinement.Finding{}
	for _, f := range w.roleFindings() {
		b := binding{f.Subject, f.RoleKind, f.RoleName, f.BindingNamespace, f.BindingName}
		if allowed[b] == nil {
			order = append(order, b)
		}
		if !slices.Contains(allowed[b], f) {
			allowed[b] = append(allowed[b], f)
		}
	}
	var found []Finding
	for _, b := range order {
		found = append(found, b.finding(allowed[b]))
	}
	return found
}

func (w *world) roleFindings() []confinement.Finding {
	var found []confinement.Finding
	for _, namespace := range w.selected {
		found = append(found, w.roles.OfNamespace(namespace, func(name string) bool {
			return slices.Contains(w.policies.Snapshot.Scope.Exempt, enforcement.ServiceAccount{Namespace: namespace, Name: name})
		})...)
	}
	for i := range w.policies.Cluster {
		for _, user := range w.policies.Cluster[i].Spec.Governed.Users {
			if w.everywhere || user.SessionNamespace == w.selected[0] {
				found = append(found, w.roles.OfUser(user.Name)...)
			}
		}
	}
	return found
}

// finding joins what one binding allows.
func (b binding) finding(allowed []confinement.Finding) Finding {
	var resources []string
	verbs := map[string][]string{}
	for i := range allowed {
		resource := allowed[i].Resource
		if verbs[resource] == nil {
			resources = append(resources, resource)
		}
		verbs[resource] = append(verbs[resource], allowed[i].Verb)
	}
	parts := make([]string, 0, len(resources))
	for _, resource := range resources {
		parts = append(parts, strings.Join(verbs[resource], ", ")+" "+resource)
	}
	first := allowed[0]
	first.Verb, first.Resource = "", ""
	object, command := "ClusterRoleBinding "+b.name, "kubectl delete clusterrolebinding "+b.name
	if b.namespace != "" {
		object, command = fmt.Sprintf("RoleBinding %s/%s", b.namespace, b.name), fmt.Sprintf("kubectl -n %s delete rolebinding %s", b.namespace, b.name)
	}
	advice := fmt.Sprintf("Bind ClusterRole %s instead and take this binding away: %s.", agentRole, command)
	if !first.OneIdentity() {
		advice = "This is bound to a group that others are in too: bind it to those who need it, and not to every account."
	}
	return Finding{
		Severity: Error, Check: CheckRoleEscapes, Object: object,
		Message: fmt.Sprintf("%s %s; admission does not see it.", strings.TrimSpace(first.String()), strings.Join(parts, "; ")), Advice: advice,
	}
}
