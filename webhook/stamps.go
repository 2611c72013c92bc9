package webhook

import (
	"reflect"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/stamp"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// stamps are what the server writes on an object that a session writes.
type stamps struct {
	// createdBy is the wanted created-by stamp; empty means that there must be none.
	createdBy string
	// writer is the wanted template-writer mark of the pod template at template.Path; empty means that there must be none.
	writer string
	// resource finds the template.
	resource schema.GroupResource
	// verify accepts another spelling of createdBy: on create the name may have been generated since.
	verify func(value string) bool
}

// stampsOf gives the stamps of a create or update of a main resource by the session. A create is stamped with the session.
// An update keeps what the object had, whatever the request says; a changed pod template is marked with the session.
func stampsOf(stamper stamp.Stamper, request *kube.Request, session string) stamps {
	w := stamps{resource: schema.GroupResource{Group: request.Group, Resource: request.Resource}}
	template, hasTemplate := stamp.TemplateOf(request.Object, w.resource)
	if request.Operation == "CREATE" {
		at := subject(request)
		w.createdBy = stamper.CreatedBy(session, at)
		w.verify = func(value string) bool {
			creator, ok := stamper.Verify(value, at)
			return ok && creator == session
		}
		if hasTemplate {
			w.writer = session
		}
		return w
	}
	oldMetadata, _ := request.OldObject["metadata"].(map[string]any)
	w.createdBy = stamp.Annotation(oldMetadata, v1alpha1.AnnotationCreatedBy)
	w.verify = func(value string) bool { return value == w.createdBy }
	if old, hadTemplate := stamp.TemplateOf(request.OldObject, w.resource); hasTemplate && hadTemplate {
		w.writer = old.Writer()
		if templateChanged(&old, &template, w.resource) {
			w.writer = session
		}
	}
	return w
}

var pods = schema.GroupResource{Resource: "pods"}

// templateChanged compares what pods are made from. A Pod's own labels and annotations are no template: other pods are
// not made from them.
func templateChanged(old, new *stamp.Template, resource schema.GroupResource) bool {
	if !reflect.DeepEqual(old.Spec, new.Spec) {
		return true
	}
	return resource != pods && !reflect.DeepEqual(withoutMark(old.Metadata), withoutMark(new.Metadata))
}

// withoutMark is the metadata of a template without the mark itself, so that a lost mark is no change of the template.
func withoutMark(metadata map[string]any) map[string]any {
	plain := make(map[string]any, len(metadata))
	for key, value := range metadata {
		plain[key] = value
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	kept := make(map[string]any, len(annotations))
	for key, value := range annotations {
		if key != v1alpha1.AnnotationTemplateWriter {
			kept[key] = value
		}
	}
	delete(plain, "annotations")
	if len(kept) > 0 {
		plain["annotations"] = kept
	}
	return plain
}

// present tells whether the object carries exactly these stamps.
func (w *stamps) present(object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	if !w.verify(stamp.Annotation(metadata, v1alpha1.AnnotationCreatedBy)) {
		return false
	}
	template, ok := stamp.TemplateOf(object, w.resource)
	return !ok || template.Writer() == w.writer
}

// patches writes the stamps into the object where they differ.
func (w *stamps) patches(object map[string]any) []jsonpatch.Operation {
	p := patcher{made: map[string]bool{}}
	metadata, _ := object["metadata"].(map[string]any)
	p.set("/metadata", metadata, v1alpha1.AnnotationCreatedBy, w.createdBy)
	if template, ok := stamp.TemplateOf(object, w.resource); ok {
		p.set(template.Path, template.Metadata, v1alpha1.AnnotationTemplateWriter, w.writer)
	}
	return p.operations
}

// patcher builds JSON patch operations on annotations; made remembers the maps that it had to add.
type patcher struct {
	operations []jsonpatch.Operation
	made       map[string]bool
}

func (p *patcher) add(path string, value any) {
	p.operations = append(p.operations, jsonpatch.NewOperation("add", path, value))
}

// set makes the annotation have the value; the empty value removes it.
func (p *patcher) set(path string, metadata map[string]any, key, value string) {
	annotations, has := metadata["annotations"].(map[string]any)
	at := path + "/annotations/" + strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
	old, had := annotations[key]
	switch {
	case had && old == value && value != "":
	case value == "" && !had:
	case value == "":
		p.operations = append(p.operations, jsonpatch.NewOperation("remove", at, nil))
	default:
		if metadata == nil && !p.made[path] {
			p.add(path, map[string]any{})
			p.made[path] = true
		}
		if !has && !p.made[path+"/annotations"] {
			p.add(path+"/annotations", map[string]any{})
			p.made[path+"/annotations"] = true
		}
		p.add(at, value)
	}
}
