package enforcement

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"stepbeyond.dev/stepbeyond/policy"
)

// forbiddenVariables are the request as the engine understands it (policy/kube.Operation): an eviction is the deletion of
// its pod, a Namespace lies in no namespace, and a name that the API server made for generateName is none. Rules that
// outlive their policy use these names after an upgrade: add to them, never rename one.
var forbiddenVariables = []variable{
	{"canary", `request.userInfo.username == ` + celLiteral(canaryAccount.Username()) + ` && has(request.dryRun) && request.dryRun`},
	{"given", `has(request.subResource) ? request.subResource : ""`},
	{"evicts", `request.operation == "CREATE" && request.resource.group == "" && request.resource.resource == "pods" && variables.given == "eviction"`},
	{"verb", `variables.evicts ? "delete" : request.operation.lowerAscii()`},
	{"subresource", `variables.evicts ? "" : variables.given`},
	{"target", `request.resource.resource + (variables.subresource == "" ? "" : "/" + variables.subresource)`},
	{"space", `request.resource.group == "" && request.resource.resource == "namespaces" || !has(request.namespace) ? "" : request.namespace`},
	{"creates", `request.operation == "CREATE" && variables.given == "" && object != null`},
	{"stated", `has(request.name) && request.name != "" ? request.name : variables.creates ? string(object.?metadata.?name.orValue("")) : ""`},
	{"stem", `variables.creates ? string(object.?metadata.?generateName.orValue("")) : ""`},
	// The API server makes names of at most 58 characters of the prefix and 5 random letters.
	{"prefix", `size(variables.stem) > 58 ? variables.stem.substring(0, 58) : variables.stem`},
	{"made", `variables.stem != "" && variables.stated.startsWith(variables.prefix) && ` +
		`variables.stated.substring(size(variables.prefix)).matches("^[bcdfghjklmnpqrstvwxz2456789]{5}$")`},
	{"asked", `{"verb": dyn(variables.verb), "namespace": dyn(variables.space), "name": dyn(variables.made ? "" : variables.stated), ` +
		`"dryRun": dyn(has(request.dryRun) && request.dryRun), "resource": dyn({"group": request.resource.group, ` +
		`"version": request.resource.version, "resource": request.resource.resource, "subresource": variables.subresource})}`},
}

// seesAsked evaluates an expression of the rule language where `request` is what the engine would show it: the variable of
// the comprehension hides the request of admission.
func seesAsked(when string) string {
	return "[variables.asked].exists(request,\n" + when + "\n)"
}

// seenOperations are the verbs of a selector that admission reports.
func seenOperations(s *policy.KubernetesSelector) []policy.Verb {
	var seen []policy.Verb
	for _, verb := range []policy.Verb{policy.VerbConnect, policy.VerbCreate, policy.VerbDelete, policy.VerbUpdate} {
		if len(s.Verbs) == 0 || slices.Contains(s.Verbs, verb) {
			seen = append(seen, verb)
		}
	}
	return seen
}

// selectorExpression is true for what the engine's selector matches, and never errs.
func selectorExpression(s *policy.KubernetesSelector) string {
	conjuncts := []string{"variables.verb in " + celLiteral(words(seenOperations(s)))}
	if len(s.Groups) > 0 && !slices.Contains(s.Groups, "*") {
		conjuncts = append(conjuncts, "request.resource.group in "+celLiteral(sortedUnique(s.Groups)))
	}
	if len(s.Resources) > 0 && !slices.Contains(s.Resources, "*") {
		exact, prefixes := patterns(s.Resources)
		conjuncts = append(conjuncts, anyOf("variables.target", exact, prefixes))
	}
	if len(s.Names) > 0 && !slices.Contains(s.Names, "*") {
		exact, prefixes := patterns(s.Names)
		conjuncts = append(conjuncts, anyOf("variables.asked.name", exact, prefixes))
	}
	return "(" + strings.Join(conjuncts, " && ") + ")"
}

func words(verbs []policy.Verb) []string {
	list := make([]string, len(verbs))
	for i, verb := range verbs {
		list[i] = string(verb)
	}
	return list
}

// patterns splits entries into whole texts and what stands before a "*" at the end.
func patterns(entries []string) (exact, prefixes []string) {
	for _, entry := range sortedUnique(entries) {
		if prefix, wild := strings.CutSuffix(entry, "*"); wild {
			prefixes = append(prefixes, prefix)
			continue
		}
		exact = append(exact, entry)
	}
	return exact, prefixes
}

func anyOf(value string, exact, prefixes []string) string {
	var matches []string
	if len(exact) > 0 {
		matches = append(matches, value+" in "+celLiteral(exact))
	}
	for _, prefix := range prefixes {
		matches = append(matches, value+".startsWith("+celLiteral(prefix)+")")
	}
	return "(" + strings.Join(matches, " || ") + ")"
}

// constraints are the API server's rules for the requests that a rule could match.
func (r namedRule) constraints() []rule {
	var rules []rule
	for i := range r.Match.Kubernetes {
		s := &r.Match.Kubernetes[i]
		c := rule{groups: []string{"*"}, versions: []string{"*"}, resources: []string{"*/*"}}
		if len(s.Groups) > 0 && !slices.Contains(s.Groups, "*") {
			c.groups = sortedUnique(s.Groups)
		}
		if len(s.Resources) > 0 && !slices.Contains(s.Resources, "*") {
			c.resources = ruleResources(s.Resources)
		}
		for _, verb := range seenOperations(s) {
			c.operations = append(c.operations, operations[verb])
		}
		if len(c.operations) == 0 {
			continue
		}
		rules = append(rules, c)
		if deletesPods(&c) {
			rules = append(rules, rule{groups: []string{""}, versions: []string{"*"}, resources: []string{"pods/eviction"},
				operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create}})
		}
	}
	return rules
}

// deletesPods tells whether an eviction is among what the rule is about.
func deletesPods(r *rule) bool {
	return slices.Contains(r.operations, admissionregistrationv1.Delete) &&
		(slices.Contains(r.groups, "*") || slices.Contains(r.groups, "")) &&
		(slices.Contains(r.resources, "*/*") || slices.Contains(r.resources, "pods"))
}
