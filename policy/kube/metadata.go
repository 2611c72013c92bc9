package kube

import (
	"reflect"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// Annotations that only the server writes. They are judged by whoever verifies them, and bind no grant.
const (
	// AnnotationCreatedBy is the verified origin of an object.
	AnnotationCreatedBy = "stepbeyond.dev/created-by"
	// AnnotationTemplateWriter is the lineage of a pod template.
	AnnotationTemplateWriter = "stepbeyond.dev/template-writer"

	annotationLastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	annotationRestartedAt = "kubectl.kubernetes.io/restartedAt"
)

// unboundAnnotations say nothing about what the caller wants.
var unboundAnnotations = []string{AnnotationCreatedBy, AnnotationTemplateWriter, annotationLastApplied}

// judgeMetadata finds deletion by proxy: an object whose last finalizer goes is gone, and one with another owner is
// collected with that owner. Neither sends a DELETE review.
func (j *judge) judgeMetadata() {
	was, now := j.old.object("metadata"), j.object.object("metadata")
	j.judgeFinalizers(was.strings("finalizers"), now.strings("finalizers"))
	if j.req.kind() == namespaces {
		j.judgeFinalizers(j.old.object("spec").strings("finalizers"), j.object.object("spec").strings("finalizers"))
	}
	owned := len(was.objects("ownerReferences")) + len(now.objects("ownerReferences"))
	if owned > 0 && !reflect.DeepEqual(was.fields["ownerReferences"], now.fields["ownerReferences"]) {
		j.present(policy.Destructive, "ownerReferences change, which can delete the object without a request to delete")
	}
}

func (j *judge) judgeFinalizers(was, now []string) {
	for _, finalizer := range was {
		if !slices.Contains(now, finalizer) {
			j.present(policy.Destructive, "a finalizer is removed, which can delete the object without a request to delete")
		}
	}
	for _, finalizer := range now {
		if j.foreign() && !slices.Contains(was, finalizer) {
			j.present(policy.Security, "a finalizer is added to an object that this session did not make")
		}
	}
}

// judgeNamespaceKeys guards the labels and annotations that decide how a namespace is governed and confined.
func (j *judge) judgeNamespaceKeys() {
	if j.verb != policy.VerbCreate && j.verb != policy.VerbUpdate {
		return
	}
	was, now := j.old.object("metadata"), j.object.object("metadata")
	for _, field := range []string{"labels", "annotations"} {
		before, after := was.object(field).fields, now.object(field).fields
		if changedKey(before, after, "stepbeyond.dev/") {
			j.present(policy.EscalatesAuthority, "a stepbeyond.dev key of the Namespace decides which policy governs it")
		}
		if changedKey(before, after, "pod-security.kubernetes.io/") {
			j.present(policy.Security, "a pod-security.kubernetes.io key of the Namespace changes")
		}
	}
}

// changedKey tells whether a key with the prefix differs between the two. The server's stamps and kubectl's note to
// itself do not count.
func changedKey(before, after map[string]any, prefix string) bool {
	differs := func(a, b map[string]any) bool {
		for key, value := range a {
			if !strings.HasPrefix(key, prefix) || slices.Contains(unboundAnnotations, key) {
				continue
			}
			if other, ok := b[key]; !ok || !reflect.DeepEqual(value, other) {
				return true
			}
		}
		return false
	}
	return differs(before, after) || differs(after, before)
}
