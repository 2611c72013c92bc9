package kube

import (
	"reflect"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// ownPrefix begins the labels and annotations that this product acts on.
const ownPrefix = "stepbeyond.dev/"

// stampKeys are written by the server and compared by whoever verifies them, on main resources.
var stampKeys = []string{AnnotationCreatedBy, AnnotationTemplateWriter}

// judgeOwnKeys guards the labels and annotations that decide how a Namespace is governed and confined, for whom a Pod
// works, and who made an object.
func (j *judge) judgeOwnKeys() {
	was, now := j.old.object("metadata"), j.object.object("metadata")
	changed := false
	switch kind := j.req.kind(); {
	case j.req.Subresource == "scale": // has no metadata of its own
	case j.req.Subresource != "":
		// Nothing writes or compares stamps here, and a status or a binding can carry annotations to the object.
		changed = changedMetadata(was, now, ownPrefix)
	case kind == namespaces, kind == pods:
		changed = changedMetadata(was, now, ownPrefix, stampKeys...)
	case kind == groupResource{"", "bindings"}:
		changed = changedMetadata(was, now, ownPrefix, AnnotationCreatedBy)
	}
	if changed {
		j.present(policy.EscalatesAuthority, "a stepbeyond.dev key decides which policy governs, or for whom a Pod works")
	}
	if j.req.kind() == namespaces && changedMetadata(was, now, "pod-security.kubernetes.io/") {
		j.present(policy.Security, "a pod-security.kubernetes.io key of the Namespace changes")
	}
	if j.req.Subresource == "" {
		j.judgeNestedKeys()
	}
}

// judgeNestedKeys: controllers copy the metadata of a template onto what they make from it, where a stamp would speak for
// an object that nobody stamped.
func (j *judge) judgeNestedKeys() {
	kind := j.req.kind()
	path, ok := templatePath(kind)
	if !ok {
		return
	}
	now, was := j.templates()
	if len(path) > 0 {
		j.judgeCopied(now.metadata, was.metadata)
	}
	if kind == cronJobs {
		j.judgeCopied(j.object.object("spec").object("jobTemplate").object("metadata"), j.old.object("spec").object("jobTemplate").object("metadata"))
	}
	claims := func(volume object) object {
		return volume.object("ephemeral").object("volumeClaimTemplate").object("metadata")
	}
	j.judgeCopiedEach(now.spec, was.spec, "volumes", claims)
	if kind == statefulSets {
		metadata := func(claim object) object { return claim.object("metadata") }
		j.judgeCopiedEach(j.object.object("spec"), j.old.object("spec"), "volumeClaimTemplates", metadata)
	}
}

// judgeCopiedEach compares what stands at the same place of two lists; where one has none, with nothing.
func (j *judge) judgeCopiedEach(now, was object, key string, metadata func(object) object) {
	after, before := now.objectList(key), was.objectList(key)
	for i := range max(len(after), len(before)) {
		j.judgeCopied(metadata(now.at(after, i)), metadata(was.at(before, i)))
	}
}

func (j *judge) judgeCopied(now, was object) {
	if changedMetadata(was, now, ownPrefix, AnnotationTemplateWriter) {
		j.present(policy.EscalatesAuthority, "a stepbeyond.dev key in a template would be copied onto what is made from it")
	}
}

// changedMetadata tells whether a label or an annotation with the prefix differs, those in except aside.
func changedMetadata(was, now object, prefix string, except ...string) bool {
	if was.fields == nil && now.fields == nil {
		return false
	}
	return changedKey(was.object("labels").fields, now.object("labels").fields, prefix, except...) ||
		changedKey(was.object("annotations").fields, now.object("annotations").fields, prefix, except...)
}

// changedKey tells whether a key with the prefix differs between the two, those in except aside.
func changedKey(before, after map[string]any, prefix string, except ...string) bool {
	differs := func(a, b map[string]any) bool {
		for key, value := range a {
			if !strings.HasPrefix(key, prefix) || slices.Contains(except, key) {
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
