package authorization_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

// request is one request of whoever cfg is.
type request func(ctx context.Context, t *testing.T, cfg *rest.Config) error

func path(method, path string) request {
	return func(ctx context.Context, t *testing.T, cfg *rest.Config) error {
		return clientOf(t, cfg).CoreV1().RESTClient().Verb(method).AbsPath(path).Do(ctx).Error()
	}
}

// as asks who it is, under the name of somebody else.
func as(who rest.ImpersonationConfig) request {
	return func(ctx context.Context, t *testing.T, cfg *rest.Config) error {
		cfg = rest.CopyConfig(cfg)
		cfg.Impersonate = who
		_, err := clientOf(t, cfg).AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return err
	}
}

func watchSecrets(ctx context.Context, t *testing.T, cfg *rest.Config) error {
	w, err := clientOf(t, cfg).CoreV1().Secrets(home).Watch(ctx, metav1.ListOptions{})
	if err == nil {
		w.Stop()
	}
	return err
}

func logs(namespace string) request {
	return path("GET", "/api/v1/namespaces/"+namespace+"/pods/web/log")
}

func createBinding(ctx context.Context, t *testing.T, cfg *rest.Config) error {
	_, err := clientOf(t, cfg).AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "mine"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "mine", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit},
		},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

const (
	core       = "/api/v1/namespaces/" + home
	admission  = "/apis/admissionregistration.k8s.io/v1"
	impersonal = "(EscalatesAuthority; rule baseline/impersonation: "
)

func dryDelete(p string) request {
	return func(ctx context.Context, t *testing.T, cfg *rest.Config) error {
		return clientOf(t, cfg).CoreV1().RESTClient().Delete().AbsPath(p).Param("dryRun", "All").Do(ctx).Error()
	}
}

// Proves K-10, K-2: what admission cannot see is refused to a governed identity that RBAC allows everything, in the
// grammar of all messages, and a bystander with the same rights notices nothing.
func TestWhatNoAdmissionSeesIsClosedToAgentsAndToNobodyElse(t *testing.T) {
	awaitAuthorizer(t)
	for _, tt := range []struct {
		name    string
		request request
		want    []string
	}{
		{"a Secret by name", path("GET", core+"/secrets/db"), []string{"Forbidden: read secrets checkout/db is closed to agents", "rule baseline/secret-reads", "Next: mount it"}},
		{"a Secret that does not exist", path("GET", core+"/secrets/none"), []string{"Forbidden: read secrets checkout/none "}},
		{"the Secrets of its namespace", path("GET", core+"/secrets"), []string{"Forbidden: read secrets checkout/(unnamed) "}},
		{"the Secrets of the cluster", path("GET", "/api/v1/secrets"), []string{"Forbidden: read secrets (unnamed) "}},
		{"a watch of Secrets", watchSecrets, []string{"Forbidden: read secrets checkout/(unnamed) "}},
		{"logs of another namespace", logs("free"), []string{"Forbidden: read pods/log free/web is outside the authority"}},
		{"a user", as(rest.ImpersonationConfig{UserName: "carla@acme.example"}), []string{"Forbidden: impersonate ", impersonal}},
		{"a ServiceAccount", as(rest.ImpersonationConfig{UserName: "system:serviceaccount:free:bystander"}), []string{"Forbidden: impersonate ", impersonal}},
		{"a user with a group", as(rest.ImpersonationConfig{UserName: "carla@acme.example", Groups: []string{"system:masters"}}), []string{"Forbidden: impersonate ", impersonal}},
		{"a node", as(rest.ImpersonationConfig{UserName: "system:node:worker-1"}), []string{"Forbidden: impersonate ", impersonal}},
		{"its own name", as(rest.ImpersonationConfig{UserName: "system:serviceaccount:" + home + ":agent"}), []string{"Forbidden: impersonate ", impersonal}},
		{"a credential ID", as(rest.ImpersonationConfig{UserName: "carla@acme.example", Extra: map[string][]string{"authentication.kubernetes.io/credential-id": {"x"}}}), []string{"Forbidden: impersonate ", impersonal}},
		{"the proxy of a Node", path("GET", "/api/v1/nodes/worker-1/proxy/pods"), []string{"Forbidden: read nodes/proxy worker-1 ", "rule baseline/node-reads"}},
		{"a command through a Node", path("POST", "/api/v1/nodes/worker-1/proxy/run/a/b/c"), []string{"Forbidden: create nodes/proxy worker-1 ", "rule baseline/cluster-infrastructure"}},
		{"a floor policy", dryDelete(admission + "/validatingadmissionpolicies/stepbeyond-floor-self"), []string{"Forbidden: delete validatingadmissionpolicies stepbeyond-floor-self ", "rule baseline/admission"}},
		{"a floor binding", dryDelete(admission + "/validatingadmissionpolicybindings/stepbeyond-floor-self"), []string{"Forbidden: delete validatingadmissionpolicybindings stepbeyond-floor-self "}},
		{"all floor bindings", dryDelete(admission + "/validatingadmissionpolicybindings"), []string{"Forbidden: delete validatingadmissionpolicybindings (unnamed) "}},
		{"a binding of its own", createBinding, []string{"Forbidden: create validatingadmissionpolicybindings "}},
		{"a mutating policy", dryDelete(admission + "/mutatingadmissionpolicies/any"), []string{"Forbidden: delete mutatingadmissionpolicies any "}},
		{"logs of the API server's host", path("GET", "/logs/"), []string{"Forbidden: read nonresourceurls /logs", "rule baseline/server-internals"}},
		{"a profile of the API server", path("GET", "/debug/pprof/cmdline"), []string{"Forbidden: read nonresourceurls /debug/pprof/cmdline "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.request(t.Context(), t, agent)
			if !apierrors.IsForbidden(err) {
				t.Fatalf("the agent: %v", err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is missing in: %v", part, err)
				}
			}
			if err := tt.request(t.Context(), t, bystander); apierrors.IsForbidden(err) || apierrors.IsInternalError(err) {
				t.Errorf("the bystander: %v", err)
			}
		})
	}
}

