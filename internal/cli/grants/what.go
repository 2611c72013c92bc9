package grants

import (
	"fmt"
	"strings"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/screen"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// Beginnings of lines of a question's change, as the manager writes them.
const (
	lineCommand = "command: "
	lineOptions = "options: "
	lineObject  = "object: "
	specPrefix  = "spec."
)

// most of one line of a column, before the table cuts it; of a name as the API server bounds it.
const (
	maxCell = 160
	maxName = 253
)

// what is asked, as a column shows it: "update deploy/api: replicas: 3 -> 6 (+2)", "exec pod/cart-0: ss -lntp".
func what(g *v1alpha1.PermissionGrant) string {
	target := displayTarget(g)
	var lines []string
	for _, line := range g.Spec.Request.Change {
		if command, ok := strings.CutPrefix(line, lineCommand); ok {
			return target + ": " + screen.Line(command, maxCell)
		}
		if !strings.HasPrefix(line, lineOptions) && !strings.HasPrefix(line, lineObject) {
			lines = append(lines, strings.TrimPrefix(line, specPrefix))
		}
	}
	switch len(lines) {
	case 0:
		return target
	case 1:
		return target + ": " + screen.Line(lines[0], maxCell)
	default:
		return fmt.Sprintf("%s: %s (+%d)", target, screen.Line(lines[0], maxCell), len(lines)-1)
	}
}

// displayTarget is the operation alone: "delete pvc/data-postgres-0". It is derived from the question and not read from
// the status, which a wide answer changes.
func displayTarget(g *v1alpha1.PermissionGrant) string {
	t := &g.Spec.Request.Operation.Target
	return kube.DisplayTarget(policy.Verb(g.Spec.Request.Operation.Verb), policy.Target{
		Group: t.Group, Version: t.Version, Resource: t.Resource, Subresource: t.Subresource, Namespace: t.Namespace, Name: t.Name,
	})
}
