package enforcement_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/controller/enforcement"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
)

// intruder is the field manager of whoever changes what is not theirs.
const intruder = client.FieldOwner("intruder")

// guarded is an object of the enforcement as a test finds it.
func guarded(kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("admissionregistration.k8s.io/v1")
	if kind == "CustomResourceDefinition" {
		object.SetAPIVersion("apiextensions.k8s.io/v1")
	}
	object.SetKind(kind)
	object.SetName(name)
	return object
}

func validating() *unstructured.Unstructured {
	return guarded("ValidatingWebhookConfiguration", admission.WebhookConfiguration)
}

func mutating() *unstructured.Unstructured {
	return guarded("MutatingWebhookConfiguration", admission.WebhookConfiguration)
}

func floorPolicy() *unstructured.Unstructured {
	return guarded("ValidatingAdmissionPolicy", admission.FloorPods)
}

func floorBinding() *unstructured.Unstructured {
	return guarded("ValidatingAdmissionPolicyBinding", admission.FloorPods)
}

func definition(plural string) *unstructured.Unstructured {
	return guarded("CustomResourceDefinition", plural+".stepbeyond.dev")
}

// decides is what the object decides, for comparing: all but metadata and status.
func decides(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	parts := maps.Clone(object.Object)
	delete(parts, "metadata")
	delete(parts, "status")
	data, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

type edit func(*testing.T, *unstructured.Unstructured)

func deleted(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if err := k8s.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// patched is a JSON patch, as kubectl sends one.
func patched(patch string) edit {
	return func(t *testing.T, object *unstructured.Unstructured) {
		t.Helper()
		if err := k8s.Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, []byte(patch)), intruder); err != nil {
			t.Fatal(err)
		}
	}
}

// applied is what another field manager applies: it joins what is there.
func applied(fields string) edit {
	return func(t *testing.T, object *unstructured.Unstructured) {
		t.Helper()
		whole := guarded(object.GetKind(), object.GetName())
		if err := json.Unmarshal([]byte(fields), &whole.Object); err != nil {
			t.Fatal(err)
		}
		if err := k8s.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(whole), intruder); err != nil {
			t.Fatal(err)
		}
	}
}

// manyConditions are as many as an entry may have, so that one more makes it invalid.
func manyConditions() string {
	var conditions []string
	for i := range 64 {
		conditions = append(conditions, fmt.Sprintf(`{"name": "c%d", "expression": "true"}`, i))
	}
	return `[{"op": "replace", "path": "/webhooks/0/matchConditions", "value": [` + strings.Join(conditions, ",") + `]}]`
}

const (
	schema     = "/spec/versions/0/schema/openAPIV3Schema/properties/spec"
	ownedByJob = `[{"op": "add", "path": "/metadata/ownerReferences", "value":
		[{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "7d5f6c9e-0000-4000-8000-000000000000"}]}]`
	enforceEntry = "webhooks[enforce.stepbeyond.dev]"
)

