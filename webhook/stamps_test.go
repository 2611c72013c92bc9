package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatchapply "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/internal/stamp"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

const (
	writing = "checkout/fix-latency-9c1f0"
	another = "checkout/other-1a2b3"
)

var stamper = stamp.Stamper{Key: []byte(strings.Repeat("k", 32))}

// stampBy is the stamp of an object of checkout that the session created.
func stampBy(session, group, resource, name string) string {
	return stamper.CreatedBy(session, stamp.Subject{Group: group, Resource: resource, Namespace: "checkout", Name: name})
}

// object decodes JSON in which QUOTED words stand for stamps.
func object(t *testing.T, text string, replace ...string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	var decoded map[string]any
	if err := json.Unmarshal([]byte(strings.NewReplacer(replace...).Replace(text)), &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// stampedAs is the object with the patches that the mutating entry answers.
func stampedAs(t *testing.T, w *stamps, before map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	operations, err := json.Marshal(w.patches(before))
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatchapply.DecodePatch(operations)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = patch.Apply(text); err != nil {
		t.Fatalf("%s: %v", operations, err)
	}
	return object(t, string(text))
}

// Proves B-2.
func TestStampsAreWhatTheServerWouldWrite(t *testing.T) {
	const (
		plain = `{"metadata":{"name":"web","namespace":"checkout"}}`
		ours  = `{"metadata":{"name":"web","namespace":"checkout","annotations":{"stepbeyond.dev/created-by":"OURS"}}}`
		other = `{"metadata":{"name":"web","namespace":"checkout","annotations":{"stepbeyond.dev/created-by":"OTHER"}}}`
		kept  = `{"metadata":{"name":"web","namespace":"checkout","annotations":{"note":"a","stepbeyond.dev/created-by":"OTHER"}}}`

		template  = `{"metadata":{"name":"web","namespace":"checkout"},"spec":{"replicas":1,"template":{"spec":{"x":1}}}}`
		scaled    = `{"metadata":{"name":"web","namespace":"checkout"},"spec":{"replicas":2,"template":{"spec":{"x":1}}}}`
		labelled  = `{"metadata":{"name":"web","namespace":"checkout"},"spec":{"replicas":1,"template":{"metadata":{"labels":{"a":"b"}},"spec":{"x":1}}}}`
		labelMark = `{"metadata":{"name":"web","namespace":"checkout"},"spec":{"replicas":1,"template":{"metadata":{"annotations":{"stepbeyond.dev/template-writer":"WRITING"},"labels":{"a":"b"}},"spec":{"x":1}}}}`
		marked    = `{"metadata":{"name":"web","namespace":"checkout"},"spec":{"replicas":1,"template":{"metadata":{"annotations":{"stepbeyond.dev/template-writer":"ANOTHER"}},"spec":{"x":1}}}}`
		claimed   = `{"metadata":{"name":"web","namespace":"checkout"},"spec":{"replicas":1,"template":{"metadata":{"annotations":{"stepbeyond.dev/template-writer":"WRITING"}},"spec":{"x":1}}}}`
		born      = `{"metadata":{"annotations":{"stepbeyond.dev/created-by":"OURS"},"name":"web","namespace":"checkout"},"spec":{"replicas":1,"template":{"metadata":{"annotations":{"stepbeyond.dev/template-writer":"WRITING"}},"spec":{"x":1}}}}`

		pod         = `{"metadata":{"name":"web","namespace":"checkout"},"spec":{"x":1}}`
		podLabelled = `{"metadata":{"name":"web","namespace":"checkout","labels":{"a":"b"}},"spec":{"x":1}}`
		podChanged  = `{"metadata":{"name":"web","namespace":"checkout"},"spec":{"x":2}}`
		podMarked   = `{"metadata":{"name":"web","namespace":"checkout","annotations":{"stepbeyond.dev/template-writer":"WRITING"}},"spec":{"x":2}}`
		custom      = `{"metadata":{"annotations":{"stepbeyond.dev/created-by":"OURS"},"name":"web","namespace":"checkout"},"spec":{"replicas":1,"template":{"spec":{"x":1}}}}`
	)
	tests := []struct {
		name            string
		group, resource string
		kind            string
		old, new        string
		want            string // the object as it is stamped
	}{
		{"a created object carries the session", "", "configmaps", "ConfigMap", "", plain, ours},
		{"a created workload carries the session in its template too", "apps", "deployments", "Deployment", "", template, born},
		{"a forged stamp of another session is replaced on create", "", "configmaps", "ConfigMap", "", other, ours},
		{"a created object with its stamps stays as it is", "apps", "deployments", "Deployment", "", born, born},
		{"an update that drops the stamp gets it back", "", "configmaps", "ConfigMap", other, plain, other},
		{"an update that changes the stamp gets the old one back", "", "configmaps", "ConfigMap", other, ours, other},
		{"an update that adds a stamp to a person's object loses it", "", "configmaps", "ConfigMap", plain, ours, `{"metadata":{"name":"web","namespace":"checkout","annotations":{}}}`},
		{"an update that keeps another session's stamp stays as it is", "", "configmaps", "ConfigMap", other, kept, kept},
		{"a changed template is marked with who changed it", "apps", "deployments", "Deployment", template, labelled, labelMark},
		{"a scaled workload is not marked", "apps", "deployments", "Deployment", template, scaled, scaled},
		{"a lost mark is no change, and comes back", "apps", "deployments", "Deployment", marked, template, marked},
		{"a mark that is claimed without a change is taken back", "apps", "deployments", "Deployment", marked, claimed, marked},
		{"a label on a pod is no change of a template", "", "pods", "Pod", pod, podLabelled, podLabelled},
		{"a changed pod is marked", "", "pods", "Pod", pod, podChanged, podMarked},
		{"a custom resource with the name of a built-in kind has no template", "example.com", "statefulsets", "StatefulSet", "", template, custom},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			words := []string{
				"OURS", stampBy(writing, tt.group, tt.resource, "web"), "OTHER", stampBy(another, tt.group, tt.resource, "web"), "WRITING", writing, "ANOTHER", another,
			}
			request := kube.Request{
				Operation: "CREATE", Group: tt.group, Version: "v1", Resource: tt.resource, Kind: tt.kind, Namespace: "checkout", Name: "web",
				Object: object(t, tt.new, words...), OldObject: object(t, tt.old, words...),
			}
			if request.OldObject != nil {
				request.Operation = "UPDATE"
			}
			w := stampsOf(stamper, &request, writing)
			want, got := object(t, tt.want, words...), stampedAs(t, &w, request.Object)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("stamped object (-want +got):\n%s", diff)
			}
			if !w.present(got) {
				t.Error("the enforcing entry does not take what the stamping entry wrote")
			}
			if before := w.present(request.Object); before != cmp.Equal(want, request.Object) {
				t.Errorf("the unstamped object was taken: %t", before)
			}
		})
	}
}

