package integration_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// escape is a request that would free an agent of what governs it, and who may send the very same.
type escape struct {
	call
	may func() *actor
}

// escapesOf are the ways in which an agent could write its own law.
func (h *home) escapesOf(t *testing.T, asked *v1alpha1.PermissionGrant) map[string]escape {
	t.Helper()
	ns := h.namespace
	group := "/apis/stepbeyond.dev/v1alpha1/"
	own, system := group+"namespaces/"+ns+"/", group+"namespaces/"+env.SystemNamespace+"/"
	namespace, account := "/api/v1/namespaces/"+ns, `{"namespace":"`+ns+`","name":"agent","reason":"mine"}`
	platform, root, approver := func() *actor { return petra }, func() *actor { return admin }, func() *actor { return carla }
	text := func(spec string) string { return string(mustJSON(t, spec)) }
	answered := text(fmt.Sprintf(`[{op: add, path: /spec/decisions/-, value: {verdict: Approve, shownDigest: %q}}]`, asked.Spec.Request.Digest))
	wide := session(ns, "agent", asked.CreationTimestamp.Add(1000000000000))
	wide.APIVersion, wide.Kind, wide.Name = "stepbeyond.dev/v1alpha1", "AgentSession", "mine"
	const jsonPatch = "application/json-patch+json"
	return map[string]escape{
		"a policy of its own": {call{"POST", group + "clusteragentpolicies", asJSON, text(`
{apiVersion: stepbeyond.dev/v1alpha1, kind: ClusterAgentPolicy, metadata: {name: mine}, spec: {baselineVersion: v1, governed: {namespaceSelector: {matchLabels: {a: b}}}}}`)}, platform},
		"an exemption":                            {call{"PATCH", group + "clusteragentpolicies/default", jsonPatch, `[{"op":"add","path":"/spec/governed/exemptServiceAccounts/-","value":` + account + `}]`}, platform},
		"the release of its namespace":            {call{"PATCH", group + "clusteragentpolicies/default", asMerge, `{"spec":{"governed":{"released":[{"namespace":"` + ns + `","reason":"mine"}]}}}`}, platform},
		"the verb to approve for ServiceAccounts": {call{"PATCH", group + "clusteragentpolicies/default", jsonPatch, `[{"op":"add","path":"/spec/serviceAccountApprovers/-","value":{"namespace":"` + ns + `","name":"agent"}}]`}, platform},
		"a catalogue that vouches for everything": {call{"PATCH", group + "clusteragentpolicies/default", asMerge, text(`
{spec: {catalogue: [{name: mine, match: {kubernetes: [{groups: ["*"], resources: ["*"], verbs: [delete]}]}, facts: {absent: [Destructive, Credentials]}}]}}`)}, platform},
		"the policy by server-side apply": {call{"PATCH", group + "clusteragentpolicies/mine", asApply, `
{apiVersion: stepbeyond.dev/v1alpha1, kind: ClusterAgentPolicy, metadata: {name: mine}, spec: {baselineVersion: v1, governed: {namespaceSelector: {matchLabels: {a: b}}}}}`}, platform},
		"the end of the policy":   {call{method: "DELETE", path: group + "clusteragentpolicies/default"}, platform},
		"the end of all policies": {call{method: "DELETE", path: group + "clusteragentpolicies"}, root},
		"the policy's status":     {call{"PATCH", group + "clusteragentpolicies/default/status", asMerge, `{"status":{"observedGeneration":1}}`}, root},
		"another profile":         {call{"PATCH", system + "agentpolicies/standard", asMerge, `{"spec":{"approvals":{"decideWithinSeconds":60}}}`}, platform},
		"a policy of its namespace": {call{"POST", own + "agentpolicies", asJSON, text(`
{apiVersion: stepbeyond.dev/v1alpha1, kind: AgentPolicy, metadata: {name: default}, spec: {modelTier: large}}`)}, platform},
		"a session of its own":            {call{"POST", own + "agentsessions", asJSON, string(rawOf(t, wide).Raw)}, platform},
		"a longer session":                {call{"PATCH", own + "agentsessions/" + h.session.Name, asMerge, `{"metadata":{"labels":{"team":"mine"}}}`}, platform},
		"the status of its session":       {call{"PATCH", own + "agentsessions/" + h.session.Name + "/status", asMerge, `{"status":{"epoch":7}}`}, root},
		"the end of its session":          {call{method: "DELETE", path: own + "agentsessions/" + h.session.Name}, platform},
		"its own answer":                  {call{"PATCH", own + "permissiongrants/" + asked.Name, jsonPatch, answered}, approver},
		"the status of its question":      {call{"PATCH", own + "permissiongrants/" + asked.Name + "/status", asMerge, `{"status":{"state":"Approved"}}`}, root},
		"the end of its question":         {call{method: "DELETE", path: own + "permissiongrants/" + asked.Name}, root},
		"a namespace that nobody governs": {call{"PATCH", namespace, asMerge, `{"metadata":{"labels":{"stepbeyond.dev/profile":null}}}`}, root},
		"another profile's label":         {call{"PATCH", namespace, asMerge, `{"metadata":{"labels":{"stepbeyond.dev/profile":"changing"}}}`}, root},
		"a label of Step Beyond":          {call{"PATCH", namespace, asMerge, `{"metadata":{"labels":{"stepbeyond.dev/mine":"a"}}}`}, root},
		"an annotation of Step Beyond":    {call{"PATCH", namespace, asMerge, `{"metadata":{"annotations":{"stepbeyond.dev/mine":"a"}}}`}, root},
		"a new namespace with a profile":  {call{"POST", "/api/v1/namespaces", asJSON, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"mine","labels":{"stepbeyond.dev/profile":"changing"}}}`}, root},
		"the webhook":                     {call{method: "DELETE", path: "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/stepbeyond"}, root},
		"the stamping webhook":            {call{method: "DELETE", path: "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/stepbeyond"}, root},
		"the definition of grants":        {call{method: "DELETE", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/permissiongrants.stepbeyond.dev"}, root},
		"the token of an approver":        {call{"POST", "/api/v1/namespaces/ci/serviceaccounts/release-bot/token", asJSON, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`}, root},
		"the key of the stamps":           {call{"PATCH", "/api/v1/namespaces/" + env.SystemNamespace + "/secrets/stepbeyond-keys", asApply, `{apiVersion: v1, kind: Secret, metadata: {name: stepbeyond-keys}}`}, root},
		"the approver's role": {call{"POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/" + ns + "/rolebindings", asJSON, text(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: mine}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: stepbeyond-approver}, subjects: [{kind: ServiceAccount, name: agent, namespace: ` + ns + `}]}`)}, root},
	}
}

// confined is a governed namespace whose agent has one role in the whole cluster, and no more.
func confined(t *testing.T, namespace string, role string, rules ...rbacv1.PolicyRule) *home {
	t.Helper()
	if len(rules) > 0 {
		must(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: rules})
	}
	objects, err := homeObjects(namespace, "standard")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() == "ClusterRoleBinding" {
			object.Object["roleRef"].(map[string]any)["name"] = role
		}
	}
	if err := plane.Apply(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}
	return at(t, namespace)
}

// law is everything that decides what the agents of a namespace may do, as text.
func law(t *testing.T, namespace string) string {
	t.Helper()
	keep := func(list client.ObjectList, in ...client.ListOption) {
		if err := admin.List(t.Context(), list, in...); err != nil {
			t.Fatal(err)
		}
	}
	var policies v1alpha1.ClusterAgentPolicyList
	var profiles v1alpha1.AgentPolicyList
	var sessions v1alpha1.AgentSessionList
	var grants v1alpha1.PermissionGrantList
	keep(&policies)
	keep(&profiles)
	keep(&sessions, client.InNamespace(namespace))
	keep(&grants, client.InNamespace(namespace))
	text := strings.Builder{}
	add := func(object client.Object, spec any) {
		fmt.Fprintf(&text, "%s/%s %s %v\n", object.GetNamespace(), object.GetName(), rawOf(t, spec).Raw, object.GetLabels())
	}
	for i := range policies.Items {
		add(&policies.Items[i], policies.Items[i].Spec)
	}
	for i := range profiles.Items {
		add(&profiles.Items[i], profiles.Items[i].Spec)
	}
	for i := range sessions.Items {
		add(&sessions.Items[i], []any{sessions.Items[i].Spec, sessions.Items[i].Status.State, sessions.Items[i].Status.Epoch})
	}
	for i := range grants.Items {
		add(&grants.Items[i], []any{grants.Items[i].Spec, grants.Items[i].Status.State == v1alpha1.GrantApproved})
	}
	var home corev1.Namespace
	if err := admin.Get(t.Context(), client.ObjectKey{Name: namespace}, &home); err != nil {
		t.Fatal(err)
	}
	add(&home, home.Annotations)
	return text.String()
}

// Proves B-1, C-3, G-3, K-1.
func TestEscapesOfAnAgentThatWritesItsOwnLawGainNothing(t *testing.T) {
	all := rbacv1.PolicyRule{APIGroups: []string{"stepbeyond.dev"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	configMaps := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}
	for name, enter := range map[string]func(*testing.T) *home{
		"with cluster-admin":    func(t *testing.T) *home { return at(t, "escapes") },
		"with edit":             func(t *testing.T) *home { return confined(t, "escapes-edit", "edit") },
		"with all of our group": func(t *testing.T) *home { return confined(t, "escapes-group", "all-of-stepbeyond", all, configMaps) },
	} {
		t.Run(name, func(t *testing.T) {
			h := enter(t)
			target := configMap(h.namespace, "target")
			must(t, target)
			asked := h.ask(t, remove(target))
			before := law(t, h.namespace)
			escapes := h.escapesOf(t, asked)
			refusedBy := map[string]int{}
			for _, escape := range slices.Sorted(maps.Keys(escapes)) {
				t.Run(escape, func(t *testing.T) {
					got := h.agent.try(t, escapes[escape].send(false))
					if got.Code != 403 {
						t.Errorf("%+v %s", got.outcome, got.message)
					}
					if got.By == "" && (name == "with cluster-admin" || !strings.Contains(got.message, "cannot ")) {
						t.Errorf("neither Step Beyond nor RBAC refused: %+v %s", got.outcome, got.message)
					}
					refusedBy[got.By]++
					if err := escapes[escape].send(true)(t.Context(), escapes[escape].may()); err != nil {
						t.Errorf("whom it belongs to: %v", err)
					}
				})
			}
			t.Logf("refused by: %v", refusedBy)
			if diff := cmp.Diff(before, law(t, h.namespace)); diff != "" {
				t.Errorf("what governs it (-before +after):\n%s", diff)
			}
			if got := h.agent.try(t, remove(target)); got.outcome != pending("PermissionPending") || got.grant != asked.Name {
				t.Errorf("what it may not do: %+v %s", got.outcome, got.message)
			}
			h.decide(t, carla, asked, v1alpha1.VerdictApprove, nil)
			if got := h.agent.try(t, remove(target)); got.outcome != allowed("ASK", "Granted") {
				t.Errorf("what a person allowed: %+v %s", got.outcome, got.message)
			}
		})
	}
}

// as is the agent's request in somebody else's name, which only RBAC can keep it from.
func (h *home) as(t *testing.T, username string, request func(context.Context, *actor) error) func(context.Context, *actor) error {
	t.Helper()
	cfg := plane.Token(h.agent.config.BearerToken)
	cfg.Impersonate.UserName = username
	a, err := newActor(h.agent.username, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, _ *actor) error { return request(ctx, a) }
}

// Proves K-1, G-3: an impersonated request carries no credential, so it speaks for no governed or exempt identity and
// answers no question.
func TestEscapesByImpersonationGainNothing(t *testing.T) {
	const ns = "escapes"
	h := at(t, ns)
	target := configMap(ns, "not-impersonated")
	must(t, target)
	asked := h.ask(t, remove(target))
	const account = "system:serviceaccount:"
	for name, tt := range map[string]struct {
		as      string
		request func(context.Context, *actor) error
		by      string
	}{
		"itself":                   {account + ns + ":agent", create(configMap(ns, "a")), "stepbeyond-floor-self"},
		"another governed account": {account + "paths:agent", create(configMap("paths", "a")), "stepbeyond-floor-self"},
		"an exempt account":        {account + "unnoticed:controller", create(configMap("unnoticed", "a")), "stepbeyond-floor-self"},
		"a governed user":          {robotName, create(configMap(ns, "a")), "stepbeyond-floor-self"},
		"an approver with its answer": {carlaName, func(ctx context.Context, a *actor) error {
			return a.Patch(ctx, asked.DeepCopy(), answer(asked, v1alpha1.VerdictApprove, nil))
		}, ""},
		"an approving ServiceAccount": {account + "ci:release-bot", func(ctx context.Context, a *actor) error {
			return a.Patch(ctx, asked.DeepCopy(), answer(asked, v1alpha1.VerdictApprove, nil))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.agent.try(t, h.as(t, tt.as, tt.request))
			if got.Code != 403 || tt.by != "" && got.By != tt.by || !strings.Contains(got.message, "credential-id") {
				t.Errorf("%+v %s", got.outcome, got.message)
			}
		})
	}
	if state := h.grant(t, asked.Name).Status.State; state == v1alpha1.GrantApproved {
		t.Errorf("the question is %s", state)
	}
	t.Run("in their own name they do it", func(t *testing.T) {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "unnoticed", Name: "controller"}}
		if err := admin.Create(t.Context(), account); err != nil && !apierrors.IsAlreadyExists(err) { // another test uses it too
			t.Fatal(err)
		}
		exempt, err := accountActor(t.Context(), "unnoticed", "controller", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := exempt.Create(t.Context(), configMap("unnoticed", "a"), client.DryRunAll); err != nil {
			t.Errorf("the exempt account: %v", err)
		}
		h.decide(t, releaseBot, asked, v1alpha1.VerdictApprove, nil)
		if got := h.agent.try(t, remove(target)); got.outcome != allowed("ASK", "Granted") {
			t.Errorf("what a listed ServiceAccount allowed: %+v %s", got.outcome, got.message)
		}
	})
}
