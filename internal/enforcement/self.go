package enforcement

import (
	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

// ownPrefix begins the labels and annotations that this product acts on.
const ownPrefix = "stepbeyond.dev/"

// self keeps governed identities from what the product rests on: which pod asks, the stamps, its API group, the labels of
// namespaces that decide who is governed and how, and its own namespaces. It is one policy, because it looks at every write
// of everybody, and the API server pays for each policy that has to find out that a caller is not governed. The canary may dry-run one object of each kind in its own namespace, which changes
// nothing and lets the other enforcers answer.
func self() floorPolicy {
	refuse := func(rule, next, allowed string) check {
		return check{allowed, refusal{reason: policy.EscalatesAuthority.String(), rule: rule, next: next}}
	}
	// Asked first, because nearly every write is one of these and a variable costs as much as a check.
	const others = `request.resource.resource != "namespaces"`
	own := celLiteral([]string{CanaryNamespace, SystemNamespace})
	canary := `request.userInfo.username == ` + celLiteral(canaryAccount.Username()) +
		` && request.namespace == ` + celLiteral(CanaryNamespace) + ` && request.name == ` + celLiteral(probeName) +
		` && has(request.dryRun) && request.dryRun`
	return floorPolicy{
		name:  FloorSelf,
		rules: []rule{anything},
		variables: []variable{
			{"namespaceWrite", `request.resource.group == "" && request.resource.resource == "namespaces" && request.operation in ["CREATE", "UPDATE"]`},
			{"labels", metadataMap("object", "labels")},
			{"oldLabels", metadataMap("oldObject", "labels")},
			{"annotations", metadataMap("object", "annotations")},
			{"oldAnnotations", metadataMap("oldObject", "annotations")},
		},
		checks: []check{
			credentialBound(),
			stampKept(),
			refuse("own-objects", "ask a person; an open question is answered with kubectl by its approver",
				`request.resource.group != `+celLiteral(v1alpha1.GroupVersion.Group)),
			refuse("namespace-keys", "leave out the labels and annotations that begin with "+ownPrefix,
				others+` || !variables.namespaceWrite || `+ownKeysEqual("variables.labels", "variables.oldLabels")+` && `+
					ownKeysEqual("variables.annotations", "variables.oldAnnotations")),
			refuse("own-namespaces", "work in your own namespace",
				`!(has(request.namespace) && request.namespace in `+own+
					` || !(`+others+`) && variables.resource == "namespaces" && has(request.name) && request.name in `+own+`) || `+canary),
		},
	}
}

// metadataMap is the labels or annotations of object or oldObject; empty when it has none or is null.
func metadataMap(object, field string) string {
	return object + " == null ? {} : " + object + ".?metadata.?" + field + ".orValue({})"
}

// ownKeysEqual is true when two maps agree in every key with our prefix, the stamps aside: the server writes the origin
// stamp on create, and the check origin-stamp guards it on update.
func ownKeysEqual(object, oldObject string) string {
	ours := `k.startsWith(` + celLiteral(ownPrefix) + `) && !(k in ` +
		celLiteral([]string{v1alpha1.AnnotationCreatedBy, v1alpha1.AnnotationTemplateWriter}) + `)`
	return object + `.all(k, !(` + ours + `) || k in ` + oldObject + ` && ` + oldObject + `[k] == ` + object + `[k]) && ` +
		oldObject + `.all(k, !(` + ours + `) || k in ` + object + `)`
}
