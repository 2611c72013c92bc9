package enforcement

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Proves K-2 and K-9.
func TestAScopeOfFiveThousandNamespaces(t *testing.T) {
	c, r := startCluster(t), startReviewer(t)
	cfg := Configuration{Scope: shopScope, Endpoint: r.endpoint, Manager: managerUsername, Catalogue: baselineCatalogue(t), Version: "v1"}
	canary, err := NewCanary(c.Admin())
	if err != nil {
		t.Fatal(err)
	}
	put := func(s Scope) {
		t.Helper()
		cfg.Scope = s
		start, used := time.Now(), cpuSeconds(t, c)
		if err := errors.Join(c.put(t, cfg), Limit(t.Context(), c.admin, s)); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d namespaces: written in %s, for which the API server computed %.1f s", len(s.Namespaces), time.Since(start), cpuSeconds(t, c)-used)
		if _, err := canary.Await(t.Context(), 2*time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	put(shopScope)
	small := generations(t, c)
	put(largeScope)
	t.Run("each object was written once, and there are no others than before", func(t *testing.T) {
		want := maps.Clone(small)
		for name := range want {
			if !strings.HasPrefix(name, "ValidatingAdmissionPolicyBinding/") {
				want[name]++
			}
		}
		if diff := cmp.Diff(want, generations(t, c)); diff != "" {
			t.Errorf("generations (-want +got):\n%s", diff)
		}
	})
	large := generations(t, c)
	put(largeScope)
	t.Run("writing it again changes no object", func(t *testing.T) {
		if diff := cmp.Diff(large, generations(t, c)); diff != "" {
			t.Errorf("generations (-before +after):\n%s", diff)
		}
	})
	t.Run("every object reads back as the scope", func(t *testing.T) { allReadBack(t, c, largeScope) })
	t.Run("identities of every shard are governed, and those between them are not", func(t *testing.T) { shardsAreEnforced(t, c) })
	t.Run("a scope that does not fit changes nothing", func(t *testing.T) {
		before := generations(t, c)
		tooLarge := cfg
		tooLarge.Scope.Namespaces = manyNamespaces(MaxEntries)
		if err := c.put(t, tooLarge); !errors.Is(err, ErrScopeTooLarge) {
			t.Errorf("want ErrScopeTooLarge, got %v", err)
		}
		if diff := cmp.Diff(before, generations(t, c)); diff != "" {
			t.Errorf("generations (-before +after):\n%s", diff)
		}
	})
	put(shopScope)
	t.Run("a smaller scope leaves no shard behind", func(t *testing.T) {
		allReadBack(t, c, shopScope)
		left := largeScope.Namespaces[2500]
		if diff := settles(t, []string{"", ""}, func() []string { return refusers(t, account(t, c, left, "agent"), left) }); diff != "" {
			t.Errorf("an identity that left the scope (-want +got):\n%s", diff)
		}
		if got := answerOf(newConfigMap("shop").send(t.Context(), t, c.agent)); got.Enforcer != EntryEnforce {
			t.Errorf("an identity that stayed: %+v", got)
		}
	})
}

func allReadBack(t *testing.T, c *cluster, want Scope) {
	t.Helper()
	read := func(name string, conditions []admissionregistrationv1.MatchCondition) {
		t.Helper()
		expressions := GovernedExpressions(conditions)
		if len(expressions) != len(conditions) {
			t.Errorf("%s: %d of %d conditions hold the scope", name, len(expressions), len(conditions))
		}
		got, err := ReadBack(expressions...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want.normal(), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	var configurations admissionregistrationv1.ValidatingWebhookConfigurationList
	var policies admissionregistrationv1.ValidatingAdmissionPolicyList
	for _, list := range []client.ObjectList{&configurations, &policies} {
		if err := c.admin.List(t.Context(), list, client.MatchingLabels(labels())); err != nil {
			t.Fatal(err)
		}
	}
	if len(configurations.Items) != 1 || len(policies.Items) != 4 {
		t.Fatalf("%d configurations and %d policies", len(configurations.Items), len(policies.Items))
	}
	read(EntryEnforce, configurations.Items[0].Webhooks[0].MatchConditions)
	for _, policy := range policies.Items {
		read(policy.Name, policy.Spec.MatchConditions)
	}
}

// shardsAreEnforced asks as the first, a middle and the last namespace of each shard, and as one that is not listed and
// sorts right behind it.
func shardsAreEnforced(t *testing.T, c *cluster) {
	parts, err := largeScope.shards()
	if err != nil || len(parts) < 4 {
		t.Fatalf("%d shards, %v", len(parts), err)
	}
	for i, part := range parts {
		listed := slices.DeleteFunc(slices.Clone(part.namespaces), func(ns string) bool { return ns == CanaryNamespace })
		for _, namespace := range []string{listed[0], listed[len(listed)/2], listed[len(listed)-1]} {
			agent := account(t, c, namespace, "agent")
			if diff := settles(t, []string{EntryEnforce, FloorAuthority}, func() []string { return refusers(t, agent, namespace) }); diff != "" {
				t.Errorf("shard %d, %s (-want +got):\n%s", i+1, namespace, diff)
			}
		}
		neighbor := listed[len(listed)/2][:62]
		if diff := cmp.Diff([]string{"", ""}, refusers(t, account(t, c, neighbor, "agent"), neighbor)); diff != "" {
			t.Errorf("shard %d, %s is not listed (-want +got):\n%s", i+1, neighbor, diff)
		}
	}
	for _, exempt := range largeScope.Exempt {
		if diff := cmp.Diff([]string{"", ""}, refusers(t, account(t, c, exempt.Namespace, exempt.Name), exempt.Namespace)); diff != "" {
			t.Errorf("exempt %s (-want +got):\n%s", exempt.Username(), diff)
		}
	}
	for _, user := range largeScope.Users {
		cfg, err := c.User(user)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{EntryEnforce, FloorAuthority}, refusers(t, cfg, "search")); diff != "" {
			t.Errorf("user %s (-want +got):\n%s", user, diff)
		}
	}
	if diff := cmp.Diff([]string{"", ""}, refusers(t, c.bystander, longNamespaces(1)[0])); diff != "" {
		t.Errorf("a person in a governed namespace (-want +got):\n%s", diff)
	}
	if errs := conditionErrors(t, c); len(errs) > 0 {
		t.Errorf("match conditions erred: %v", errs)
	}
}

// refusers are who refuses a plain write and an escalation; empty for nobody.
func refusers(t *testing.T, caller *rest.Config, namespace string) []string {
	t.Helper()
	return []string{
		answerOf(newConfigMap(namespace).send(t.Context(), t, caller)).Enforcer,
		answerOf(newRoleBinding(namespace).send(t.Context(), t, caller)).Enforcer,
	}
}

// settles asks until the API server acts on what was written, and returns how the last answer differs.
func settles(t *testing.T, want []string, ask func() []string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(awaitInterval) {
		diff := cmp.Diff(want, ask())
		if diff == "" || time.Now().After(deadline) {
			return diff
		}
	}
}

func newConfigMap(namespace string) request {
	return post("/api/v1/namespaces/"+namespace+"/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")
}

func newRoleBinding(namespace string) request {
	return post("/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/rolebindings", "{apiVersion: rbac.authorization.k8s.io/v1, "+
		"kind: RoleBinding, metadata: {name: x}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}}")
}

// account holds a token of a ServiceAccount, which it makes with its namespace when they do not exist.
func account(t *testing.T, c *cluster, namespace, name string) *rest.Config {
	t.Helper()
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
	} {
		if err := c.admin.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	token, err := c.ServiceAccountToken(t.Context(), namespace, name, "")
	if err != nil {
		t.Fatal(err)
	}
	return c.Token(token)
}

// cpuSeconds that the API server has used since its start.
func cpuSeconds(t *testing.T, c *cluster) float64 {
	t.Helper()
	return metric(t, c, "process_cpu_seconds_total ")
}

// metric is the value of the API server's series that begins so; 0 when there is none.
func metric(t *testing.T, c *cluster, series string) float64 {
	t.Helper()
	text, err := kubernetes.NewForConfigOrDie(c.Admin()).Discovery().RESTClient().Get().AbsPath("/metrics").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, series) {
			value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
			if err != nil {
				t.Fatal(err)
			}
			return value
		}
	}
	return 0
}
