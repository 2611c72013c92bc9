package enforcement

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

var readSettings = Reads{Everybody: []policy.KubernetesSelector{
	{Groups: []string{""}, Resources: []string{"configmaps", "pods/*"}, Verbs: []policy.Verb{policy.VerbRead}},
	{Groups: []string{"apps"}, Resources: []string{"*"}, Verbs: []policy.Verb{policy.VerbRead}},
}}

// controlPlane is the one of the ready-made files of config/.
func controlPlane() ControlPlane {
	return ControlPlane{
		Scope: Scope{Namespaces: []string{"checkout", "payments"}, Exempt: []ServiceAccount{{Namespace: "payments", Name: "operator"}}},
		Endpoint: Endpoint{
			URL: "https://10.96.0.42:443", PathPrefix: "/" + strings.Repeat("0123456789abcdef", 4), CABundle: []byte("-----BEGIN CERTIFICATE-----\n"),
		},
		ServerName: "stepbeyond-webhook.stepbeyond-system.svc", Directory: "/etc/kubernetes/stepbeyond", Version: "v1",
	}
}

// conditions compiles the match conditions of a configuration as the API server does.
func conditions(t *testing.T, text []byte) *authorizationcel.CELMatcher {
	t.Helper()
	var configuration apiserverv1.AuthorizationConfiguration
	if err := yaml.UnmarshalStrict(text, &configuration); err != nil {
		t.Fatal(err)
	}
	matcher := &authorizationcel.CELMatcher{}
	for _, condition := range configuration.Authorizers[1].Webhook.MatchConditions {
		result, err := authorizationcel.NewDefaultCompiler().CompileCELExpression(&authorizationcel.SubjectAccessReviewMatchCondition{Expression: condition.Expression})
		if err != nil {
			t.Fatal(err)
		}
		matcher.CompilationResults = append(matcher.CompilationResults, result)
	}
	return matcher
}

const checkoutAgent = "system:serviceaccount:checkout:agent"

// Proves K-2, K-10: the API server asks about governed identities only, and about what the manager decides.
func TestTheAPIServerAsksAboutWhatAdmissionDoesNotSeeOfGovernedIdentities(t *testing.T) {
	c := controlPlane()
	text, err := authorizationConfiguration(c.Scope, readSettings, "/k")
	if err != nil {
		t.Fatal(err)
	}
	matcher := conditions(t, text)
	resource := func(verb, group, resource string) authorizationv1.SubjectAccessReviewSpec {
		r, subresource, _ := strings.Cut(resource, "/")
		return authorizationv1.SubjectAccessReviewSpec{User: checkoutAgent, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: group, Resource: r, Subresource: subresource, Namespace: "checkout", Name: "x",
		}}
	}
	by := func(user string, credential bool) authorizationv1.SubjectAccessReviewSpec {
		spec := resource("get", "", "secrets")
		spec.User = user
		if credential {
			spec.Extra = map[string]authorizationv1.ExtraValue{credentialID: {"JTI=1"}}
		}
		return spec
	}
	path := func(verb, path string) authorizationv1.SubjectAccessReviewSpec {
		return authorizationv1.SubjectAccessReviewSpec{User: checkoutAgent, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: path}}
	}
	const registration = "admissionregistration.k8s.io"
	for name, tt := range map[string]struct {
		spec authorizationv1.SubjectAccessReviewSpec
		want bool
	}{
		"a Secret": {resource("get", "", "secrets"), true}, "Secrets": {resource("list", "", "secrets"), true}, "a watch": {resource("watch", "", "secrets"), true},
		"a Secret that is written": {resource("create", "", "secrets"), false}, "secrets of another group": {resource("get", "acme.example", "secrets"), false},
		"logs": {resource("get", "", "pods/log"), true}, "a Pod": {resource("get", "", "pods"), false}, "an exec": {resource("get", "", "pods/exec"), false},
		"a proxied Pod": {resource("get", "", "pods/proxy"), false}, "a proxied Service": {resource("get", "", "services/proxy"), false},
		"a proxied Node": {resource("get", "", "nodes/proxy"), true}, "a command on a Node": {resource("create", "", "nodes/proxy"), true},
		"a Node": {resource("get", "", "nodes"), false}, "a Node's status": {resource("get", "", "nodes/status"), false}, "a Node that is written": {resource("patch", "", "nodes"), false},
		"impersonation":  {resource("impersonate", "", "users"), true},
		"a part of it":   {resource("impersonate:user-info", "authentication.k8s.io", "users"), true},
		"another":        {resource("impersonate-on:user-info:create", "", "pods/exec"), true},
		"a policy":       {resource("patch", registration, "validatingadmissionpolicies"), true},
		"its status":     {resource("update", registration, "validatingadmissionpolicies/status"), true},
		"bindings":       {resource("deletecollection", registration, "mutatingadmissionpolicybindings"), true},
		"a policy read":  {resource("get", registration, "validatingadmissionpolicies"), false},
		"a webhook":      {resource("delete", registration, "validatingwebhookconfigurations"), false},
		"a token review": {resource("create", "authentication.k8s.io", "tokenreviews"), true}, "its own rights": {resource("create", "authorization.k8s.io", "selfsubjectaccessreviews"), false},
		"a read that a rule names": {resource("get", "", "configmaps"), true}, "a write of it": {resource("update", "", "configmaps"), false},
		"a group that a rule names": {resource("list", "apps", "deployments/scale"), true}, "a status that a rule names": {resource("get", "", "pods/status"), true},
		"a connect that a rule names": {resource("get", "", "pods/portforward"), false}, "what no rule names": {resource("get", "batch", "jobs"), false},
		"metrics": {path("get", "/metrics"), true}, "a profile": {path("get", "/debug/pprof/heap"), true}, "discovery": {path("get", "/apis/apps/v1"), false},
		"the root": {path("get", "/"), false}, "health": {path("get", "/livez/etcd"), false}, "a look-alike": {path("get", "/apisx"), true}, "a changed flag": {path("put", "/version"), true},
		"no attributes":   {authorizationv1.SubjectAccessReviewSpec{User: checkoutAgent}, true},
		"another account": {by("system:serviceaccount:payments:api", true), true}, "an exempt one": {by("system:serviceaccount:payments:operator", true), false},
		"an exempt one without a credential": {by("system:serviceaccount:payments:operator", false), true},
		"the canary":                         {by("system:serviceaccount:stepbeyond-canary:canary", true), true}, "the manager": {by("system:serviceaccount:stepbeyond-system:stepbeyond-manager", true), false},
		"a bystander": {by("system:serviceaccount:free:agent", true), false}, "a controller": {by("system:serviceaccount:kube-system:job-controller", false), false},
		"a component": {by("system:kube-scheduler", false), false}, "a person": {by("ben@acme.example", false), false}, "nobody": {by("", false), false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := matcher.Eval(t.Context(), &authorizationv1.SubjectAccessReview{Spec: tt.spec})
			if err != nil || got != tt.want {
				t.Errorf("asked: %v, want %v: %v", got, tt.want, err)
			}
			governed := c.Scope.Governs(tt.spec.User, len(tt.spec.Extra) > 0)
			if r := tt.spec.ResourceAttributes; r != nil && got {
				a := kube.Authorization{Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource}
				if _, ours := a.Operation(nil); !ours || !governed {
					t.Errorf("the manager decides: %v, governed: %v; and the API server asks", ours, governed)
				}
			}
		})
	}
}

