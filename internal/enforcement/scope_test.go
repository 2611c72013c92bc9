package enforcement

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	admissionregistration "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
)

func TestScopeReadsBack(t *testing.T) {
	for _, tc := range []struct {
		name string
		in   Scope
		want Scope
	}{
		{"the empty scope", Scope{}, Scope{}},
		{"order and duplicates do not matter, and the canary's namespace is implied",
			Scope{Namespaces: []string{"shop", "billing", "shop", CanaryNamespace}, Users: []string{"b", "a", "b"}},
			Scope{Namespaces: []string{"billing", "shop"}, Users: []string{"a", "b"}}},
		{"users with the characters of CEL and JSON",
			Scope{Users: []string{`oidc:"] || true || "`, `back\slash`, "żółw 🐢", "<a&b>", "\u2028"}},
			Scope{Users: []string{"<a&b>", `back\slash`, `oidc:"] || true || "`, "żółw 🐢", "\u2028"}}},
		{"exempt ServiceAccounts",
			Scope{Namespaces: []string{"shop"}, Exempt: []ServiceAccount{{"shop", "z"}, {"shop", "a.b"}}},
			Scope{Namespaces: []string{"shop"}, Exempt: []ServiceAccount{{"shop", "a.b"}, {"shop", "z"}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			expression := mustExpression(t, tc.in)
			got, err := ReadBack(expression)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again := mustExpression(t, got); again != expression {
				t.Errorf("the scope that was read back gives other bytes:\n%s\n%s", expression, again)
			}
		})
	}
}

func TestReadBackRefusesForeignExpressions(t *testing.T) {
	good := mustExpression(t, Scope{Namespaces: []string{"shop"}, Users: []string{"a"}})
	for name, expression := range map[string]string{
		"no expression":                      "",
		"another condition":                  "true",
		"an added alternative":               good + ` || request.userInfo.username == "b"`,
		"a list in another order":            strings.Replace(good, `["shop","stepbeyond-canary"]`, `["stepbeyond-canary","shop"]`, 1),
		"a list without the canary":          strings.Replace(good, `["shop","stepbeyond-canary"]`, `["shop"]`, 1),
		"a list with a space":                strings.Replace(good, `["a"]`, `[ "a"]`, 1),
		"a namespace that is never in scope": strings.Replace(good, `["shop"`, `["kube-system","shop"`, 1),
		"an exempt person":                   strings.Replace(good, `in []`, `in ["ben"]`, 1),
	} {
		if got, err := ReadBack(expression); !errors.Is(err, ErrForeignExpression) {
			t.Errorf("%s: want ErrForeignExpression, got %+v, %v", name, got, err)
		}
	}
}

func TestScopeRefusesEntriesByName(t *testing.T) {
	for _, tc := range []struct {
		entry string
		scope Scope
		want  error
	}{
		{`namespaces: "kube-system"`, Scope{Namespaces: []string{"shop", "kube-system"}}, ErrNeverGoverned},
		{`namespaces: "stepbeyond-system"`, Scope{Namespaces: []string{SystemNamespace}}, ErrNeverGoverned},
		{`namespaces: "Shop"`, Scope{Namespaces: []string{"Shop"}}, ErrMalformedEntry},
		{`namespaces: ""`, Scope{Namespaces: []string{""}}, ErrMalformedEntry},
		{`users: "system:admin"`, Scope{Users: []string{"system:admin"}}, ErrNeverGoverned},
		{`users: "system:serviceaccount:shop:agent"`, Scope{Users: []string{"system:serviceaccount:shop:agent"}}, ErrNeverGoverned},
		{`users: ""`, Scope{Users: []string{""}}, ErrMalformedEntry},
		{`users: "a\nb"`, Scope{Users: []string{"a\nb"}}, ErrMalformedEntry},
		{`users: "\xff"`, Scope{Users: []string{"\xff"}}, ErrMalformedEntry},
		{`exempt: stepbeyond-canary/canary`, Scope{Exempt: []ServiceAccount{canaryAccount}}, ErrNeverExempt},
		{`exempt: "shop"/"a:b"`, Scope{Exempt: []ServiceAccount{{"shop", "a:b"}}}, ErrMalformedEntry},
		{`10000 namespaces, 0 users and 0 exempt ServiceAccounts need 2 shards of 80000 bytes, at most 10000 entries in 8 shards`,
			Scope{Namespaces: manyNamespaces(10_000)}, ErrScopeTooLarge}, // and the canary's
		{`9700 namespaces, 0 users and 0 exempt ServiceAccounts need 9 shards`, Scope{Namespaces: longNamespaces(9_700)}, ErrScopeTooLarge},
	} {
		_, err := tc.scope.Expressions()
		if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.entry) {
			t.Errorf("want %q to name %s, got %v", tc.want, tc.entry, err)
		}
	}
}

