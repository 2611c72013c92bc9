// Package stamp writes and verifies the two annotations that only the server writes: who created an object, and who last
// wrote a pod template. They are provenance, not a rewrite of what was asked (requirement B-4).
package stamp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

const version = "v1"

// Subject is what a created-by stamp is bound to. A copy of the annotation on any other object does not verify.
type Subject struct {
	Group, Resource, Namespace string
	// Name of the object; empty while the API server has not generated it.
	Name string
	// GenerateName is the prefix of a generated name. A stamp without a name is bound to it.
	GenerateName string
}

// Stamper signs with the installation's key of 32 bytes.
type Stamper struct {
	Key []byte
}

// CreatedBy is the stamp of an object that the session creates. session is the session's key, namespace/name.
func (s Stamper) CreatedBy(session string, subject Subject) string {
	name := subject.Name
	if name == "" {
		name = subject.GenerateName + generated
	}
	return strings.Join([]string{version, session, s.sign(session, subject, name)}, ":")
}

// Verify returns the session that a stamp proves to have created the object; ok is false for a stamp that is absent,
// malformed, of another object or not of this installation.
func (s Stamper) Verify(stamp string, subject Subject) (session string, ok bool) {
	parts := strings.Split(stamp, ":")
	if len(parts) != 3 || parts[0] != version {
		return "", false
	}
	if hmac.Equal([]byte(parts[2]), []byte(s.sign(parts[1], subject, subject.Name))) {
		return parts[1], true
	}
	if subject.GenerateName == "" || !strings.HasPrefix(subject.Name, subject.GenerateName) {
		return "", false
	}
	return parts[1], hmac.Equal([]byte(parts[2]), []byte(s.sign(parts[1], subject, subject.GenerateName+generated)))
}

// generated marks a signed prefix. No name of an object ends so.
const generated = "*"

func (s Stamper) sign(session string, subject Subject, name string) string {
	mac := hmac.New(sha256.New, s.Key)
	fmt.Fprintf(mac, "created-by %q %q %q %q %q", session, subject.Group, subject.Resource, subject.Namespace, name)
	return hex.EncodeToString(mac.Sum(nil))
}

// Template is one pod template inside an object: its metadata and its spec, as parts of the object.
type Template struct {
	// Path is a JSON pointer to the template's metadata: "/spec/template/metadata", or "/metadata" for a Pod.
	Path     string
	Metadata map[string]any
	Spec     map[string]any
}

// templatePaths lists where the built-in kinds keep their pod template, by resource: a custom resource may have a built-in
// kind's name. The conditions of the webhook entries (internal/enforcement) and the engine (policy/kube) list the same.
var templatePaths = map[schema.GroupResource][]string{
	{Resource: "pods"}:                        {},
	{Resource: "podtemplates"}:                {"template"},
	{Resource: "replicationcontrollers"}:      {"spec", "template"},
	{Group: "apps", Resource: "replicasets"}:  {"spec", "template"},
	{Group: "apps", Resource: "deployments"}:  {"spec", "template"},
	{Group: "apps", Resource: "statefulsets"}: {"spec", "template"},
	{Group: "apps", Resource: "daemonsets"}:   {"spec", "template"},
	{Group: "batch", Resource: "jobs"}:        {"spec", "template"},
	{Group: "batch", Resource: "cronjobs"}:    {"spec", "jobTemplate", "spec", "template"},
}

// TemplateOf finds the pod template of an object of a built-in kind; ok is false for a resource without one.
func TemplateOf(object map[string]any, resource schema.GroupResource) (t Template, ok bool) {
	path, ok := templatePaths[resource]
	if !ok || object == nil {
		return Template{}, false
	}
	holder := object
	for _, key := range path {
		holder, ok = holder[key].(map[string]any)
		if !ok {
			return Template{}, false
		}
	}
	t.Path = strings.Join(append(append([]string{""}, path...), "metadata"), "/")
	t.Metadata, _ = holder["metadata"].(map[string]any)
	t.Spec, _ = holder["spec"].(map[string]any)
	return t, true
}

// Annotation of a metadata map; empty when it has none.
func Annotation(metadata map[string]any, key string) string {
	annotations, _ := metadata["annotations"].(map[string]any)
	value, _ := annotations[key].(string)
	return value
}

// Writer is the template-writer mark of a template; empty when no agent wrote it.
func (t Template) Writer() string { return Annotation(t.Metadata, v1alpha1.AnnotationTemplateWriter) }