var edits = []struct {
	name   string
	object *unstructured.Unstructured
	edit   edit
	// want are words of the event.
	want []string
}{
	{"the validating configuration is deleted", validating(), deleted, []string{"was missing"}},
	{"the mutating configuration is deleted", mutating(), deleted, []string{"was missing"}},
	{"a policy of the floor is deleted", floorPolicy(), deleted, []string{"was missing"}},
	{"a binding of the floor is deleted", floorBinding(), deleted, []string{"was missing"}},
	{"the rules are emptied", validating(), patched(`[{"op": "replace", "path": "/webhooks/0/rules", "value": []}]`),
		[]string{enforceEntry + ".rules"}},
	{"the rules name one group only", validating(), patched(`[{"op": "replace", "path": "/webhooks/0/rules/0/apiGroups", "value": ["apps"]}]`),
		[]string{enforceEntry + ".rules by intruder"}},
	{"the namespaces are narrowed", validating(), patched(`[{"op": "replace", "path": "/webhooks/0/namespaceSelector", "value": {"matchLabels": {"a": "b"}}}]`),
		[]string{enforceEntry + ".namespaceSelector", "by intruder"}},
	{"the failure policy becomes Ignore", validating(), patched(`[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]`),
		[]string{enforceEntry + ".failurePolicy by intruder"}},
	{"the URL is another", validating(), patched(`[{"op": "replace", "path": "/webhooks/0/clientConfig/url", "value": "https://127.0.0.1:1/x"}]`),
		[]string{enforceEntry + ".clientConfig.url by intruder"}},
	{"the bundle of authorities is another", validating(), patched(`[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]`),
		[]string{enforceEntry + ".clientConfig.caBundle"}},
	{"another field manager applies a condition", validating(), applied(`{"webhooks": [{"name": "enforce.stepbeyond.dev", "matchConditions": [{"name": "never", "expression": "false"}]}]}`),
		[]string{enforceEntry + ".matchConditions[never] by intruder"}},
	{"the conditions are so many that an apply would be invalid", validating(), patched(manyConditions()),
		[]string{enforceEntry + ".matchConditions[c0] by intruder", "and 60 more"}},
	{"the enforcing entry is taken out", validating(), patched(`[{"op": "remove", "path": "/webhooks/0"}]`), []string{enforceEntry}},
	{"a foreign entry joins", mutating(), applied(`{"webhooks": [{"name": "other.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
		"failurePolicy": "Ignore", "clientConfig": {"url": "https://127.0.0.1:1/x"}}]}`), []string{"webhooks[other.example.com] by intruder"}},
	{"an owner is set, so that it will be collected", validating(), patched(ownedByJob), []string{"metadata.ownerReferences by intruder"}},
	{"the checks of a policy let everything pass", floorPolicy(), patched(`[{"op": "replace", "path": "/spec/validations", "value": [{"expression": "true"}]}]`),
		[]string{"spec.validations by intruder"}},
	{"a policy leaves resources out", floorPolicy(), patched(`[{"op": "add", "path": "/spec/matchConstraints/excludeResourceRules", "value":
		[{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]}]`), []string{"spec.matchConstraints.excludeResourceRules by intruder"}},
	{"a policy that applies to some namespaces only", floorPolicy(), patched(`[{"op": "add", "path": "/spec/matchConstraints/namespaceSelector", "value":
		{"matchLabels": {"a": "b"}}}]`), []string{"spec.matchConstraints.namespaceSelector", "by intruder"}},
	{"another field manager applies a condition to a policy", floorPolicy(), applied(`{"spec": {"matchConditions": [{"name": "never", "expression": "false"}]}}`),
		[]string{"spec.matchConditions[never] by intruder"}},
	{"a policy that is ignored when it fails", floorPolicy(), patched(`[{"op": "replace", "path": "/spec/failurePolicy", "value": "Ignore"}]`),
		[]string{"spec.failurePolicy by intruder"}},
	{"a binding that only warns", floorBinding(), patched(`[{"op": "replace", "path": "/spec/validationActions", "value": ["Warn"]}]`),
		[]string{"spec.validationActions"}},
	{"a binding with a parameter", floorBinding(), patched(`[{"op": "add", "path": "/spec/paramRef", "value":
		{"name": "x", "parameterNotFoundAction": "Allow"}}]`), []string{"spec.paramRef by intruder"}},
	{"a binding that leaves resources out", floorBinding(), patched(`[{"op": "add", "path": "/spec/matchResources/excludeResourceRules", "value":
		[{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]}]`), []string{"spec.matchResources.excludeResourceRules by intruder"}},
	{"the binding's namespaces are narrowed", floorBinding(), patched(`[{"op": "replace", "path": "/spec/matchResources/namespaceSelector", "value":
		{"matchLabels": {"a": "b"}}}]`), []string{"spec.matchResources.namespaceSelector", "by intruder"}},
	{"a definition loses its rules", definition("permissiongrants"), patched(`[{"op": "remove", "path": "` + schema + `/x-kubernetes-validations"}]`),
		[]string{"x-kubernetes-validations"}},
	{"a definition keeps what it does not know", definition("agentsessions"), patched(`[{"op": "add", "path": "` + schema + `/x-kubernetes-preserve-unknown-fields", "value": true}]`),
		[]string{"x-kubernetes-preserve-unknown-fields"}},
	{"a definition loses a field", definition("agentpolicies"), patched(`[{"op": "remove", "path": "` + schema + `/properties/rules"}]`),
		[]string{"properties.rules"}},
	{"a version is not served any more", definition("permissiongrants"), patched(`[{"op": "replace", "path": "/spec/versions/0/served", "value": false}]`),
		[]string{"spec.versions[v1alpha1].served"}},
	{"a definition is deleted, and its objects with it", definition("permissiongrants"), deleted, []string{"every object of the kind with it"}},
}

// Proves M-2, F-1, K-2, K-6.
func TestWhatAnAdministratorChangesIsNoticedRepairedToldAndProvenAgain(t *testing.T) {
	r := run(t, 200*time.Millisecond)
	create(t, profile(), clusterPolicy("default"), namespace("watched", "standard"))
	r.awaitProven(t, time.Time{})
	for _, tt := range edits {
		t.Run(tt.name, func(t *testing.T) {
			object := guarded(tt.object.GetKind(), tt.object.GetName())
			read(t, object)
			before, counted := decides(t, object), r.repairs(object)
			start := time.Now()
			tt.edit(t, object)
			r.awaitRepaired(t, object, before, counted)
			t.Logf("repaired after %s", time.Since(start).Round(time.Millisecond))
			if got := r.told(t, object); !containsAll(got, tt.want) {
				t.Errorf("event %q, want one with %q", got, tt.want)
			}
			r.awaitProven(t, start)
			t.Logf("proven again after %s", time.Since(start).Round(time.Millisecond))
			if object.GetKind() != "CustomResourceDefinition" {
				saysRepaired(t, object)
			}
		})
	}
}

