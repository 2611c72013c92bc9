package integration_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/coverage"
)

const deputies = "deputies"

// custom decodes an object of a kind that the API server learns here.
func custom(t *testing.T, apiVersion, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal(fmt.Appendf(nil, "spec: %s", spec), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetNamespace(deputies)
	object.SetName(name)
	return object
}

// vouch has the platform say of whole groups that nothing in them can do harm.
func vouch(t *testing.T, groups ...string) {
	t.Helper()
	policy := &v1alpha1.ClusterAgentPolicy{ObjectMeta: metav1.ObjectMeta{Name: "vouching"}}
	policy.Spec.BaselineVersion = "v1"
	policy.Spec.Governed.NamespaceSelector.MatchLabels = map[string]string{"acme.example/governed-by": "vouching"} // no namespace
	entry := v1alpha1.CatalogueEntry{Name: "trusted", Detail: "The platform vouches for all of it."}
	entry.Match.Kubernetes = []v1alpha1.KubernetesMatch{{Groups: groups, Resources: []string{"*"}, Verbs: []v1alpha1.Verb{"create", "update", "delete"}}}
	entry.Facts.Present = []v1alpha1.Fact{"Reversible"}
	entry.Facts.Absent = []v1alpha1.Fact{
		"External", "Sends", "Cost", "Credentials", "Security", "Destructive", "Unbounded", "EscalatesAuthority", "ExfiltratesSecret",
		"PersistsSensitiveMemory", "MaterialAssumption", "Ambiguous",
	}
	policy.Spec.Catalogue = []v1alpha1.CatalogueEntry{entry}
	if err := petra.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := petra.Delete(context.Background(), policy); err != nil {
			t.Error(err)
		}
	})
}

