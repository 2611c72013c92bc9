package confinement

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Escape is one way past admission.
type Escape string

// Escapes, from the widest to the narrowest.
const (
	// EscapeWildcard: every verb, resource or group, those of tomorrow as well.
	EscapeWildcard Escape = "Wildcard"
	// EscapeImpersonate: requests under another name. Admission sees that name only.
	EscapeImpersonate Escape = "Impersonate"
	// EscapeTokens: tokens of ServiceAccounts.
	EscapeTokens Escape = "Tokens"
	// EscapeAuthority: roles that allow more than the writer has.
	EscapeAuthority Escape = "Authority"
	// EscapeAdmission: webhooks and admission policies, which are themselves shown to no policy, switched off.
	EscapeAdmission Escape = "Admission"
	// EscapeNodes: the kubelet's own API, behind the API server.
	EscapeNodes Escape = "Nodes"
	// EscapeSecrets: reading Secrets, which hold other identities' credentials.
	EscapeSecrets Escape = "Secrets"
)

// order of escapes in a report.
var order = []Escape{EscapeWildcard, EscapeImpersonate, EscapeTokens, EscapeAuthority, EscapeAdmission, EscapeNodes, EscapeSecrets}

// allowance is one escape that a rule has.
type allowance struct {
	escape Escape
	// verb and resource, in the words of the rule.
	verb, resource string
}

// impersonation begins every verb of impersonation: the whole, and the parts of constrained impersonation
// ("impersonate:user-info", "impersonate-on:user-info:list").
const impersonation = "impersonate"

// reach is what a kind of resource can be used for.
type reach struct {
	groups   []string
	resource string
	// subresources too: "userextras" covers "userextras/scopes".
	prefix bool
	// cluster-scoped resources cannot be reached by a RoleBinding.
	cluster bool
	verbs   []string
	escape  Escape
}

var identities = []string{"", authenticationv1.GroupName}

// reaches are the resources and verbs of the escapes, besides impersonation in general and wildcards.
var reaches = append(admission(), []reach{
	{groups: []string{""}, resource: "serviceaccounts/token", verbs: []string{"create"}, escape: EscapeTokens},
	{groups: []string{rbacv1.GroupName}, resource: "roles", verbs: []string{"escalate", "bind"}, escape: EscapeAuthority},
	{groups: []string{rbacv1.GroupName}, resource: "clusterroles", verbs: []string{"bind"}, escape: EscapeAuthority},
	{groups: []string{rbacv1.GroupName}, resource: "clusterroles", cluster: true, verbs: []string{"escalate"}, escape: EscapeAuthority},
	{groups: []string{""}, resource: "nodes/proxy", cluster: true, verbs: []string{"get", "create", "update", "patch", "delete"}, escape: EscapeNodes},
	{groups: []string{""}, resource: "secrets", verbs: []string{"get", "list", "watch"}, escape: EscapeSecrets},
}...)

// admission is everything that decides about writes and is itself written past all of it.
func admission() []reach {
	var found []reach
	for _, resource := range []string{
		"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies",
		"validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
	} {
		found = append(found, reach{
			groups: []string{admissionregistrationv1.GroupName}, resource: resource, cluster: true,
			verbs: []string{"create", "update", "patch", "delete", "deletecollection"}, escape: EscapeAdmission,
		})
	}
	return found
}

// impersonable are what can be impersonated.
var impersonable = []reach{
	{groups: identities, resource: "serviceaccounts"},
	{groups: identities, resource: "users", cluster: true},
	{groups: identities, resource: "groups", cluster: true},
	{groups: identities, resource: "uids", cluster: true},
	{groups: identities, resource: "userextras", prefix: true, cluster: true},
}

// allowancesOf finds the escapes of a role's rules. everywhere tells that the role is bound in the whole cluster; bound
// in a namespace it reaches nothing that is cluster-scoped.
func allowancesOf(rules []rbacv1.PolicyRule, everywhere bool) []allowance {
	var found []allowance
	add := func(a allowance) {
		if !slices.Contains(found, a) {
			found = append(found, a)
		}
	}
	for i := range rules {
		for _, a := range ofRule(&rules[i], everywhere) {
			add(a)
		}
	}
	slices.SortStableFunc(found, func(a, b allowance) int { return slices.Index(order, a.escape) - slices.Index(order, b.escape) })
	return found
}

func ofRule(rule *rbacv1.PolicyRule, everywhere bool) []allowance {
	if len(rule.Resources) == 0 {
		return nil // paths that are no resources lead to nobody's credentials
	}
	if wild(rule) {
		return []allowance{{EscapeWildcard, strings.Join(rule.Verbs, ","), resourceText(rule)}}
	}
	var found []allowance
	for _, verb := range rule.Verbs {
		if strings.HasPrefix(verb, impersonation) {
			found = append(found, impersonates(rule, verb, everywhere)...)
		}
	}
	for i := range reaches {
		r := &reaches[i]
		if !r.reached(rule, everywhere) {
			continue
		}
		for _, verb := range r.verbs {
			if slices.Contains(rule.Verbs, verb) {
				found = append(found, allowance{r.escape, verb, r.resource})
			}
		}
	}
	return found
}

func wild(rule *rbacv1.PolicyRule) bool {
	return slices.Contains(rule.Verbs, rbacv1.VerbAll) || slices.Contains(rule.APIGroups, rbacv1.APIGroupAll) ||
		slices.ContainsFunc(rule.Resources, func(resource string) bool { return strings.Contains(resource, rbacv1.ResourceAll) })
}

// impersonates lists whom a rule lets impersonate. The permission to do something while impersonating names ordinary
// resources.
func impersonates(rule *rbacv1.PolicyRule, verb string, everywhere bool) []allowance {
	if strings.HasPrefix(verb, impersonation+"-on:") {
		return []allowance{{EscapeImpersonate, verb, resourceText(rule)}}
	}
	var found []allowance
	for i := range impersonable {
		if impersonable[i].reached(rule, everywhere) {
			found = append(found, allowance{EscapeImpersonate, verb, impersonable[i].resource})
		}
	}
	return found
}

func (r *reach) reached(rule *rbacv1.PolicyRule, everywhere bool) bool {
	return (everywhere || !r.cluster) &&
		slices.ContainsFunc(rule.APIGroups, func(group string) bool { return slices.Contains(r.groups, group) }) &&
		slices.ContainsFunc(rule.Resources, func(resource string) bool {
			return resource == r.resource || r.prefix && strings.HasPrefix(resource, r.resource+"/")
		})
}

// resourceText names the resources of a rule, with their group where it is not the core one.
func resourceText(rule *rbacv1.PolicyRule) string {
	text := strings.Join(rule.Resources, ",")
	if groups := strings.Join(rule.APIGroups, ","); groups != corev1.GroupName {
		text += " of group " + groups
	}
	return text
}
