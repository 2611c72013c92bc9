package enforcement

import (
	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

// stampKept keeps the origin stamp as the server wrote it. The mutating entry origin.stepbeyond.dev has restored a lost
// one before this runs; with the manager dead nothing restores it, and the update is refused. It looks at subresources
// too: an update of status may change annotations.
func stampKept() check {
	return check{
		allowed: `request.operation != "UPDATE" || ` +
			annotation("object", v1alpha1.AnnotationCreatedBy) + " == " + annotation("oldObject", v1alpha1.AnnotationCreatedBy),
		refusal: refusal{
			why:    "changes the stamp that says who made the object, and no approval opens that",
			reason: policy.EscalatesAuthority.String(),
			rule:   "origin-stamp",
			next:   "send it again with the annotation " + v1alpha1.AnnotationCreatedBy + " as the server has it",
		},
	}
}