// In the mutating phase a generated name is not there yet; in the validating phase it is.
func TestAStampHoldsForAGeneratedName(t *testing.T) {
	request := kube.Request{
		Operation: "CREATE", Group: "batch", Version: "v1", Resource: "jobs", Kind: "Job", Namespace: "checkout",
		Object: object(t, `{"metadata":{"generateName":"smoke-"},"spec":{"template":{"spec":{}}}}`),
	}
	w := stampsOf(stamper, &request, writing)
	request.Object = stampedAs(t, &w, request.Object)
	metadata := request.Object["metadata"].(map[string]any)
	for name, want := range map[string]bool{"smoke-x7k2p": true, "production": false} {
		metadata["name"] = name
		if w := stampsOf(stamper, &request, writing); w.present(request.Object) != want {
			t.Errorf("named %s: taken %t, want %t", name, !want, want)
		}
	}
	metadata["name"] = "smoke-x7k2p"
	if w := stampsOf(stamper, &request, another); w.present(request.Object) {
		t.Error("another session's create with this stamp was taken")
	}
}

func TestAnObjectWithoutMetadataIsStamped(t *testing.T) {
	for resource, text := range map[string]string{"pods": `{"spec":{}}`, "configmaps": `{}`, "podtemplates": `{"template":{"spec":{}}}`} {
		request := kube.Request{Operation: "CREATE", Version: "v1", Resource: resource, Namespace: "checkout", Name: "web", Object: object(t, text)}
		w := stampsOf(stamper, &request, writing)
		if got := stampedAs(t, &w, request.Object); !w.present(got) {
			t.Errorf("%s: %v is not stamped", resource, got)
		}
	}
}
