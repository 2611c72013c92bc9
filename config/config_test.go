// Package config_test applies config/ to a real API server: what ships must be accepted as it is, and a role must allow
// what its name says and nothing beside it.
package config_test

import (
	"context"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

const namespace = "work"

// start gives a control plane with all of config/ and returns a client of its administrator.
func start(t *testing.T) kubernetes.Interface {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	e, err := env.Start(ctx, env.Options{Progress: func(step string) { t.Log(step) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, folder := range []string{"config/default", "config/samples", "config/network", "config/notifications"} {
		if err := e.ApplyKustomization(ctx, folder); err != nil {
			t.Fatalf("what ships must be accepted as it is: %v", err)
		}
	}
	client, err := kubernetes.NewForConfig(e.Admin())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// bind gives a user of the role's name the role in the namespace. kind is Role or ClusterRole.
func bind(t *testing.T, client kubernetes.Interface, role, in, kind string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role}},
	}
	if _, err := client.RbacV1().RoleBindings(in).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestShippedRolesAllowWhatTheirNamesSay(t *testing.T) {
	client := start(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const (
		approver = "stepbeyond-approver"
		platform = "stepbeyond-platform"
		viewer   = "stepbeyond-viewer"
		reviewer = "stepbeyond-policy-reviewer"
		releaser = "stepbeyond-namespace-releaser"
		breaker  = "stepbeyond-cluster-releaser"
		agent    = "stepbeyond-agent-workload"
		canary   = "system:serviceaccount:stepbeyond-canary:canary"
		manager  = "system:serviceaccount:stepbeyond-system:stepbeyond-manager"
	)
	for _, role := range []string{approver, platform, viewer, reviewer, agent, releaser, breaker} {
		bind(t, client, role, namespace, "ClusterRole")
	}
	bind(t, client, breaker, "stepbeyond-system", "Role")
	allow, refuse := true, false
	tests := []struct {
		name, user, verb, group, resource, in, object string
		want                                          bool
	}{
		{"an approver answers", approver, "approve", "stepbeyond.dev", "permissiongrants", namespace, "", allow},
		{"an approver writes the answer with a patch", approver, "patch", "stepbeyond.dev", "permissiongrants", namespace, "", allow},
		{"an approver asks nothing", approver, "create", "stepbeyond.dev", "permissiongrants", namespace, "", refuse},
		{"an approver of one namespace answers in no other", approver, "approve", "stepbeyond.dev", "permissiongrants", "default", "", refuse},
		{"the platform writes policies", platform, "update", "stepbeyond.dev", "agentpolicies", namespace, "", allow},
		{"the platform approves nothing", platform, "approve", "stepbeyond.dev", "permissiongrants", namespace, "", refuse},
		{"the platform writes no grant", platform, "patch", "stepbeyond.dev", "permissiongrants", namespace, "", refuse},
		{"a viewer reads", viewer, "list", "stepbeyond.dev", "permissiongrants", namespace, "", allow},
		{"a viewer writes nothing", viewer, "patch", "stepbeyond.dev", "agentsessions", namespace, "", refuse},
		{"who reviews policies reads them", reviewer, "list", "stepbeyond.dev", "agentpolicies", namespace, "", allow},
		{"who reviews policies sees what agents may do past admission", reviewer, "list", "rbac.authorization.k8s.io", "rolebindings", namespace, "", allow},
		{"who reviews policies sees which accounts there are", reviewer, "list", "", "serviceaccounts", namespace, "", allow},
		{"who reviews policies writes none", reviewer, "patch", "stepbeyond.dev", "agentpolicies", namespace, "", refuse},
		{"who reviews policies binds no role", reviewer, "create", "rbac.authorization.k8s.io", "rolebindings", namespace, "", refuse},
		{"who reviews policies makes no token", reviewer, "create", "", "serviceaccounts/token", namespace, "", refuse},
		{"who reviews policies reads no Secret", reviewer, "list", "", "secrets", namespace, "", refuse},
		{"who reviews policies approves nothing", reviewer, "approve", "stepbeyond.dev", "permissiongrants", namespace, "", refuse},
		{"who lets namespaces go adds the entry", releaser, "patch", "stepbeyond.dev", "clusteragentpolicies", namespace, "", allow},
		{"who lets namespaces go has the verb for it", releaser, "ungovern", "stepbeyond.dev", "clusteragentpolicies", namespace, "", allow},
		{"who lets namespaces go removes no enforcement", releaser, "delete", "admissionregistration.k8s.io", "validatingwebhookconfigurations", namespace, "stepbeyond", refuse},
		{"who lets namespaces go approves nothing", releaser, "approve", "stepbeyond.dev", "permissiongrants", namespace, "", refuse},
		{"who lets the cluster go has the verb for it", breaker, "ungovern", "stepbeyond.dev", "clusteragentpolicies", namespace, "", allow},
		{"who lets the cluster go removes our webhooks", breaker, "delete", "admissionregistration.k8s.io", "validatingwebhookconfigurations", namespace, "stepbeyond", allow},
		{"who lets the cluster go removes no other webhooks", breaker, "delete", "admissionregistration.k8s.io", "validatingwebhookconfigurations", namespace, "other", refuse},
		{"who lets the cluster go writes no policy", breaker, "patch", "stepbeyond.dev", "clusteragentpolicies", namespace, "", refuse},
		{"who lets the cluster go sees whether files for hosts were made", breaker, "get", "", "secrets", "stepbeyond-system", "stepbeyond-control-plane", allow},
		{"who lets the cluster go reads no other Secret of ours", breaker, "get", "", "secrets", "stepbeyond-system", "stepbeyond-installation", refuse},
		{"who lets the cluster go reads no Secret elsewhere", breaker, "get", "", "secrets", namespace, "stepbeyond-control-plane", refuse},
		{"an agent deploys", agent, "create", "apps", "deployments", namespace, "", allow},
		{"an agent deletes claims, so that asking is ours", agent, "delete", "", "persistentvolumeclaims", namespace, "", allow},
		{"an agent execs, so that asking is ours", agent, "create", "", "pods/exec", namespace, "", allow},
		{"an agent sees its questions", agent, "get", "stepbeyond.dev", "permissiongrants", namespace, "", allow},
		{"an agent answers none", agent, "patch", "stepbeyond.dev", "permissiongrants", namespace, "", refuse},
		{"an agent reads no Secret", agent, "get", "", "secrets", namespace, "", refuse},
		{"an agent writes no Secret", agent, "create", "", "secrets", namespace, "", refuse},
		{"an agent impersonates nobody", agent, "impersonate", "", "serviceaccounts", namespace, "", refuse},
		{"an agent creates no token", agent, "create", "", "serviceaccounts/token", namespace, "", refuse},
		{"an agent writes no ServiceAccount", agent, "create", "", "serviceaccounts", namespace, "", refuse},
		{"an agent binds no role", agent, "create", "rbac.authorization.k8s.io", "rolebindings", namespace, "", refuse},
		{"an agent has no proxy to pods", agent, "get", "", "pods/proxy", namespace, "", refuse},
		{"an agent has no proxy to services", agent, "create", "", "services/proxy", namespace, "", refuse},
		{"an agent has no proxy to nodes", agent, "get", "", "nodes/proxy", "", "", refuse},
		{"the canary may create what must be refused", canary, "create", "", "secrets", "stepbeyond-canary", "", allow},
		{"the canary reads nothing", canary, "get", "", "secrets", "stepbeyond-canary", "", refuse},
		{"the canary may nothing elsewhere", canary, "create", "", "configmaps", namespace, "", refuse},
		{"the manager gets the canary's token", manager, "create", "", "serviceaccounts/token", "stepbeyond-canary", "canary", allow},
		{"the manager gets no other token", manager, "create", "", "serviceaccounts/token", "stepbeyond-canary", "default", refuse},
		{"the manager keeps its installation secret", manager, "get", "", "secrets", "stepbeyond-system", "stepbeyond-installation", allow},
		{"the manager rotates its installation secret", manager, "update", "", "secrets", "stepbeyond-system", "stepbeyond-installation", allow},
		{"the manager deletes no Secret", manager, "delete", "", "secrets", "stepbeyond-system", "stepbeyond-installation", refuse},
		{"the manager lists no Secrets", manager, "list", "", "secrets", "stepbeyond-system", "", refuse},
		{"a replica of the manager says what it serves", manager, "patch", "coordination.k8s.io", "leases", "stepbeyond-system", "", allow},
		{"the manager reads no Secret of anybody else", manager, "get", "", "secrets", namespace, "stepbeyond-installation", refuse},
		{"the manager keeps agents in a priority level of their own", manager, "patch", "flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", "", "stepbeyond-agents", allow},
		{"the manager leads agents there", manager, "create", "flowcontrol.apiserver.k8s.io", "flowschemas", "", "stepbeyond-agents", allow},
		{"the manager leads nobody else anywhere", manager, "patch", "flowcontrol.apiserver.k8s.io", "flowschemas", "", "service-accounts", refuse},
		{"the manager repairs its webhook configuration", manager, "update", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "stepbeyond", allow},
		{"the manager watches its webhook configuration", manager, "watch", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "stepbeyond", allow},
		{"the manager touches no other webhook configuration", manager, "update", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "other", refuse},
		{"the manager lists no other webhook configuration", manager, "list", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "", refuse},
		{"the manager deletes no webhook configuration", manager, "delete", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "stepbeyond", refuse},
		{"the manager creates a deleted definition again", manager, "create", "apiextensions.k8s.io", "customresourcedefinitions", "", "agentsessions.stepbeyond.dev", allow},
		{"the manager repairs a definition", manager, "update", "apiextensions.k8s.io", "customresourcedefinitions", "", "permissiongrants.stepbeyond.dev", allow},
		{"the manager touches no definition of others", manager, "patch", "apiextensions.k8s.io", "customresourcedefinitions", "", "widgets.example.com", refuse},
		{"the manager deletes no definition", manager, "delete", "apiextensions.k8s.io", "customresourcedefinitions", "", "agentsessions.stepbeyond.dev", refuse},
		{"the manager finds the API servers", manager, "get", "discovery.k8s.io", "endpointslices", "default", "kubernetes", allow},
		{"the manager reads no other slice", manager, "get", "discovery.k8s.io", "endpointslices", "default", "kubernetes-mine", refuse},
		{"the manager lists no slices", manager, "list", "discovery.k8s.io", "endpointslices", "default", "", refuse},
		{"the manager finds no other endpoints", manager, "get", "discovery.k8s.io", "endpointslices", namespace, "kubernetes", refuse},
		{"the manager elects a leader", manager, "update", "coordination.k8s.io", "leases", "stepbeyond-system", "", allow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			attributes := attributesOf(tt.verb, tt.group, tt.resource)
			attributes.Namespace, attributes.Name = tt.in, tt.object
			review := &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: tt.user, ResourceAttributes: attributes},
			}
			got, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Status.Allowed != tt.want {
				t.Errorf("%s %s in %q by %s: allowed %v, want %v", tt.verb, tt.resource, tt.in, tt.user, got.Status.Allowed, tt.want)
			}
		})
	}
}

func attributesOf(verb, group, resource string) *authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(resource, "/")
	return &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Subresource: subresource}
}
