package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// stampsOf are the two stamps of a Deployment, as they are stored.
type stamps struct{ CreatedBy, TemplateWriter string }

func stampsOf(t *testing.T, namespace, name string) stamps {
	t.Helper()
	var d appsv1.Deployment
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &d); err != nil {
		t.Fatal(err)
	}
	return stamps{d.Annotations[v1alpha1.AnnotationCreatedBy], d.Spec.Template.Annotations[v1alpha1.AnnotationTemplateWriter]}
}

// manifestOf is the text of a Deployment as somebody would write it.
func manifestOf(t *testing.T, d *appsv1.Deployment, change func(*appsv1.Deployment)) string {
	t.Helper()
	d = d.DeepCopy()
	d.APIVersion, d.Kind = "apps/v1", "Deployment"
	change(d)
	text, err := yaml.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func mark(annotations *map[string]string, key, value string) {
	if *annotations == nil {
		*annotations = map[string]string{}
	}
	(*annotations)[key] = value
}

// Proves B-4, C-4.
func TestAnAgentKeepsItsStampsHoweverItWrites(t *testing.T) {
	const ns = "stamps"
	h := at(t, ns)
	ctx := t.Context()
	d := deployment(ns, "own")
	asIs := manifestOf(t, d, func(*appsv1.Deployment) {})
	forged := manifestOf(t, d, func(d *appsv1.Deployment) {
		mark(&d.Annotations, v1alpha1.AnnotationCreatedBy, "v1:stamps/somebody:00")
		mark(&d.Spec.Template.Annotations, v1alpha1.AnnotationTemplateWriter, "stamps/somebody")
	})
	if out, err := h.agent.kubectl(ctx, t, forged, "apply", "-f", "-"); err != nil {
		t.Fatalf("apply with forged stamps: %v: %s", err, out)
	}
	want := stampsOf(t, ns, "own")
	if creator := "v1:" + h.session.String() + ":"; !strings.HasPrefix(want.CreatedBy, creator) || want.TemplateWriter != h.session.String() {
		t.Fatalf("stamps %+v, want those of %s, whatever the manifest says", want, h.session)
	}
	image := manifestOf(t, d, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "registry.acme.example/main:2" })
	patch := func(path string, value any) func() error {
		return func() error {
			operation := map[string]any{"op": "replace", "path": path, "value": value}
			if value == nil {
				operation = map[string]any{"op": "remove", "path": path}
			}
			return h.agent.Patch(ctx, d.DeepCopy(), patchOf(operation))
		}
	}
	kubectl := func(manifest string, args ...string) func() error {
		return func() error {
			out, err := h.agent.kubectl(ctx, t, manifest, append(args, "-f", "-")...)
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		}
	}
	const createdBy = "/metadata/annotations/stepbeyond.dev~1created-by"
	const writer = "/spec/template/metadata/annotations/stepbeyond.dev~1template-writer"
	for name, request := range map[string]func() error{
		"apply of its own object":              kubectl(asIs, "apply"),
		"apply with forged stamps":             kubectl(forged, "apply"),
		"apply of another image":               kubectl(image, "apply"),
		"server-side apply":                    kubectl(asIs, "apply", "--server-side", "--force-conflicts"),
		"server-side apply with forged stamps": kubectl(forged, "apply", "--server-side", "--force-conflicts"),
		"replace":                              kubectl(asIs, "replace"),
		"replace with forged stamps":           kubectl(forged, "replace"),
		"a patch that removes created-by":      patch(createdBy, nil),
		"a patch that changes created-by":      patch(createdBy, "v1:stamps/somebody:00"),
		"a patch that removes template-writer": patch(writer, nil),
		"a patch that changes template-writer": patch(writer, "stamps/somebody"),
	} {
		t.Run(name, func(t *testing.T) {
			if err := request(); err != nil {
				t.Errorf("refused: %v", err)
			}
			if diff := cmp.Diff(want, stampsOf(t, ns, "own")); diff != "" {
				t.Errorf("stamps (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("kubectl create with forged stamps", func(t *testing.T) {
		if err := kubectl(strings.ReplaceAll(forged, "name: own", "name: created"), "create")(); err != nil {
			t.Fatal(err)
		}
		got := stampsOf(t, ns, "created")
		if !strings.HasPrefix(got.CreatedBy, "v1:"+h.session.String()+":") || got.CreatedBy == want.CreatedBy || got.TemplateWriter != want.TemplateWriter {
			t.Errorf("stamps %+v, want its own of %s", got, h.session)
		}
	})
	// The object is still the session's own: it may do what it likes with it.
	if got := h.agent.try(t, remove(d)); got.outcome != allowed("AUTO", "Allowed") {
		t.Errorf("deleting its own Deployment: %+v %s", got.outcome, got.message)
	}
}

// Proves B-4, C-4.
func TestACopiedStampMakesNothingTheSessionsOwn(t *testing.T) {
	const ns = "stamps"
	h := at(t, ns)
	own := configMap(ns, "own")
	if err := h.agent.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	stamp := own.Annotations[v1alpha1.AnnotationCreatedBy]
	copied, alsoCopied, service := configMap(ns, "copied"), configMap("free", "own"), service(ns, "own")
	for _, object := range []client.Object{copied, alsoCopied, service} {
		object.SetAnnotations(map[string]string{v1alpha1.AnnotationCreatedBy: stamp})
		if err := ben.Create(t.Context(), object); err != nil {
			t.Fatalf("a person's copy: %v", err)
		}
	}
	for name, object := range map[string]client.Object{"another name": copied, "another kind": service} {
		if got := h.agent.try(t, remove(object)); got.outcome != pending("PermissionPending") {
			t.Errorf("%s: %+v %s, want it to count as foreign", name, got.outcome, got.message)
		}
	}
	// What the session cannot do by itself, it cannot do by stamping a foreign object.
	people := configMap(ns, "people")
	must(t, people)
	if got := h.agent.try(t, merge(people, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationCreatedBy, stamp))); got.err == nil && got.Class == "AUTO" {
		t.Errorf("stamping a foreign object: %+v", got.outcome)
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(people), people); err != nil {
		t.Fatal(err)
	}
	if got := people.Annotations[v1alpha1.AnnotationCreatedBy]; got != "" {
		t.Errorf("the foreign object is stamped %s", got)
	}
	if got := h.agent.try(t, remove(own)); got.outcome != allowed("AUTO", "Allowed") {
		t.Errorf("the session's own: %+v %s", got.outcome, got.message)
	}
}

// podOf waits for a pod of a Deployment that runs the image.
func podOf(t *testing.T, namespace, app, image string) (name string) {
	t.Helper()
	eventually(t, func() error {
		var pods corev1.PodList
		if err := admin.List(context.Background(), &pods, client.InNamespace(namespace), client.MatchingLabels{"app": app}); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp == nil && pod.Spec.Containers[0].Image == image {
				name = pod.Name
				return nil
			}
		}
		return fmt.Errorf("no pod of %s runs %s", app, image)
	})
	return name
}