// Proves K-10: what is not closed stays RBAC's.
func TestOrdinaryReadsOfAgentsPass(t *testing.T) {
	awaitAuthorizer(t)
	for name, p := range map[string]string{
		"a ConfigMap": core + "/configmaps/settings", "its pods": core + "/pods", "pods everywhere": "/api/v1/pods", "nodes": "/api/v1/nodes",
		"discovery": "/apis", "the version": "/version", "metrics": "/metrics", "health": "/healthz", "policies": admission + "/validatingadmissionpolicies",
	} {
		t.Run(name, func(t *testing.T) {
			if err := path("GET", p)(t.Context(), t, agent); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("logs of its namespace", func(t *testing.T) {
		if err := logs(home)(t.Context(), t, agent); !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want that pod web does not exist", err)
		}
	})
	t.Run("a question about a token", func(t *testing.T) {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "x"}}
		if _, err := clientOf(t, agent).AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// Proves K-10: the webhook gives no rights. Who has none is refused by RBAC, and an impersonated agent has no credential.
func TestTheAuthorizerNeverAllows(t *testing.T) {
	awaitAuthorizer(t)
	ask := func(t *testing.T, cfg *rest.Config, attributes authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
		t.Helper()
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
		review, err := clientOf(t, cfg).AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return review.Status
	}
	log := authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "log", Namespace: home, Name: "web"}
	if got := ask(t, agent, log); !got.Allowed {
		t.Errorf("the agent's own logs: %+v", got)
	}
	// The kubelet asks in these words about whoever calls it.
	if got := ask(t, agent, authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes", Subresource: "metrics", Name: "worker-1"}); got.Allowed || !got.Denied {
		t.Errorf("the kubelet's metrics: %+v", got)
	}
	impersonated := shared.Env.Admin()
	impersonated.Impersonate.UserName = "system:serviceaccount:" + home + ":agent"
	if got := ask(t, impersonated, log); got.Allowed || !strings.Contains(got.Reason, "credential-id") {
		t.Errorf("an administrator in the agent's name: %+v", got)
	}
	token, err := shared.Env.ServiceAccountToken(t.Context(), home, "default", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, shared.Env.Token(token), log); got.Allowed || !strings.Contains(got.Reason, "no session covers this caller") {
		t.Errorf("an account without roles and session: %+v", got)
	}
}

// Proves K-10, F-1: rules of policies count for reads as for writes, also of kinds that the API server did not ask about
// before, and an approval is no way to a read.
func TestRulesTightenReads(t *testing.T) {
	awaitAuthorizer(t)
	reads := func(name string, class v1alpha1.RuleClass, resource string) v1alpha1.Rule {
		return v1alpha1.Rule{Name: name, Class: class, Match: v1alpha1.OperationMatch{Kubernetes: []v1alpha1.KubernetesMatch{{
			Groups: []string{""}, Resources: []string{resource}, Verbs: []v1alpha1.Verb{v1alpha1.VerbRead},
		}}}}
	}
	rules := &v1alpha1.ClusterAgentPolicy{ObjectMeta: metav1.ObjectMeta{Name: "reads"}, Spec: v1alpha1.ClusterAgentPolicySpec{
		BaselineVersion: "v1",
		Governed:        v1alpha1.GovernedSubjects{NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"acme.example/none": "none"}}},
		Rules:           []v1alpha1.Rule{reads("no-logs", v1alpha1.RuleClassForbidden, "pods/log"), reads("ask-settings", v1alpha1.RuleClassAsk, "configmaps")},
	}}
	if err := shared.Admin.Create(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.Admin.Delete(context.Background(), rules) })
	refused := func(r request, want string) func() error {
		return func() error {
			if err := r(t.Context(), t, agent); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("want %q, got %w", want, err)
			}
			return nil
		}
	}
	settings := path("GET", core+"/configmaps/settings")
	eventually(t, refused(logs(home), "Forbidden: read pods/log checkout/web is closed to agents and no approval opens it (rule reads/no-logs)"))
	eventually(t, refused(settings, "Denied: read configmaps checkout/settings needs a person, and grants cover writes only. Next: go on without it"))
	eventually(t, refused(settings, "; "+string(policy.ReasonUngrantable)+"; rule reads/ask-settings]"))
	if err := settings(t.Context(), t, bystander); err != nil {
		t.Errorf("the bystander: %v", err)
	}
	if err := path("GET", core+"/pods")(t.Context(), t, agent); err != nil {
		t.Errorf("what no rule names: %v", err)
	}
	var grants v1alpha1.PermissionGrantList
	if err := shared.Admin.List(t.Context(), &grants); err != nil || len(grants.Items) > 0 {
		t.Errorf("%d questions were opened: %v", len(grants.Items), err)
	}
	if err := shared.Admin.Delete(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return settings(t.Context(), t, agent) })
}