func manyNamespaces(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("team-%05d", i)
	}
	return list
}

// person is an authenticated caller.
func person(name string, extra map[string][]string) user.Info {
	return &user.DefaultInfo{Name: name, Extra: extra}
}

var bound = map[string][]string{credentialID: {"JTI=1"}}

// Evaluated by the API server's own code.
// Proves K-2.
func TestScopeGoverns(t *testing.T) {
	scope := mustExpression(t, Scope{
		Namespaces: append([]string{"shop"}, manyNamespaces(3000)...), // well within one expression
		Users:      []string{"oidc:agent"},
		Exempt:     []ServiceAccount{{"shop", "exempt"}},
	})
	governed := matcher("governed", scope)
	for _, tc := range []struct {
		name string
		user user.Info
		want bool
	}{
		{"a ServiceAccount of a governed namespace", person("system:serviceaccount:shop:agent", bound), true},
		{"the last of many namespaces", person("system:serviceaccount:team-02999:agent", bound), true},
		{"the canary", person(canaryAccount.Username(), bound), true},
		{"a ServiceAccount without a credential ID", person("system:serviceaccount:shop:agent", nil), true},
		{"a listed user", person("oidc:agent", nil), true},
		{"an exempt ServiceAccount with its own credential", person("system:serviceaccount:shop:exempt", bound), false},
		{"an exempt ServiceAccount that is impersonated", person("system:serviceaccount:shop:exempt", map[string][]string{"other": {"x"}}), true},
		{"an exempt ServiceAccount without extra", person("system:serviceaccount:shop:exempt", nil), true},
		{"a ServiceAccount of another namespace", person("system:serviceaccount:other:agent", bound), false},
		{"a ServiceAccount that has a governed namespace as its name", person("system:serviceaccount:other:shop", bound), false},
		{"a person", person("ben@acme.example", nil), false},
		{"a person whose name begins like a listed one", person("oidc:agent-2", nil), false},
		{"a node", person("system:node:worker-3", nil), false},
		{"the API server", person("system:apiserver", nil), false},
		{"an anonymous caller", person("system:anonymous", nil), false},
		{"a controller", person("system:serviceaccount:kube-system:job-controller", bound), false},
		{"the manager", person("system:serviceaccount:stepbeyond-system:stepbeyond-manager", bound), false},
		{"a caller without a name", person("", nil), false},
		{"no caller", nil, false},
		{"a ServiceAccount without parts", person("system:serviceaccount:", nil), false},
		{"a ServiceAccount with empty parts", person("system:serviceaccount::", nil), false},
		{"a name of colons", person(":::::", nil), false},
	} {
		for kind, attributes := range reviews(tc.user) {
			got := governed.Match(context.Background(), attributes, nil, nil)
			if got.Error != nil || got.Matches != tc.want {
				t.Errorf("%s, %s: want %v, got %v, %v", tc.name, kind, tc.want, got.Matches, got.Error)
			}
		}
	}
}

