package enforcement

import (
	"fmt"
	"strings"
	"unicode/utf8"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionregistration "k8s.io/client-go/applyconfigurations/admissionregistration/v1"

	"stepbeyond.dev/stepbeyond/policy"
)

// Names of the floor's ValidatingAdmissionPolicies, one per purpose; each has a binding of the same name. Agents and the
// audit log read them.
const (
	FloorAuthority = "stepbeyond-floor-authority"
	FloorPods      = "stepbeyond-floor-pods"
	FloorSelf      = "stepbeyond-floor-self"
	FloorForbidden = "stepbeyond-floor-forbidden"
)

const (
	// maxMessage bounds a message in code points: terminals and models read one line.
	maxMessage = 480
	// maxOperation bounds the request's part of a message; a longer one is cut.
	maxOperation = 160
)

// Floor is what stays closed to governed identities when the manager is dead: ValidatingAdmissionPolicies and their
// bindings, made of literals only, so that nothing they need can disappear. entries are the baseline's catalogue;
// version is the baseline's ("v1") and ends every message. more are purposes that the baseline does not have. The order
// is fixed and equal input gives equal bytes.
func Floor(s Scope, entries []policy.CatalogueEntry, version string, more ...floorPolicy) ([]Object, error) {
	governed, err := s.shards()
	if err != nil {
		return nil, fmt.Errorf("scope of the floor: %w", err)
	}
	var objects []Object
	for _, f := range append([]floorPolicy{authority(entries), pods(), self()}, more...) {
		objects = append(objects, f.policy(governed, version), f.binding())
	}
	return objects, nil
}

// floorPolicy is one purpose of the floor.
type floorPolicy struct {
	name      string
	rules     []rule
	variables []variable
	checks    []check
	// exact matches every request as it was made, not as an equivalent that a rule names.
	exact bool
}

// rule selects requests as the API server's own rules do.
type rule struct {
	groups, versions, resources []string
	operations                  []admissionregistrationv1.OperationType
}

// variable is a named CEL expression that later variables and checks may use.
type variable struct{ name, expression string }

// check is one thing that a governed identity may not do.
type check struct {
	// allowed is a CEL expression that is true for requests which this check lets pass.
	allowed string
	refusal
}

var anything = rule{
	groups: []string{"*"}, versions: []string{"*"}, resources: []string{"*/*"},
	operations: []admissionregistrationv1.OperationType{
		admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete, admissionregistrationv1.Connect,
	},
}

// requestVariables are what messages may say of a request: its verb, resource, namespace and name, cut and free of
// anything but the characters of ordinary names. RBAC objects may have names with any other character, line ends included.
var requestVariables = []variable{
	{"resource", `request.resource.resource + (has(request.subResource) && request.subResource != "" ? "/" + request.subResource : "")`},
	{"name", `!has(request.name) || request.name == "" ? "(unnamed)" : ` +
		`request.name.matches("^[-a-zA-Z0-9.:_@]+$") ? request.name : "(unprintable)"`},
	{"path", `has(request.namespace) && request.namespace != "" && !(request.resource.group == "" && request.resource.resource == "namespaces") ? ` +
		`request.namespace + "/" + variables.name : variables.name`},
	{"fullOperation", `request.operation.lowerAscii() + " " + variables.resource + " " + variables.path`},
	{"operation", fmt.Sprintf(`size(variables.fullOperation) <= %d ? variables.fullOperation : variables.fullOperation.substring(0, %d) + "..."`,
		maxOperation, maxOperation-len("..."))},
}

func (f floorPolicy) policy(governed shards, version string) Object {
	spec := admissionregistration.ValidatingAdmissionPolicySpec().
		WithFailurePolicy(admissionregistrationv1.Fail).
		WithMatchConditions(governed.conditions(Governed, "")...)
	constraints := admissionregistration.MatchResources().
		// The first matching rule decides the version that expressions see, so rules that read objects name theirs.
		WithMatchPolicy(f.matchPolicy())
	for _, r := range f.rules {
		constraints.WithResourceRules(admissionregistration.NamedRuleWithOperations().
			WithAPIGroups(r.groups...).WithAPIVersions(r.versions...).WithResources(r.resources...).
			WithOperations(r.operations...).WithScope(admissionregistrationv1.AllScopes))
	}
	spec.WithMatchConstraints(constraints)
	for _, v := range append(append([]variable(nil), requestVariables...), f.variables...) {
		spec.WithVariables(admissionregistration.Variable().WithName(v.name).WithExpression(v.expression))
	}
	for _, c := range f.checks {
		spec.WithValidations(admissionregistration.Validation().
			WithExpression(c.allowed).
			WithReason(metav1.StatusReasonForbidden).
			WithMessage(c.message(version)).
			WithMessageExpression(c.messageExpression(version)))
	}
	return admissionregistration.ValidatingAdmissionPolicy(f.name).WithLabels(labels()).WithSpec(spec)
}

func (f floorPolicy) binding() Object {
	return admissionregistration.ValidatingAdmissionPolicyBinding(f.name).WithLabels(labels()).
		WithSpec(admissionregistration.ValidatingAdmissionPolicyBindingSpec().
			WithPolicyName(f.name).
			// Written out, so that an edit which narrows the binding is undone.
			WithMatchResources(admissionregistration.MatchResources().
				WithMatchPolicy(admissionregistrationv1.Equivalent).
				WithNamespaceSelector(everything()).WithObjectSelector(everything())).
			// A denial here ends the request before the manager hears of it, so the audit log is its record.
			WithValidationActions(admissionregistrationv1.Deny, admissionregistrationv1.Audit))
}

// refusal is what a message says, in the one grammar of all messages:
// <Word>: <operation> <why> (<reason>; rule <rule>). Next: <next>. [floor <version>]
type refusal struct {
	word   string // "Forbidden" if empty
	why    string // "is closed to agents and no approval opens it" if empty
	reason string // of the vocabulary of package policy: a fact or a reason
	rule   string
	next   string
	// cause replaces reason and rule; a rule of a policy is worded as the engine words it.
	cause string
	// kept is the text after the operation of a message that was read back; the other fields are empty then.
	kept string
}

// anyRequest stands for the operation in the literal message.
const anyRequest = "this request"

// parts are the texts before and after the operation. What is too long for maxMessage is cut from the next step, the
// only part that other people write.
func (r refusal) parts(version string) (before, after string) {
	if r.word == "" {
		r.word = "Forbidden"
	}
	if r.why == "" {
		r.why = "is closed to agents and no approval opens it"
	}
	before = r.word + ": "
	if r.kept != "" {
		return before, r.kept
	}
	head := fmt.Sprintf(" %s (%s). Next: ", r.why, r.because())
	tail := fmt.Sprintf(". [floor %s]", version)
	next := strings.TrimSuffix(strings.Join(strings.Fields(r.next), " "), ".")
	room := maxMessage - utf8.RuneCountInString(before) - maxOperation - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
	if runes := []rune(next); len(runes) > room {
		next = string(runes[:max(room-len("..."), 0)]) + "..."
	}
	return before, head + next + tail
}

// message is the literal that the API server falls back to when messageExpression errs.
func (r refusal) message(version string) string {
	before, after := r.parts(version)
	return before + anyRequest + after
}

func (r refusal) messageExpression(version string) string {
	before, after := r.parts(version)
	return celLiteral(before) + " + variables.operation + " + celLiteral(after)
}