// Proves F-1, K-2: with the manager dead the agent is refused what the webhook decides about, and nobody else anything.
func TestWithTheManagerKilledOnlyWhatItDecidesIsRefused(t *testing.T) {
	awaitAuthorizer(t)
	if err := shared.Manager.Kill(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Manager.Start(); err != nil {
			t.Fatal(err)
		}
		if err := shared.Manager.WaitReady(context.Background(), readyWithin); err != nil {
			t.Fatal(err)
		}
	})
	for name, r := range map[string]request{
		"a Secret": path("GET", core+"/secrets/db"), "logs": logs(home), "another name": as(rest.ImpersonationConfig{UserName: "carla@acme.example"}),
		"a floor policy": dryDelete(admission + "/validatingadmissionpolicies/stepbeyond-floor-self"),
	} {
		if err := r(t.Context(), t, agent); !apierrors.IsInternalError(err) && !apierrors.IsForbidden(err) {
			t.Errorf("the agent: %s: %v", name, err)
		}
		if err := r(t.Context(), t, bystander); apierrors.IsForbidden(err) || apierrors.IsInternalError(err) {
			t.Errorf("the bystander: %s: %v", name, err)
		}
	}
	for _, p := range []string{core + "/configmaps/settings", core + "/pods", "/apis", "/version"} {
		if err := path("GET", p)(t.Context(), t, agent); err != nil {
			t.Errorf("the agent: %s: %v", p, err)
		}
	}
}
