package kube

import (
	"reflect"
	"slices"

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
	// annotationTemplateGeneration counts the changes of a DaemonSet's template; the server writes it.
	annotationTemplateGeneration = "deprecated.daemonset.template.generation"
)

// unboundAnnotations say nothing about what the caller wants.
var unboundAnnotations = []string{AnnotationCreatedBy, AnnotationTemplateWriter, annotationLastApplied}

// judgeMetadata finds deletion by proxy: an object whose last finalizer goes is gone, one with another owner is collected
// with that owner, and a Pod with other labels leaves its controller or is taken by another one. None of them sends a
// DELETE review.
func (j *judge) judgeMetadata() {
	was, now := j.old.object("metadata"), j.object.object("metadata")
	j.judgeFinalizers(was.strings("finalizers"), now.strings("finalizers"))
	if j.req.kind() == namespaces {
		j.judgeFinalizers(j.old.object("spec").strings("finalizers"), j.object.object("spec").strings("finalizers"))
	}
	j.judgeOwners()
	j.judgeOwnKeys()
	relabelled := changedKey(was.object("labels").fields, now.object("labels").fields, "")
	if j.req.kind() == pods && relabelled && (j.foreign() || controlled(was)) {
		j.present(policy.Destructive, "labels decide which controller keeps a Pod and which Service it serves")
	}
}

// judgeOwners: the garbage collector deletes an object with its owners, and a controller acts on what it owns. A
// subresource that is created shows no owners of the object.
func (j *judge) judgeOwners() {
	was, now := j.old.object("metadata"), j.object.object("metadata")
	owned := count(was.objects("ownerReferences")) + count(now.objects("ownerReferences"))
	switch {
	case owned == 0, reflect.DeepEqual(was.fields["ownerReferences"], now.fields["ownerReferences"]):
	case j.verb == policy.VerbUpdate:
		j.present(policy.Destructive, "ownerReferences change, which can delete the object without a request to delete")
	case j.req.Subresource == "":
		j.present(policy.Destructive, "the object can be deleted with its owner, and the owner's controller acts on it")
	}
}

// controlled tells that a controller owns the object of this metadata.
func controlled(metadata object) bool {
	return contains(metadata.objects("ownerReferences"), func(o object) bool { return o.flag("controller") })
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