// saysRepaired checks the condition that people read.
func saysRepaired(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	want := object.GetKind() + " " + object.GetName() + " was "
	eventually(t, "EnforcementReady says what was repaired", func(ctx context.Context) (bool, error) {
		var policy v1alpha1.ClusterAgentPolicy
		if err := k8s.Get(ctx, client.ObjectKey{Name: "default"}, &policy); err != nil {
			return false, err
		}
		ready := meta.FindStatusCondition(policy.Status.Conditions, string(v1alpha1.ConditionEnforcementReady))
		return ready != nil && ready.Status == metav1.ConditionTrue && strings.Contains(ready.Message, want), nil
	})
}

// Proves M-2.
func TestWhoInsistsIsAnsweredSlowerAndNamed(t *testing.T) {
	r := run(t, 0)
	create(t, profile(), clusterPolicy("default"), namespace("insisted", "standard"))
	r.awaitProven(t, time.Time{})
	ignore := patched(`[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]`)
	var times []string
	for range 6 {
		object := validating()
		read(t, object)
		before, counted, start := decides(t, object), r.repairs(object), time.Now()
		ignore(t, object)
		r.awaitRepaired(t, object, before, counted)
		times = append(times, time.Since(start).Round(time.Millisecond).String())
	}
	t.Logf("repaired after %s", strings.Join(times, ", "))
	var notes []string
	for range 6 {
		notes = append(notes, r.told(t, validating()))
	}
	if slow := slices.IndexFunc(notes, func(note string) bool { return strings.Contains(note, "again and again, so the next repair waits 3s") }); slow != 5 {
		t.Errorf("event %d says that the next repair waits, want the last: %q", slow, notes)
	}
}

// Proves M-2.
func TestWhatIsNotTheManagersIsLeftAlone(t *testing.T) {
	r := run(t, 0)
	create(t, profile(), clusterPolicy("default"), namespace("labeled", "standard"))
	r.awaitProven(t, time.Time{})
	object := validating()
	patched(`[{"op": "add", "path": "/metadata/labels/team", "value": "platform"}, {"op": "add", "path": "/metadata/annotations/tracking", "value": "x"}]`)(t, object)
	ignore := patched(`[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]`)
	read(t, object)
	before, counted := decides(t, object), r.repairs(object)
	ignore(t, object)
	r.awaitRepaired(t, object, before, counted)
	if got := r.told(t, object); !strings.Contains(got, "failurePolicy") {
		t.Errorf("the first event is %q; a label is nothing to repair", got)
	}
	read(t, object)
	if object.GetLabels()["team"] != "platform" || object.GetAnnotations()["tracking"] != "x" {
		t.Errorf("labels %v and annotations %v lost what others wrote", object.GetLabels(), object.GetAnnotations())
	}
}

func read(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if err := k8s.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (r *running) repairs(object *unstructured.Unstructured) float64 {
	return testutil.ToFloat64(r.metrics.Repairs.WithLabelValues(object.GetKind(), object.GetName()))
}

// awaitRepaired waits until the object decides what it did before, and the repair is counted.
func (r *running) awaitRepaired(t *testing.T, object *unstructured.Unstructured, before string, counted float64) {
	t.Helper()
	eventually(t, "the object is as it was", func(ctx context.Context) (bool, error) {
		live := guarded(object.GetKind(), object.GetName())
		err := k8s.Get(ctx, client.ObjectKeyFromObject(live), live)
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		return err == nil && live.GetDeletionTimestamp() == nil && len(live.GetOwnerReferences()) == 0 && decides(t, live) == before, nil
	})
	eventually(t, "the repair is counted", func(context.Context) (bool, error) { return r.repairs(object) == counted+1, nil })
}

// awaitProven waits for a proof that began after a moment.
func (r *running) awaitProven(t *testing.T, after time.Time) {
	t.Helper()
	eventually(t, "enforcement is proven", func(context.Context) (bool, error) {
		at, proven := r.state.Proven()
		return proven && at.After(after), nil
	})
}

// told is the next event about a repair of the object.
func (r *running) told(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	about := object.GetKind() + " " + object.GetName() + " was "
	for {
		select {
		case event := <-r.events.Events:
			if strings.HasPrefix(event, "Warning "+enforcement.EventEnforcementRepaired) && strings.Contains(event, about) {
				return event
			}
		case <-time.After(time.Minute):
			t.Fatalf("no event about %s", about)
		}
	}
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}