// Proves C-2, C-4: what other controllers make of an object counts, whatever the platform says of its kind.
func TestDeputiesAreJudgedByWhatTheyWouldDo(t *testing.T) {
	const ns = deputies
	h := at(t, ns)
	if err := plane.Apply(t.Context(), coverage.ThirdParty()...); err != nil {
		t.Fatal(err)
	}
	rollout := func(name, pod string) *unstructured.Unstructured {
		return custom(t, "argoproj.io/v1alpha1", "Rollout", name, "{replicas: 1, template: {metadata: {labels: {app: web}}, spec: "+pod+"}}")
	}
	instance := func(name, spec string) *unstructured.Unstructured {
		return custom(t, "database.acme.example/v1alpha1", "PostgreSQLInstance", name, spec)
	}
	application := custom(t, "argoproj.io/v1alpha1", "Application", "people", "{project: default}")
	const ordinary = `{containers: [{name: web, image: "web:1"}]}`
	const privileged = `{containers: [{name: web, image: "web:1", securityContext: {privileged: true}}]}`
	asks := pending("PermissionPending")
	must(t, application, rollout("people", `{serviceAccountName: people, containers: [{name: web, image: "web:1", envFrom: [{secretRef: {name: db}}]}]}`))
	if got := h.agent.try(t, create(rollout("own", ordinary))); got.outcome != asks {
		t.Fatalf("while nobody vouches for its kind: %+v %s", got.outcome, got.message)
	}
	vouch(t, "argoproj.io", "tekton.dev", "database.acme.example")
	eventually(t, func() error {
		if got := h.agent.try(t, create(rollout("own", ordinary), client.DryRunAll)); got.outcome != autoPath {
			return fmt.Errorf("an ordinary Rollout: %+v %s", got.outcome, got.message)
		}
		return nil
	})
	for _, object := range []client.Object{rollout("own", ordinary), instance("own", "{size: small}")} {
		if got := h.agent.try(t, create(object)); got.outcome != autoPath {
			t.Fatalf("what the platform vouches for: %+v %s", got.outcome, got.message)
		}
	}
	own := rollout("own", ordinary)
	path := "/apis/argoproj.io/v1alpha1/namespaces/" + ns + "/rollouts/"
	pipeline := func(step string) client.Object {
		return custom(t, "tekton.dev/v1", "TaskRun", "run", "{taskSpec: {steps: [{name: a, image: \"a:1\", command: [make], "+step+"}]}}")
	}
	tests := map[string]struct {
		request func(context.Context, *actor) error
		want    outcome
	}{
		"another image in its own Rollout":                      {merge(own, `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`), autoPath},
		"a scale of its own Rollout":                            {call{"PATCH", path + "own/scale", asMerge, `{"spec":{"replicas":3}}`}.send(false), autoPath},
		"another ServiceAccount":                                {create(rollout("new", `{serviceAccountName: admin, containers: [{name: web, image: "web:1"}]}`)), forbiddenPath},
		"a privileged container":                                {create(rollout("new", privileged)), forbiddenPath},
		"an added capability":                                   {create(rollout("new", `{containers: [{name: web, image: "web:1", securityContext: {capabilities: {add: [NET_ADMIN]}}}]}`)), forbiddenPath},
		"the node's network":                                    {create(rollout("new", `{hostNetwork: true, containers: [{name: web, image: "web:1"}]}`)), forbiddenPath},
		"a path of the node":                                    {create(rollout("new", `{volumes: [{name: v, hostPath: {path: /}}], containers: [{name: web, image: "web:1"}]}`)), forbiddenPath},
		"a Secret":                                              {create(rollout("new", `{containers: [{name: web, image: "web:1", envFrom: [{secretRef: {name: db}}]}]}`)), asks},
		"its own Rollout made privileged by merge patch":        {merge(own, `{"spec":{"template":{"spec":`+string(mustJSON(t, privileged))+`}}}`), forbiddenPath},
		"its own Rollout made privileged by JSON patch":         {call{"PATCH", path + "own", "application/json-patch+json", `[{"op":"add","path":"/spec/template/spec/hostPID","value":true}]`}.send(false), forbiddenPath},
		"its own Rollout made privileged by apply":              {call{"PATCH", path + "own", asApply, string(mustYAML(t, rollout("own", privileged)))}.send(false), forbiddenPath},
		"an apply to a missing Rollout with a privileged pod":   {call{"PATCH", path + "applied", asApply, string(mustYAML(t, rollout("applied", privileged)))}.send(false), forbiddenPath},
		"another image where people's identity runs":            {merge(rollout("people", ordinary), `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"mine:1"}]}}}}`), forbiddenPath},
		"an Argo CD Application":                                {create(custom(t, "argoproj.io/v1alpha1", "Application", "new", "{project: default}")), asks},
		"a change of an Argo CD Application":                    {merge(application, `{"spec":{"project":"other"}}`), asks},
		"the deletion of an Argo CD Application":                {remove(application), asks},
		"an ordinary run of a pipeline":                         {create(pipeline("args: [all]")), asks},
		"a privileged step of a pipeline":                       {create(pipeline("securityContext: {privileged: true}")), forbiddenPath},
		"an instance with an object for its controller to make": {create(instance("new", "{initObject: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}")), asks},
		"an instance with a RoleBinding for it to make":         {create(instance("new", "{initObject: {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}}}")), forbiddenPath},
		"an instance that runs under another ServiceAccount":    {create(instance("of-admin", "{serviceAccountName: admin}")), asks},
		"a key of Step Beyond for its pods":                     {create(instance("new", `{podAnnotations: {stepbeyond.dev/template-writer: a/b}}`)), forbiddenPath},
		"an instance under the agent's own ServiceAccount":      {create(instance("of-agent", "{size: large, serviceAccountName: agent}")), asks},
		"a Rollout under the agent's own ServiceAccount":        {create(rollout("new", `{serviceAccountName: agent, containers: [{name: web, image: "web:1"}]}`)), asks},
		"an ordinary instance":                                  {create(instance("another", "{size: large}")), autoPath},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) {
			tt := tests[name]
			got := h.agent.try(t, tt.request)
			if diff := cmp.Diff(tt.want, got.outcome); diff != "" {
				t.Errorf("outcome (-want +got):\n%s%s", diff, got.message)
			}
		})
	}
	t.Run("a person does all of it", func(t *testing.T) {
		for name, object := range map[string]client.Object{
			"a privileged Rollout": rollout("persons", privileged), "an Application": custom(t, "argoproj.io/v1alpha1", "Application", "persons", "{}"),
			"a privileged step": pipeline("securityContext: {privileged: true}"),
		} {
			if err := admin.Create(t.Context(), object, client.DryRunAll); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func mustJSON(t *testing.T, text string) []byte {
	t.Helper()
	plain, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func mustYAML(t *testing.T, object *unstructured.Unstructured) []byte {
	t.Helper()
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What a label or a selector is enough for: to take a Service's traffic, and to be taken or to take by a controller.
//
// Proves C-2.
func TestDeputiesByLabelAndSelectorAreAsked(t *testing.T) {
	const ns = deputies
	h := at(t, ns)
	labelled := func(name string, labels map[string]string) *corev1.Pod {
		pod := agentPod(ns, name, "default", nil)
		pod.Labels = labels
		return pod
	}
	orphan := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orphan", Labels: map[string]string{"app": "orphaned"}}}
	orphan.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "orphaned"}}
	orphan.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "orphaned"}}, Spec: podSpec("default")}
	orphan.Spec.Replicas = new(int32(0))
	served := service(ns, "served")
	served.Spec.Selector = map[string]string{"app": "served"}
	must(t, orphan, served, labelled("standing-0", map[string]string{"set": "standing"}))
	own := service(ns, "own")
	own.Spec.Selector = map[string]string{"app": "mine"}
	tests := []struct {
		name   string
		object client.Object
		want   outcome
	}{
		{"its own Service", own, autoPath},
		{"a Deployment that its own Service serves", deployment(ns, "mine"), autoPath},
		{"a Deployment that somebody's Service would serve", deployment(ns, "served"), pending("PermissionPending")},
		{"a Pod that somebody's Service would serve", labelled("served-0", map[string]string{"app": "served"}), pending("PermissionPending")},
		{"a Pod that somebody's ReplicaSet would take", labelled("taken", map[string]string{"app": "orphaned"}), pending("PermissionPending")},
		{"a Deployment that would take somebody's ReplicaSet", deployment(ns, "orphaned"), pending("PermissionPending")},
		{"a StatefulSet that would take somebody's Pod", statefulSet(ns, "standing", 0), pending("PermissionPending")},
		{"a StatefulSet that takes nothing", statefulSet(ns, "alone", 1), autoPath},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := h.agent.try(t, create(tt.object))
			if diff := cmp.Diff(tt.want, got.outcome); diff != "" {
				t.Errorf("outcome (-want +got):\n%s%s", diff, got.message)
			}
		})
	}
	t.Run("its own Pod with labels of somebody's Service", func(t *testing.T) {
		plain := labelled("plain", map[string]string{"app": "plain"})
		if got := h.agent.try(t, create(plain)); got.outcome != autoPath {
			t.Fatalf("%+v %s", got.outcome, got.message)
		}
		if got := h.agent.try(t, merge(plain, `{"metadata":{"labels":{"app":"served"}}}`)); got.outcome != pending("PermissionPending") {
			t.Errorf("%+v %s", got.outcome, got.message)
		}
	})
	if err := ben.Create(t.Context(), deployment(ns, "served"), client.DryRunAll); err != nil {
		t.Errorf("a person's: %v", err)
	}
}
