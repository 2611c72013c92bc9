package lint

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/pages"
	"stepbeyond.dev/stepbeyond/internal/cli/policy/installed"
	"stepbeyond.dev/stepbeyond/internal/confinement"
)

// world is everything that is checked. What could not be read is nil, and its checks are left out.
type world struct {
	now      time.Time
	policies *installed.Policies
	// everywhere: every policy and every namespace is checked; else what counts in the one that is selected.
	everywhere bool
	// files: the policies stand in files, and nothing is known about a cluster.
	files bool
	// selected are the governed namespaces that are checked, sorted.
	selected []string

	roles *confinement.Report
	// accounts are the ServiceAccounts of the namespaces that are checked.
	accounts map[types.NamespacedName]bool
	kinds    *kinds
	grants   []v1alpha1.PermissionGrant
}

func (o *options) checkCluster(ctx context.Context, made *Report) error {
	c, err := o.Client()
	if err != nil {
		return err
	}
	w := &world{now: time.Now(), everywhere: o.all}
	if o.all {
		if w.policies, err = installed.Everywhere(ctx, c); err != nil {
			return err
		}
		w.selected = w.policies.Governed()
	} else {
		namespace, err := o.WorkNamespace()
		if err != nil {
			return err
		}
		if w.policies, err = installed.For(ctx, c, namespace); err != nil {
			return err
		}
		if err := w.policies.MustGovern(namespace); err != nil {
			return err
		}
		w.selected = []string{namespace}
	}
	made.Namespaces = len(w.selected)
	for _, look := range []struct {
		what string
		at   func(context.Context, client.Client) error
	}{
		{"roles that reach past admission", w.readRoles},
		{"whether ServiceAccounts exist", w.readAccounts},
		{"questions about kinds that nobody has catalogued", w.readGrants},
	} {
		if err := look.at(ctx, c); err != nil {
			made.NotLookedAt = append(made.NotLookedAt, fmt.Sprintf("%s: %v", look.what, err))
		}
	}
	if err := o.readKinds(w); err != nil {
		made.NotLookedAt = append(made.NotLookedAt, fmt.Sprintf("rules about resources that do not exist: %v", err))
	}
	w.check(made)
	return nil
}

// check runs every check that has something to look at.
func (w *world) check(made *Report) {
	made.add(w.notInForce()...)
	made.add(w.unbound()...)
	made.add(w.escapes()...)
	made.add(w.exemptions()...)
	made.add(w.templates()...)
	made.add(w.rules()...)
	made.add(w.requirements()...)
	made.add(w.uncatalogued()...)
}

// where limits a list to the namespaces that are checked.
func (w *world) where() []client.ListOption {
	if w.everywhere {
		return nil
	}
	return []client.ListOption{client.InNamespace(w.selected[0])}
}

// everything that RBAC says: a role of another namespace gives nothing here, but a binding there may name an account of here.
func (w *world) readRoles(ctx context.Context, c client.Client) error {
	var (
		roles           rbacv1.RoleList
		clusterRoles    rbacv1.ClusterRoleList
		bindings        rbacv1.RoleBindingList
		clusterBindings rbacv1.ClusterRoleBindingList
	)
	for _, list := range []struct {
		what string
		into client.ObjectList
	}{{"clusterroles", &clusterRoles}, {"clusterrolebindings", &clusterBindings}, {"roles", &roles}, {"rolebindings", &bindings}} {
		if err := pages.Read(ctx, c, list.into); err != nil {
			return fmt.Errorf("list %s of the whole cluster: %s", list.what, pages.Reason(err))
		}
	}
	w.roles = confinement.Find(confinement.RBAC{
		Roles: roles.Items, ClusterRoles: clusterRoles.Items, RoleBindings: bindings.Items, ClusterRoleBindings: clusterBindings.Items,
	})
	return nil
}

func (w *world) readAccounts(ctx context.Context, c client.Client) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccountList"))
	if err := pages.Read(ctx, c, list, w.where()...); err != nil {
		return fmt.Errorf("list serviceaccounts: %s", pages.Reason(err))
	}
	w.accounts = map[types.NamespacedName]bool{}
	for i := range list.Items {
		w.accounts[client.ObjectKeyFromObject(&list.Items[i])] = true
	}
	return nil
}

func (w *world) readGrants(ctx context.Context, c client.Client) error {
	var list v1alpha1.PermissionGrantList
	if err := pages.Read(ctx, c, &list, w.where()...); err != nil {
		return fmt.Errorf("list permissiongrants: %s", pages.Reason(err))
	}
	w.grants = list.Items
	return nil
}

// readKinds asks the API server itself and no cache on disk, which may be hours old.
func (o *options) readKinds(w *world) error {
	config, err := o.Connection()
	if err != nil {
		return err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make a discovery client: %w", err)
	}
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return fmt.Errorf("discover resources: %w", err)
	}
	w.kinds = newKinds(lists)
	var failed *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &failed) {
		for version := range failed.Groups {
			w.kinds.unknown[version.Group] = true
		}
	}
	return nil
}
