package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mutation names one thing that the story rests on and that is broken on purpose, to see that a row notices.
type mutation string

const (
	// mutateRBAC takes from the agent the rights to do what Step Beyond must refuse.
	mutateRBAC mutation = "rbac"
	// mutateCAS runs a manager that reserves a use of a grant without comparing the resourceVersion.
	mutateCAS mutation = "cas"
	// mutateFloor removes the floor, and the manager's right to restore it.
	mutateFloor mutation = "floor"
)

func (m mutation) check() error {
	if slices.Contains([]mutation{"", mutateRBAC, mutateCAS, mutateFloor}, m) {
		return nil
	}
	return fmt.Errorf("MUTATE=%s: want rbac, cas or floor", m)
}

// mutate breaks what the mutation names; cas is another build of the manager, which needs the right to patch.
func (c *cluster) mutate(ctx context.Context, opts options) error {
	switch opts.mutation {
	case mutateRBAC:
		opts.progress("take the agent's rights for what must be refused")
		err := c.admin.RbacV1().ClusterRoleBindings().Delete(ctx, "demo-agent-too-much", metav1.DeleteOptions{})
		if err != nil {
			return fmt.Errorf("rights of the agent: %w", err)
		}
	case mutateCAS:
		return c.grantPatch(ctx)
	case mutateFloor:
		opts.progress("remove the floor, and the manager's right to restore it")
		if err := c.lockFloor(ctx); err != nil {
			return err
		}
		return c.removeFloor(ctx)
	}
	return nil
}

// grantPatch gives the mutant the right that it reserves with; the manager itself has none to patch a grant.
func (c *cluster) grantPatch(ctx context.Context) error {
	const name = "demo-mutant"
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"stepbeyond.dev"}, Resources: []string{"permissiongrants/status"}, Verbs: []string{"patch"},
		}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "stepbeyond-system", Name: "stepbeyond-manager"}},
	}
	if _, err := c.admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("rights of the mutant: %w", err)
	}
	if _, err := c.admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("rights of the mutant: %w", err)
	}
	return nil
}

// lockFloor takes every right on admission policies from the cluster roles of Step Beyond.
func (c *cluster) lockFloor(ctx context.Context) error {
	roles, err := c.admin.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("rights of the manager: %w", err)
	}
	for _, role := range roles.Items {
		if !strings.HasPrefix(role.Name, "stepbeyond-") {
			continue
		}
		for i := range role.Rules {
			role.Rules[i].Resources = slices.DeleteFunc(role.Rules[i].Resources, func(resource string) bool {
				return strings.HasPrefix(resource, "validatingadmissionpolic")
			})
		}
		role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return len(rule.Resources) == 0 && len(rule.NonResourceURLs) == 0
		})
		if _, err := c.admin.RbacV1().ClusterRoles().Update(ctx, &role, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("rights of the manager: %w", err)
		}
	}
	return nil
}

// removeFloor deletes the bindings of the floor and waits until the API server applies none: it learns of a deletion
// through a watch.
func (c *cluster) removeFloor(ctx context.Context) error {
	policies := c.admin.AdmissionregistrationV1()
	bindings, err := policies.ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	removed := 0
	for _, binding := range bindings.Items {
		if !strings.HasPrefix(binding.Name, floorPrefix) {
			continue
		}
		if err := policies.ValidatingAdmissionPolicyBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		removed++
	}
	if removed == 0 {
		return errors.New("floor: there is no binding to remove")
	}
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	ticker := time.NewTicker(effectInterval)
	defer ticker.Stop()
	const probe = "kubectl create rolebinding probe --dry-run=server --clusterrole=view --serviceaccount=checkout:agent"
	for {
		out, _ := c.shell(ctx, agent, probe, nil)
		if !strings.Contains(out, floorPrefix) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("floor: still applied: %s", out)
		case <-ticker.C:
		}
	}
}
