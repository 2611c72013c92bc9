package webhook

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

var (
	// namePattern and commandPattern are what the schema says too; this does not depend on it.
	namePattern    = regexp.MustCompile(`^[a-z0-9][-a-z0-9.*]*$`)
	commandPattern = regexp.MustCompile(`^[!-)+-~][ -~]*$`)
)

// widthBounds are the strictest that the policies of the session's and the target's namespace allow an approver.
func (r *objectReview) widthBounds(request *v1alpha1.PermissionRequest) policy.WidthBounds {
	return r.snapshot.Engine.WidthBounds(request.Session.Namespace, request.Operation.Target.Namespace)
}

// checkScope compares the width of an answer with the policies and with the question (requirements G-2, G-9). Every field
// that is wrong is named, with the bound and where it stands.
func (r *objectReview) checkScope(path *field.Path, d *v1alpha1.GrantDecision, request *v1alpha1.PermissionRequest) field.ErrorList {
	scope := &d.Scope
	if scope.Type == v1alpha1.ScopeExact || scope.Type == "" {
		if scope.Uses != 0 || scope.DurationSeconds != 0 || scope.Match != nil {
			return field.ErrorList{field.Forbidden(path.Child("type"), "Exact is the one operation asked about, once; leave out uses, durationSeconds and match")}
		}
		return nil
	}
	if d.Verdict != v1alpha1.VerdictApprove {
		return field.ErrorList{field.Forbidden(path.Child("type"), "a denial is of the exact operation; leave the scope out")}
	}
	if request.Operation.Target.Name == "" {
		return field.ErrorList{field.Forbidden(path.Child("type"), "the question names no object, so only Exact answers it")}
	}
	bounds := r.widthBounds(request)
	if policy.ScopeType(scope.Type).WiderThan(bounds.Widest) {
		return field.ErrorList{field.Forbidden(path.Child("type"), fmt.Sprintf("is wider than %s, which is %s", bounds.Widest, stated("widestScope", bounds.WidestBy)))}
	}
	var found field.ErrorList
	if scope.Uses > bounds.Uses {
		found = append(found, field.Forbidden(path.Child("uses"), fmt.Sprintf("is more than %d, which is %s", bounds.Uses, stated("maxTimeBoxUses", bounds.UsesBy))))
	}
	switch timeBoxed := scope.Type == v1alpha1.ScopeTimeBoxed; {
	case !timeBoxed && (scope.DurationSeconds != 0 || scope.Match != nil):
		found = append(found, field.Forbidden(path.Child("type"), "only a TimeBoxed approval has durationSeconds and match"))
	case timeBoxed && scope.DurationSeconds < 1:
		found = append(found, field.Required(path.Child("durationSeconds"), "says how long a TimeBoxed approval lasts"))
	case scope.DurationSeconds > bounds.Seconds:
		found = append(found, field.Forbidden(path.Child("durationSeconds"),
			fmt.Sprintf("is longer than %d, which is %s", bounds.Seconds, stated("maxTimeBoxSeconds", bounds.SecondsBy))))
	}
	if scope.Match != nil {
		found = append(found, checkScopeMatch(path.Child("match"), scope.Match, &request.Operation)...)
	}
	return found
}

// stated says where a bound stands. Without a policy that states one it is the least.
func stated(setting string, by policy.PolicyID) string {
	if by.Name == "" {
		return "all that is allowed where no policy says more in approvals." + setting
	}
	return fmt.Sprintf("approvals.%s of AgentPolicy %s/%s", setting, by.Namespace, by.Name)
}

// checkScopeMatch refuses patterns that do not match what the question itself is about: they would be about something
// that nobody has shown to the approver.
func checkScopeMatch(path *field.Path, match *v1alpha1.ScopeMatch, operation *v1alpha1.GrantOperation) field.ErrorList {
	var found field.ErrorList
	if at := path.Child("name"); match.Name != "" {
		switch {
		case !namePattern.MatchString(match.Name):
			found = append(found, field.Invalid(at, omitted, "must be lower-case letters, digits, - and . with * as wildcard, and begin with a letter or digit"))
		case !policy.MatchName(match.Name, operation.Target.Name):
			found = append(found, field.Invalid(at, omitted, fmt.Sprintf("does not match the name in the question, %s", operation.Target.Name)))
		}
	}
	at := path.Child("commands")
	fits := func(pattern string) bool { return policy.MatchCommand(pattern, operation.Command) }
	malformed := slices.IndexFunc(match.Commands, func(pattern string) bool { return !commandPattern.MatchString(pattern) })
	switch {
	case len(match.Commands) == 0:
	case operation.Verb != v1alpha1.VerbConnect || operation.Target.Subresource != "exec":
		found = append(found, field.Forbidden(at, "only an exec has commands; leave them out"))
	case malformed >= 0:
		found = append(found, field.Invalid(at.Index(malformed), omitted, "must be printable ASCII and begin with neither * nor a space"))
	case len(operation.Command) == 0:
		found = append(found, field.Forbidden(at, "the command in the question cannot be told word by word, so only it itself can be approved; leave them out"))
	case !slices.ContainsFunc(match.Commands, fits):
		found = append(found, field.Invalid(at, omitted, "none of them matches the command in the question"))
	}
	return found
}

// stampUses writes the uses of a wider answer that names none, so that what is stored says what it allows.
func (r *objectReview) stampUses(d *v1alpha1.GrantDecision, request *v1alpha1.PermissionRequest) {
	wide := d.Scope.Type == v1alpha1.ScopeSession || d.Scope.Type == v1alpha1.ScopeTimeBoxed
	if wide && d.Scope.Uses == 0 && d.Verdict == v1alpha1.VerdictApprove {
		d.Scope.Uses = r.widthBounds(request).Uses
	}
}

// scopeLabel is the widest scope of the approvals beyond Exact; empty when there is none.
func scopeLabel(g *v1alpha1.PermissionGrant) string {
	widest := policy.ScopeExact
	for i := range g.Spec.Decisions {
		d := &g.Spec.Decisions[i]
		if scope := policy.ScopeType(d.Scope.Type); d.Verdict == v1alpha1.VerdictApprove && scope.WiderThan(widest) && d.Scope.Type != "" {
			widest = scope
		}
	}
	if widest == policy.ScopeExact {
		return ""
	}
	return string(widest)
}

// stampScope writes the label by which a wider answer is found.
func stampScope(g *v1alpha1.PermissionGrant) []jsonpatch.Operation {
	scope := scopeLabel(g)
	switch {
	case scope == "" || g.Labels[v1alpha1.LabelScope] == scope:
		return nil
	case g.Labels == nil:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/labels", map[string]string{v1alpha1.LabelScope: scope})}
	default:
		path := "/metadata/labels/" + strings.ReplaceAll(v1alpha1.LabelScope, "/", "~1")
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", path, scope)}
	}
}

// scopeLabelled is the label that an answer of a wider scope gives its grant; nil when the request adds none.
func (r *objectReview) scopeLabelled() map[string]string {
	g, old, err := read[v1alpha1.PermissionGrant](r.req)
	if err != nil || old == nil || len(g.Spec.Decisions) <= len(old.Spec.Decisions) {
		return nil
	}
	if scope := scopeLabel(g); scope != "" {
		return map[string]string{v1alpha1.LabelScope: scope}
	}
	return nil
}