// The ready-made files are what the manager would write. With UPDATE_CONFIG set they are written.
func TestTheReadyMadeFilesAreTheManagersOwn(t *testing.T) {
	files, err := controlPlane().Files()
	if err != nil {
		t.Fatal(err)
	}
	again, err := controlPlane().Files()
	if diff := cmp.Diff(files, again); diff != "" || err != nil {
		t.Errorf("equal input, other bytes: %v %s", err, diff)
	}
	const head = "# An example: namespaces checkout and payments are governed, payments/operator is exempt. The manager writes this file\n" +
		"# with the real scope into the Secret stepbeyond-control-plane; sync.sh brings it to the hosts. See docs/authorization.md.\n"
	for name, text := range files {
		folder := "authorization"
		if name == FileStaticManifests {
			folder = "static-manifests"
		}
		if strings.HasPrefix(name, kubeconfigPrefix) {
			name = "webhook.kubeconfig"
		}
		path := filepath.Join("..", "..", "config", folder, name)
		want := head + string(text)
		if os.Getenv("UPDATE_CONFIG") != "" {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not what the manager writes; run this test with UPDATE_CONFIG=1 (-want +got):\n%s", path, diff)
		}
	}
}

func TestFilesThatCannotWorkAreNotMade(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*ControlPlane)
		want   error
	}{
		"a relative directory":          {func(c *ControlPlane) { c.Directory = "etc" }, errDirectory},
		"a directory that leads upward": {func(c *ControlPlane) { c.Directory = "/etc/../root" }, errDirectory},
		"no authority":                  {func(c *ControlPlane) { c.Endpoint.CABundle = nil }, errEndpoint},
		"a URL without https":           {func(c *ControlPlane) { c.Endpoint.URL = "http://10.96.0.42" }, errEndpoint},
		"a scope over kube-system":      {func(c *ControlPlane) { c.Scope.Namespaces = []string{"kube-system"} }, ErrNeverGoverned},
	} {
		c := controlPlane()
		tt.change(&c)
		if files, err := c.Files(); !errors.Is(err, tt.want) || files != nil {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	c := controlPlane()
	c.Endpoint.URL, c.Directory = "", ""
	files, err := c.Files()
	if _, found := files[FileStaticManifests]; err != nil || !found || len(files) != 1 {
		t.Errorf("without an address the static manifests alone are made: %v %v", fmt.Sprint(len(files)), err)
	}
}
