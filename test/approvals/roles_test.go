package approvals_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
)

// holder is a person who holds one shipped ClusterRole in one namespace.
func holder(t *testing.T, role, namespace string) *person {
	t.Helper()
	name := strings.TrimPrefix(role, "stepbeyond-") + "-alone@acme.example"
	cfg, err := shared.Env.User(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := as(name, cfg)
	if err != nil {
		t.Fatal(err)
	}
	must(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
	return p
}

// Proves K-4, G-4: what each role for people allows is exactly what its job needs; the API server says so itself.
func TestARoleForPeopleAllowsItsJobAndNothingElse(t *testing.T) {
	h := home(t, "roles", cluster.Profile)
	for role, want := range map[string][]string{
		approverRole: {"permissiongrants: approve get list patch watch"},
		"stepbeyond-operator": {
			"agentpolicies: get list watch", "agentsessions: get list patch watch", "clusteragentpolicies: get list watch", "permissiongrants: get list watch",
		},
		"stepbeyond-policy-author": {
			"agentpolicies: create delete get list patch update watch", "agentsessions: get list watch", "clusteragentpolicies: get list watch", "permissiongrants: get list watch",
		},
		"stepbeyond-viewer": {
			"agentpolicies: get list watch", "agentsessions: get list watch", "clusteragentpolicies: get list watch", "permissiongrants: get list watch",
		},
	} {
		t.Run(role, func(t *testing.T) {
			p := holder(t, role, h.Namespace)
			eventually(t, func() error {
				if diff := cmp.Diff(want, allowedIn(t, p, h.Namespace)); diff != "" {
					return fmt.Errorf("allowed in the namespace (-want +got):\n%s", diff)
				}
				return nil
			})
			if elsewhere := allowedIn(t, p, "default"); len(elsewhere) > 0 {
				t.Errorf("allowed in another namespace: %v", elsewhere)
			}
			if err := p.List(t.Context(), &v1alpha1.PermissionGrantList{}, client.InNamespace(h.Namespace)); err != nil {
				t.Errorf("sees no questions: %v", err)
			}
		})
	}
}

// allowedIn lists what RBAC gives a person in a namespace beside what it gives everybody.
func allowedIn(t *testing.T, p *person, namespace string) []string {
	t.Helper()
	core, err := kubernetes.NewForConfig(p.config)
	if err != nil {
		t.Fatal(err)
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	answer, err := core.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if answer.Status.Incomplete {
		t.Fatalf("the API server does not know all rules: %s", answer.Status.EvaluationError)
	}
	verbs := map[string][]string{}
	for _, rule := range answer.Status.ResourceRules {
		for _, resource := range rule.Resources {
			if strings.HasPrefix(resource, "selfsubject") {
				continue // everybody may ask about themselves
			}
			if !slices.Equal(rule.APIGroups, []string{v1alpha1.GroupVersion.Group}) {
				resource = strings.Join(rule.APIGroups, ",") + "/" + resource
			}
			verbs[resource] = append(verbs[resource], rule.Verbs...)
		}
	}
	var lines []string
	for resource, list := range verbs {
		slices.Sort(list)
		lines = append(lines, resource+": "+strings.Join(slices.Compact(list), " "))
	}
	slices.Sort(lines)
	return lines
}

// Proves K-4: each role alone does its job.
func TestEachRoleAloneDoesItsJob(t *testing.T) {
	h := home(t, "jobs", cluster.Profile)
	target := configMap(h.Namespace, "target")
	must(t, target)
	g := ask(t, h, remove(target))
	approver, operator, author := holder(t, approverRole, h.Namespace), holder(t, "stepbeyond-operator", h.Namespace), holder(t, "stepbeyond-policy-author", h.Namespace)
	var sessions v1alpha1.AgentSessionList
	eventually(t, func() error { return operator.List(t.Context(), &sessions, client.InNamespace(h.Namespace)) })
	end := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"deadlineTime":"`+time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)+`"}}`))
	policy := &v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "default"}, Spec: v1alpha1.AgentPolicySpec{Rules: []v1alpha1.Rule{{
		Name: "ask-leases", Class: v1alpha1.RuleClassAsk, Enforcement: v1alpha1.EnforcementEnforce, Detail: "Leader election belongs to controllers.",
		Match: v1alpha1.OperationMatch{Kubernetes: []v1alpha1.KubernetesMatch{{Groups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []v1alpha1.Verb{v1alpha1.VerbCreate}}}},
	}}}}

	t.Run("an operator answers nothing", func(t *testing.T) {
		refused(t, g, operator.Patch(t.Context(), g.DeepCopy(), answer(g, v1alpha1.VerdictApprove, nil)), "forbidden")
	})
	t.Run("an author answers nothing", func(t *testing.T) {
		refused(t, g, author.Patch(t.Context(), g.DeepCopy(), answer(g, v1alpha1.VerdictApprove, nil)), "forbidden")
	})
	t.Run("an approver answers", func(t *testing.T) {
		eventually(t, func() error {
			return approver.Get(t.Context(), client.ObjectKeyFromObject(g), &v1alpha1.PermissionGrant{})
		})
		decide(t, approver, g, v1alpha1.VerdictApprove)
	})
	t.Run("an approver writes no policy and ends no session", func(t *testing.T) {
		if err := approver.Create(t.Context(), policy.DeepCopy(), client.DryRunAll); err == nil {
			t.Error("an approver wrote a policy")
		}
		if err := approver.Patch(t.Context(), sessions.Items[0].DeepCopy(), end); err == nil {
			t.Error("an approver ended a session")
		}
	})
	t.Run("an author writes the policy of the namespace", func(t *testing.T) {
		eventually(t, func() error { return author.Create(t.Context(), policy.DeepCopy()) })
	})
	t.Run("an operator ends a session", func(t *testing.T) {
		if err := operator.Patch(t.Context(), sessions.Items[0].DeepCopy(), end); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error {
			session := &v1alpha1.AgentSession{}
			if err := operator.Get(t.Context(), client.ObjectKeyFromObject(&sessions.Items[0]), session); err != nil {
				return err
			}
			if session.Status.State != v1alpha1.SessionEnded {
				return fmt.Errorf("the session is %s", session.Status.State)
			}
			return nil
		})
	})
}
