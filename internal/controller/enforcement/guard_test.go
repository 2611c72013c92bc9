package enforcement_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	admissionregistration "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/controller/enforcement"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
)

// repairsTold are the events about repairs so far.
func (o *operator) repairsTold() []string {
	var told []string
	for len(o.events.Events) > 0 {
		if event := <-o.events.Events; strings.Contains(event, enforcement.EventEnforcementRepaired) {
			told = append(told, event)
		}
	}
	return told
}

// Proves M-2, F-1.
func TestANewLeaderTellsWhatHappenedWhileNobodyWatched(t *testing.T) {
	create(t, profile(), clusterPolicy("default"), namespace("unwatched", "standard"))
	tests := []struct {
		name   string
		object *unstructured.Unstructured
		edit   edit
		want   []string
	}{
		{"nothing", validating(), func(*testing.T, *unstructured.Unstructured) {}, nil},
		{"an object was deleted", floorBinding(), deleted, []string{"was missing"}},
		{"a check was made void", floorPolicy(), patched(`[{"op": "replace", "path": "/spec/validations", "value": [{"expression": "true"}]}]`),
			[]string{"spec.validations by intruder"}},
		{"an entry was taken out, which leaves no owner behind", validating(), patched(`[{"op": "remove", "path": "/webhooks/0"}]`),
			[]string{"webhooks[enforce.stepbeyond.dev]"}},
		{"a condition was added", validating(), applied(`{"webhooks": [{"name": "enforce.stepbeyond.dev", "matchConditions": [{"name": "never", "expression": "false"}]}]}`),
			[]string{"matchConditions[never] by intruder"}},
		{"another version of the manager wrote another floor", floorPolicy(), byAnotherVersion, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			loaded(t).step(t)
			object := guarded(tt.object.GetKind(), tt.object.GetName())
			read(t, object)
			before := decides(t, object)
			tt.edit(t, guarded(tt.object.GetKind(), tt.object.GetName()))
			o := loaded(t)
			o.step(t)
			told := o.repairsTold()
			if len(told) != len(tt.want) || len(told) > 0 && !containsAll(told[0], tt.want) {
				t.Errorf("told %q, want %q", told, tt.want)
			}
			read(t, object)
			if diff := cmp.Diff(before, decides(t, object)); diff != "" {
				t.Errorf("%s is not as it was (-want +got):\n%s", object.GetName(), diff)
			}
		})
	}
}

