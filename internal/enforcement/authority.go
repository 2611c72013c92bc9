package enforcement

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

const handOver = "leave it out, or hand the manifest to a person who may do this"

// tokenSecretTypes are the types of Secrets that are, or are filled with, a credential to the API server.
var tokenSecretTypes = []string{"bootstrap.kubernetes.io/token", "kubernetes.io/service-account-token"}

// authority is the floor policy against authority escalation: it closes what the catalogue entries say escalates
// authority, and tokens in Secrets. An entry counts as far as its selectors name only groups, resources
// and verbs; entries with an expression, and selectors by name or origin, are the engine's. Selectors of our own API
// group are left to the policy FloorSelf, so that one request has one answer.
func authority(entries []policy.CatalogueEntry) floorPolicy {
	f := floorPolicy{name: FloorAuthority}
	for _, entry := range entries {
		if entry.When != "" || !slices.Contains(entry.Present, policy.EscalatesAuthority) {
			continue
		}
		var matches []string
		for _, selector := range entry.Match.Kubernetes {
			if len(selector.Names) > 0 || len(selector.Origins) > 0 {
				continue
			}
			r, ok := selectorRule(selector)
			if !ok {
				continue
			}
			f.rules = append(f.rules, r)
			matches = append(matches, r.expression())
		}
		if len(matches) == 0 {
			continue
		}
		next := entry.Recovery
		if next == "" {
			next = handOver
		}
		f.checks = append(f.checks, check{
			allowed: "!(" + strings.Join(matches, " || ") + ")",
			refusal: refusal{reason: policy.EscalatesAuthority.String(), rule: entry.Name, next: next},
		})
	}
	secrets := rule{groups: []string{""}, versions: []string{"v1"}, resources: []string{"secrets"},
		operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}}
	f.rules = append(f.rules, secrets)
	f.checks = append(f.checks, check{
		allowed: `!(` + secrets.expression() + ` && object.?type.orValue("") in ` + celLiteral(tokenSecretTypes) + `)`,
		refusal: refusal{reason: policy.EscalatesAuthority.String(), rule: "token-secrets",
			next: "use the token that is mounted in the agent's own pod"},
	})
	return f
}

var operations = map[policy.Verb]admissionregistrationv1.OperationType{
	policy.VerbCreate:  admissionregistrationv1.Create,
	policy.VerbUpdate:  admissionregistrationv1.Update,
	policy.VerbDelete:  admissionregistrationv1.Delete,
	policy.VerbConnect: admissionregistrationv1.Connect,
}

// selectorRule is the admission rule of a selector. ok is false when it selects no request that admission sees, or
// only our own API group.
func selectorRule(s policy.KubernetesSelector) (r rule, ok bool) {
	r = rule{groups: []string{"*"}, versions: []string{"*"}, resources: []string{"*/*"}}
	if len(s.Groups) > 0 && !slices.Contains(s.Groups, "*") {
		r.groups = slices.DeleteFunc(sortedUnique(s.Groups), func(group string) bool { return group == v1alpha1.GroupVersion.Group })
	}
	if len(s.Resources) > 0 && !slices.Contains(s.Resources, "*") {
		r.resources = ruleResources(s.Resources)
	}
	for _, operation := range anything.operations {
		selects := func(verb policy.Verb) bool { return operations[verb] == operation }
		if len(s.Verbs) == 0 || slices.ContainsFunc(s.Verbs, selects) {
			r.operations = append(r.operations, operation)
		}
	}
	return r, len(r.groups) > 0 && len(r.operations) > 0
}

// ruleResources leaves out what a wildcard covers: the API server refuses a rule that names both pods/* and pods/log.
func ruleResources(resources []string) []string {
	return slices.DeleteFunc(sortedUnique(resources), func(resource string) bool {
		parent, subresource, _ := strings.Cut(resource, "/")
		return subresource != "" && subresource != "*" && slices.Contains(resources, parent+"/*")
	})
}

// expression is true for the requests that the rule selects; the checks of one policy share its rules.
func (r rule) expression() string {
	var conjuncts []string
	if !slices.Contains(r.groups, "*") {
		conjuncts = append(conjuncts, "request.resource.group in "+celLiteral(r.groups))
	}
	if resources := r.resourceExpression(); resources != "" {
		conjuncts = append(conjuncts, resources)
	}
	verbs := make([]string, 0, len(r.operations))
	for _, operation := range r.operations {
		verbs = append(verbs, string(operation))
	}
	conjuncts = append(conjuncts, "request.operation in "+celLiteral(verbs))
	return "(" + strings.Join(conjuncts, " && ") + ")"
}

func (r rule) resourceExpression() string {
	if slices.Contains(r.resources, "*/*") {
		return ""
	}
	var exact, matches []string
	for _, resource := range r.resources {
		if parent, all := strings.CutSuffix(resource, "/*"); all {
			matches = append(matches, "variables.resource.startsWith("+celLiteral(parent+"/")+")")
			continue
		}
		exact = append(exact, resource)
	}
	if len(exact) > 0 {
		matches = append(matches, "variables.resource in "+celLiteral(exact))
	}
	return "(" + strings.Join(matches, " || ") + ")"
}
