package grant

import (
	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// usedOn is the object that a use acted on: the question's, or under a wider approval one of its kind with another name.
func usedOn(g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse) *v1alpha1.GrantTarget {
	at := g.Spec.Request.Operation.Target
	if use.Name != "" && use.Name != at.Name {
		at.Name, at.UID = use.Name, ""
	}
	return &at
}

// changeOf are the lines of what a use changes. known is false for one whose lines were too many to keep.
func changeOf(g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse) (lines []string, known bool) {
	if digestOf(g, use) == g.Spec.Request.Digest {
		return g.Spec.Request.Change, true
	}
	return use.Change, len(use.Change) > 0
}

// emptiesFinalizers tells whether a use may end in a deletion. What is not known may.
func emptiesFinalizers(g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse) bool {
	lines, known := changeOf(g, use)
	return !known || kube.EmptiesFinalizers(lines)
}

// deletedAfter is the fate of a use that may have ended in the deletion of its object, which is gone: its effect where it
// was to empty finalizers, and not to be told where nobody knows what it was to do.
func deletedAfter(g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse) fate {
	if _, known := changeOf(g, use); known {
		return landed
	}
	return lost
}