// byAnotherVersion writes the floor as a manager with another baseline does.
func byAnotherVersion(t *testing.T, _ *unstructured.Unstructured) {
	t.Helper()
	floor, err := admission.Floor(admission.Scope{Namespaces: []string{"unwatched"}}, nil, "v0")
	if err != nil {
		t.Fatal(err)
	}
	guard, err := admission.NewGuard(k8s, k8s)
	if err == nil {
		_, err = guard.Put(t.Context(), floor)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Proves M-2.
func TestADefinitionOfANewerReleaseIsNotTakenBack(t *testing.T) {
	revision := func(n string) string {
		return `{"op": "add", "path": "/metadata/annotations/stepbeyond.dev~1schema-revision", "value": "` + n + `"}`
	}
	rules, field := `{"op": "remove", "path": "`+schema+`/x-kubernetes-validations"}`, `{"op": "remove", "path": "`+schema+`/properties/request"}`
	tests := []struct {
		name, patch string
		// want is the outcome of a look at it.
		want string
	}{
		{"of this release and whole", `[]`, "left"},
		{"of this release without its rules", `[` + rules + `]`, "repaired"},
		{"newer with other rules", `[` + revision("2") + `,` + rules + `]`, "left"},
		{"newer without a field", `[` + revision("2") + `,` + field + `]`, "refused"},
		{"newer and not served", `[` + revision("2") + `, {"op": "replace", "path": "/spec/versions/0/served", "value": false}]`, "refused"},
		{"older", `[` + revision("0") + `,` + rules + `]`, "repaired"},
		{"with a revision that is no number", `[` + revision("x") + `,` + rules + `]`, "repaired"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			guard, err := admission.NewGuard(k8s, k8s)
			if err != nil {
				t.Fatal(err)
			}
			object := definition("permissiongrants")
			ref := admission.Guarded{GroupVersionKind: object.GroupVersionKind(), Name: object.GetName()}
			if _, err := guard.Restore(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
			defer func() {
				patched(`[`+revision("1")+`]`)(t, definition("permissiongrants"))
				if _, err := guard.Restore(t.Context(), ref); err != nil {
					t.Error(err)
				}
			}()
			patched(tt.patch)(t, object)
			repair, err := guard.Restore(t.Context(), ref)
			got := "left"
			switch {
			case errors.Is(err, admission.ErrNewerDefinition):
				got = "refused"
			case err != nil:
				t.Fatal(err)
			case repair != nil:
				got = "repaired"
			}
			if got != tt.want {
				t.Errorf("%s (%v, %v), want %s", got, repair, err, tt.want)
			}
		})
	}
}

// Proves K-6, F-1.
func TestTheLossOfAllPoliciesLetsNobodyGo(t *testing.T) {
	r := run(t, 0)
	create(t, profile(), clusterPolicy("default"), namespace("kept", "standard"))
	r.awaitProven(t, time.Time{})
	eventually(t, "the namespace is enforced", func(context.Context) (bool, error) { return r.state.EnforcesServiceAccount("kept", "agent"), nil })
	object := definition("clusteragentpolicies")
	read(t, object)
	before, counted, start := decides(t, object), r.repairs(object), time.Now()
	deleted(t, object)
	r.awaitRepaired(t, object, before, counted)
	t.Logf("repaired after %s", time.Since(start).Round(time.Millisecond))
	if got := r.told(t, object); !strings.Contains(got, "every object of the kind with it") {
		t.Errorf("event %q does not say that the policies are gone", got)
	}
	r.awaitProven(t, time.Now())
	if !r.state.EnforcesServiceAccount("kept", "agent") || !slices.Contains(inForce(t).Namespaces, "kept") {
		t.Error("the namespace was let go with the policies")
	}
	eventually(t, "the definition is served again", func(context.Context) (bool, error) {
		return k8s.Create(t.Context(), clusterPolicy("default")) == nil, nil
	})
	t.Cleanup(func() { _ = k8s.Delete(context.WithoutCancel(t.Context()), clusterPolicy("default")) })
	eventually(t, "the new policy gets a status", func(context.Context) (bool, error) { return len(conditions(t, "default")) > 0, nil })
}

// Proves M-2, F-1.
func TestADefinitionThatIsMissingAtTheStartIsCreatedServedAndToldOf(t *testing.T) {
	object := definition("agentsessions")
	deleted(t, object)
	eventually(t, "the definition is gone", func(ctx context.Context) (bool, error) {
		err := k8s.Get(ctx, client.ObjectKeyFromObject(object), guarded(object.GetKind(), object.GetName()))
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	guard, err := admission.NewGuard(k8s, k8s)
	if err != nil {
		t.Fatal(err)
	}
	ref := admission.Guarded{GroupVersionKind: object.GroupVersionKind(), Name: object.GetName()}
	created, err := guard.CreateDefinitions(t.Context())
	if err != nil || !slices.Equal(created, []admission.Guarded{ref}) {
		t.Fatalf("created %v, %v, want %v", created, err, ref)
	}
	if err := k8s.List(t.Context(), &v1alpha1.AgentSessionList{}); err != nil {
		t.Errorf("sessions are not served: %v", err)
	}
	for _, want := range []bool{true, false} {
		repair, err := guard.Restore(t.Context(), ref)
		if err != nil || (repair != nil && repair.Missing) != want {
			t.Errorf("told of %v, %v, want it once", repair, err)
		}
	}
}

// Proves M-2, F-1.
func TestARefusedObjectKeepsNothingFromTheOthers(t *testing.T) {
	guard, err := admission.NewGuard(k8s, k8s)
	if err != nil {
		t.Fatal(err)
	}
	floor, err := admission.Floor(admission.Scope{}, nil, "v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := guard.Put(t.Context(), floor); err != nil {
		t.Fatal(err)
	}
	rotated := endpoint
	rotated.PathPrefix = "/" + strings.Repeat("cd", 32)
	objects, err := admission.Webhooks(admission.Scope{Namespaces: []string{"new"}}, rotated, manager)
	if err != nil {
		t.Fatal(err)
	}
	// What has no spec is refused.
	refused := func(name string) admission.Object { return admissionregistration.ValidatingAdmissionPolicy(name) }
	objects = append(append([]admission.Object{refused("refused-first")}, objects...), refused("refused-last"))
	_, err = guard.Put(t.Context(), objects)
	if err == nil || !containsAll(err.Error(), []string{"refused-first", "refused-last"}) ||
		strings.Index(err.Error(), "refused-first") > strings.Index(err.Error(), "refused-last") {
		t.Errorf("error %v, want both that were refused, in their order", err)
	}
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		object := guarded(kind, admission.WebhookConfiguration)
		read(t, object)
		webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
		if len(webhooks) == 0 || !strings.Contains(fmt.Sprint(webhooks), rotated.PathPrefix) {
			t.Errorf("%s calls %v, want %s", kind, webhooks, rotated.PathPrefix)
		}
	}
	if policy := floorPolicy(); !slices.Contains(guard.Guarded(), admission.Guarded{GroupVersionKind: policy.GroupVersionKind(), Name: policy.GetName()}) {
		t.Errorf("%s is not guarded any more while the new objects are not in force", policy.GetName())
	}
}

// Proves M-2, F-1.
func TestPutEndsWhereTheAPIServerDoesNotAnswer(t *testing.T) {
	silent := errors.New("no answer")
	asked := 0
	guard, err := admission.NewGuard(interceptor.NewClient(k8s, interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			asked++
			return silent
		},
	}), k8s)
	if err != nil {
		t.Fatal(err)
	}
	objects := []admission.Object{
		admissionregistration.ValidatingAdmissionPolicy("unwritten-first"), admissionregistration.ValidatingAdmissionPolicy("unwritten-last"),
	}
	if _, err := guard.Put(t.Context(), objects); !errors.Is(err, silent) || asked != 1 {
		t.Errorf("asked %d times, error %v, want once", asked, err)
	}
}

func TestWhatIsNotWantedAnyMoreIsNotGuarded(t *testing.T) {
	guard, err := admission.NewGuard(k8s, k8s)
	if err != nil {
		t.Fatal(err)
	}
	floor, err := admission.Floor(admission.Scope{}, nil, "v1")
	if err != nil {
		t.Fatal(err)
	}
	policy := floorPolicy()
	for _, objects := range [][]admission.Object{floor, floor[:2]} {
		if _, err := guard.Put(t.Context(), objects); err != nil {
			t.Fatal(err)
		}
	}
	deleted(t, policy)
	repair, err := guard.Restore(t.Context(), admission.Guarded{GroupVersionKind: policy.GroupVersionKind(), Name: policy.GetName()})
	if repair != nil || err != nil {
		t.Errorf("%v, %v: nobody wants %s any more", repair, err, policy.GetName())
	}
	if _, err := guard.Put(t.Context(), floor); err != nil {
		t.Error(err)
	}
}
