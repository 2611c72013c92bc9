package confinement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Names of the API server's own making.
const (
	accountPrefix    = "system:serviceaccount:"
	allAccounts      = "system:serviceaccounts"
	allAuthenticated = "system:authenticated"
)

const kindRole = "Role"

// RBAC is every object that gives permissions.
type RBAC struct {
	Roles               []rbacv1.Role
	ClusterRoles        []rbacv1.ClusterRole
	RoleBindings        []rbacv1.RoleBinding
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
}

// Finding is one thing that a role allows an identity past admission.
type Finding struct {
	Escape Escape
	// RoleKind is Role or ClusterRole.
	RoleKind, RoleName string
	// BindingNamespace is where the role is bound; empty for the whole cluster.
	BindingNamespace, BindingName string
	// Subject is the username, or the group of ServiceAccounts or of everybody, that the role is bound to.
	Subject string
	// Verb and Resource in the words of the rule.
	Verb, Resource string
}

// String is the finding as a sentence without its full stop.
func (f Finding) String() string {
	where := "in the whole cluster"
	if f.BindingNamespace != "" {
		where = "in namespace " + f.BindingNamespace
	}
	return fmt.Sprintf("%s %s, bound to %s %s, allows %s %s", f.RoleKind, f.RoleName, subjectText(f.Subject), where, f.Verb, f.Resource)
}

// OneIdentity tells that the role is bound to one account or user, and to no group.
func (f Finding) OneIdentity() bool {
	return f.Subject != allAccounts && f.Subject != allAuthenticated && !strings.HasPrefix(f.Subject, allAccounts+":")
}

func subjectText(subject string) string {
	if namespace, name, ok := account(subject); ok {
		return namespace + "/" + name
	}
	switch namespace, ok := strings.CutPrefix(subject, allAccounts+":"); {
	case ok:
		return "every ServiceAccount of namespace " + namespace
	case subject == allAccounts:
		return "every ServiceAccount"
	case subject == allAuthenticated:
		return "everybody who is authenticated"
	default:
		return subject
	}
}

// account splits the username of a ServiceAccount.
func account(username string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(username, accountPrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ":")
}

// groupsOf are the groups that every ServiceAccount of the namespace is in.
func groupsOf(namespace string) []string {
	return []string{allAccounts, allAccounts + ":" + namespace, allAuthenticated}
}

// Report is what RBAC allows past admission, by subject. It is immutable.
type Report struct {
	// accounts and users by username, groups by name.
	names, groups map[string][]Finding
}

// Find looks through all bindings. One that names a role which does not exist gives nothing.
func Find(rbac RBAC) *Report {
	r := &Report{names: map[string][]Finding{}, groups: map[string][]Finding{}}
	namespaced := map[types.NamespacedName][]rbacv1.PolicyRule{}
	for i := range rbac.Roles {
		role := &rbac.Roles[i]
		namespaced[types.NamespacedName{Namespace: role.Namespace, Name: role.Name}] = role.Rules
	}
	cluster := map[string][]rbacv1.PolicyRule{}
	for i := range rbac.ClusterRoles {
		cluster[rbac.ClusterRoles[i].Name] = rbac.ClusterRoles[i].Rules
	}
	for i := range rbac.RoleBindings {
		b := &rbac.RoleBindings[i]
		rules := cluster[b.RoleRef.Name]
		if b.RoleRef.Kind == kindRole {
			rules = namespaced[types.NamespacedName{Namespace: b.Namespace, Name: b.RoleRef.Name}]
		}
		r.bind(b.RoleRef, b.Namespace, b.Name, b.Subjects, allowancesOf(rules, false))
	}
	for i := range rbac.ClusterRoleBindings {
		b := &rbac.ClusterRoleBindings[i]
		r.bind(b.RoleRef, "", b.Name, b.Subjects, allowancesOf(cluster[b.RoleRef.Name], true))
	}
	r.sort()
	return r
}

func (r *Report) bind(role rbacv1.RoleRef, namespace, binding string, subjects []rbacv1.Subject, found []allowance) {
	for _, subject := range subjects {
		to, name := r.names, subject.Name
		switch subject.Kind {
		case rbacv1.ServiceAccountKind:
			// A RoleBinding may leave the namespace out for one of its own.
			name = accountPrefix + cmp.Or(subject.Namespace, namespace) + ":" + subject.Name
		case rbacv1.GroupKind:
			to = r.groups
		}
		for _, a := range found {
			to[name] = append(to[name], Finding{
				Escape: a.escape, RoleKind: role.Kind, RoleName: role.Name, BindingNamespace: namespace, BindingName: binding,
				Subject: name, Verb: a.verb, Resource: a.resource,
			})
		}
	}
}

// sort orders each list, so that equal RBAC gives an equal report whatever order it was listed in.
func (r *Report) sort() {
	for _, by := range []map[string][]Finding{r.names, r.groups} {
		for name := range by {
			slices.SortFunc(by[name], compare)
		}
	}
}

func compare(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(slices.Index(order, a.Escape), slices.Index(order, b.Escape)),
		cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.RoleKind, b.RoleKind), cmp.Compare(a.RoleName, b.RoleName),
		cmp.Compare(a.BindingNamespace, b.BindingNamespace), cmp.Compare(a.BindingName, b.BindingName),
		cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb),
	)
}

// Equal tells whether two reports say the same.
func (r *Report) Equal(other *Report) bool {
	same := func(a, b map[string][]Finding) bool { return maps.EqualFunc(a, b, slices.Equal) }
	return same(r.names, other.names) && same(r.groups, other.groups)
}

// OfServiceAccount is what one ServiceAccount gets, by its name and by the groups that it is in.
func (r *Report) OfServiceAccount(namespace, name string) []Finding {
	return r.of(accountPrefix+namespace+":"+name, groupsOf(namespace))
}

// OfUser is what a user gets who is no ServiceAccount, by the name and as anybody who is authenticated.
func (r *Report) OfUser(name string) []Finding { return r.of(name, []string{allAuthenticated}) }

func (r *Report) of(name string, groups []string) []Finding {
	found := slices.Clone(r.names[name])
	for _, group := range groups {
		found = append(found, r.groups[group]...)
	}
	slices.SortFunc(found, compare)
	return found
}

// OfNamespace is what the ServiceAccounts of a namespace get, each finding once. except tells which ones do not count;
// what a group gives counts all the same, because others are in it.
func (r *Report) OfNamespace(namespace string, except func(name string) bool) []Finding {
	var found []Finding
	for _, group := range groupsOf(namespace) {
		found = append(found, r.groups[group]...)
	}
	for username, findings := range r.names {
		if at, name, ok := account(username); ok && at == namespace && !except(name) {
			found = append(found, findings...)
		}
	}
	slices.SortFunc(found, compare)
	return found
}
