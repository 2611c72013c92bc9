package release

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/enforcement"
)

// named are the names that the manager gives whatever else it writes.
var named = []string{
	enforcement.WebhookConfiguration, enforcement.FloorAuthority, enforcement.FloorPods, enforcement.FloorSelf,
	enforcement.FloorForbidden,
	enforcement.FlowAgents, enforcement.FlowExempt, enforcement.PriorityLevel,
}

// ours tells whether the manager wrote a cluster-scoped object. A lost label hides none of the names that always exist,
// and a name that only looks like one of ours is left to its owner.
func ours(object client.Object) bool {
	return slices.Contains(named, object.GetName()) ||
		strings.HasPrefix(object.GetName(), "stepbeyond-") && object.GetLabels()["app.kubernetes.io/managed-by"] == "stepbeyond"
}