// An entry whose condition errs would fail the write of somebody who is not governed, or lose a stamp.
// Proves K-2.
func TestConditionsNeverErr(t *testing.T) {
	objects, err := Webhooks(Scope{Namespaces: []string{"shop"}}, Endpoint{URL: "https://127.0.0.1:1", CABundle: []byte("x")}, managerUsername)
	if err != nil {
		t.Fatal(err)
	}
	var conditions []admissionregistration.MatchConditionApplyConfiguration
	for _, w := range objects[0].(*admissionregistration.MutatingWebhookConfigurationApplyConfiguration).Webhooks {
		conditions = append(conditions, w.MatchConditions...)
	}
	for _, w := range objects[1].(*admissionregistration.ValidatingWebhookConfigurationApplyConfiguration).Webhooks {
		conditions = append(conditions, w.MatchConditions...)
	}
	if len(conditions) != 6 {
		t.Errorf("want 6 conditions, got %d", len(conditions))
	}
	for _, c := range conditions {
		m := matcher(*c.Name, *c.Expression)
		for _, caller := range []user.Info{nil, person("", nil), person("ben", nil), person("system:serviceaccount:shop:agent", bound), person(managerUsername, bound)} {
			for kind, attributes := range reviews(caller) {
				if got := m.Match(context.Background(), attributes, nil, nil); got.Error != nil {
					t.Errorf("%s, %s, %v: %v", *c.Name, kind, caller, got.Error)
				}
			}
		}
	}
}

func matcher(name, expression string) matchconditions.Matcher {
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	return matchconditions.NewMatcher(compiler.CompileCondition(
		[]cel.ExpressionAccessor{&matchconditions.MatchCondition{Name: name, Expression: expression}},
		cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions), nil, "webhook", "validating", name)
}

// reviews are requests of every shape that admission shows.
func reviews(caller user.Info) map[string]*admission.VersionedAttributes {
	bare := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Odd"}}
	odd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Odd", "spec": "text", "metadata": map[string]any{"name": "x"}}}
	null := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Odd", "spec": nil, "metadata": map[string]any{"name": "x"}}}
	all := map[string]*admission.VersionedAttributes{}
	add := func(name string, kind schema.GroupVersionKind, resource, subresource string, operation admission.Operation, object, old runtime.Object) {
		attributes := admission.NewAttributesRecord(object, old, kind, "", "", kind.GroupVersion().WithResource(resource), subresource, operation, &metav1.CreateOptions{}, false, caller)
		all[name] = &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(old)}
	}
	core, apps, example := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, schema.GroupVersion{Group: "example.com", Version: "v1"}
	add("create of an empty ConfigMap", core.WithKind("ConfigMap"), "configmaps", "", admission.Create, &corev1.ConfigMap{}, nil)
	add("update of an empty ConfigMap", core.WithKind("ConfigMap"), "configmaps", "", admission.Update, &corev1.ConfigMap{}, &corev1.ConfigMap{})
	add("delete", core.WithKind("ConfigMap"), "configmaps", "", admission.Delete, nil, &corev1.ConfigMap{})
	add("delete without an old object", core.WithKind("ConfigMap"), "configmaps", "", admission.Delete, nil, nil)
	add("connect", core.WithKind("PodExecOptions"), "pods", "exec", admission.Connect, &corev1.PodExecOptions{}, nil)
	add("update of an empty Pod", core.WithKind("Pod"), "pods", "", admission.Update, &corev1.Pod{}, &corev1.Pod{})
	add("update of a ReplicationController without a template", core.WithKind("ReplicationController"), "replicationcontrollers", "", admission.Update,
		&corev1.ReplicationController{}, &corev1.ReplicationController{})
	add("update of an empty Deployment", apps.WithKind("Deployment"), "deployments", "", admission.Update, &appsv1.Deployment{}, &appsv1.Deployment{})
	add("update of a Scale", schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, "deployments", "scale", admission.Update,
		&autoscalingv1.Scale{}, &autoscalingv1.Scale{})
	add("update of an object with nothing", example.WithKind("Odd"), "odds", "", admission.Update, bare, odd)
	add("update of an object whose spec is text", example.WithKind("Odd"), "odds", "", admission.Update, odd, null)
	add("update of an object whose spec is null", example.WithKind("Odd"), "odds", "", admission.Update, null, bare)
	return all
}

func mustExpression(t *testing.T, s Scope) string {
	t.Helper()
	expressions, err := s.Expressions()
	if err != nil {
		t.Fatal(err)
	}
	if len(expressions) != 1 {
		t.Fatalf("want one expression, got %d", len(expressions))
	}
	return expressions[0]
}
