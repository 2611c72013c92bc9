package grants

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

// Bounds of the schema; the policy's are the API server's to know.
const (
	maxDuration = 7 * 24 * time.Hour
	maxUses     = 100
	maxPattern  = 253
	maxCommand  = 240
	maxCommands = 16
)

func (o *approveOptions) validateWidth(changed func(string) bool) error {
	timed := changed("for")
	switch {
	case o.once && (o.session || timed), o.session && timed:
		return usage("--once, --session and --for exclude each other")
	case timed && (o.duration < time.Second || o.duration > maxDuration || o.duration%time.Second != 0):
		return usage("--for: %s is not between 1s and 168h in whole seconds", o.duration)
	case changed("uses") && !o.session && !timed:
		return usage("--uses has no meaning without --session or --for: an exact approval has one use")
	case changed("uses") && (o.uses < 1 || o.uses > maxUses):
		return usage("--uses: %d is not between 1 and %d", o.uses, maxUses)
	case (changed("match") || changed("command")) && !timed:
		return usage("--match and --command have no meaning without --for: only an approval for a time has patterns")
	case (changed("match") || changed("command")) && len(o.names) != 1:
		return usage("--match and --command widen one question: name it")
	case changed("match") && strings.HasPrefix(o.match, "*"):
		return usage("--match: %q would match every name: begin with what the names have in common, as in 'web-*'", o.match)
	case changed("match") && (len(o.match) > maxPattern || !nameForm.MatchString(o.match)):
		return usage("--match: %q is not lower-case letters, digits, - and . with * as wildcard, at most %d characters", o.match, maxPattern)
	case len(o.commands) > maxCommands:
		return usage("--command: %d patterns, at most %d are possible", len(o.commands), maxCommands)
	}
	for i, command := range o.commands {
		switch {
		case strings.HasPrefix(command, "*"):
			return usage("--command: %q would match every command: begin with the program", command)
		case len(command) > maxCommand || !commandForm.MatchString(command):
			return usage("--command: %q is not a line of printable ASCII that begins with the program, at most %d characters", command, maxCommand)
		}
		for _, earlier := range o.commands[:i] {
			if earlier == command {
				return usage("--command: %q is given twice", command)
			}
		}
	}
	return nil
}

// scope that the flags ask for. Exact is sent as such, so that what is stored says it.
func (o *approveOptions) scope() *v1alpha1.GrantScope {
	switch {
	case o.session:
		return &v1alpha1.GrantScope{Type: v1alpha1.ScopeSession, Uses: o.uses}
	case o.duration > 0:
		scope := &v1alpha1.GrantScope{Type: v1alpha1.ScopeTimeBoxed, DurationSeconds: int32(o.duration / time.Second), Uses: o.uses}
		if o.match != "" || len(o.commands) > 0 {
			scope.Match = &v1alpha1.ScopeMatch{Name: o.match, Commands: o.commands}
		}
		return scope
	default:
		return &v1alpha1.GrantScope{Type: v1alpha1.ScopeExact}
	}
}

// fits refuses patterns that do not even match the question that they widen.
func fits(scope *v1alpha1.GrantScope, asked []*v1alpha1.PermissionGrant) error {
	m := scope.Match
	if m == nil {
		return nil
	}
	operation := &asked[0].Spec.Request.Operation
	if name := operation.Target.Name; m.Name != "" && !policy.MatchName(m.Name, name) {
		return fmt.Errorf("--match: %q does not match %s, which the question is about", m.Name, screened(name))
	}
	own := func(pattern string) bool { return policy.MatchCommand(pattern, operation.Command) }
	switch {
	case len(m.Commands) > 0 && operation.Target.Subresource != subresourceExec:
		return fmt.Errorf("--command has no meaning here: %s runs no command", displayTarget(asked[0]))
	case len(m.Commands) > 0 && len(operation.Command) == 0:
		return fmt.Errorf("--command: the command of %s cannot be told word by word, so no pattern covers it", asked[0].Name)
	case len(m.Commands) > 0 && !slices.ContainsFunc(m.Commands, own):
		return fmt.Errorf("--command: no pattern matches %s, which the question is about", quoted(strings.Join(operation.Command, " ")))
	}
	return nil
}

// subresourceExec runs a command in a pod; the only operation that has command patterns.
const subresourceExec = "exec"
