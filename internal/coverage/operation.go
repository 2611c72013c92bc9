package coverage

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Operation is what a verb of discovery becomes on the way to admission.
type Operation string

const (
	// OperationRead is every verb that does not pass admission.
	OperationRead Operation = "read"
	// OperationConnect is every verb of a resource whose kind are options of a connection.
	OperationConnect Operation = "connect"
	OperationCreate  Operation = "create"
	OperationUpdate  Operation = "update"
	OperationDelete  Operation = "delete"
	// OperationDeleteCollection is the deletion of one of many objects, which arrives without a name.
	OperationDeleteCollection Operation = "deletecollection"
)

// operations in the order of the matrix.
var operations = []Operation{
	OperationCreate, OperationUpdate, OperationDelete, OperationDeleteCollection, OperationConnect, OperationRead,
}

var operationOf = map[string]Operation{
	"create": OperationCreate, "update": OperationUpdate, "patch": OperationUpdate, "delete": OperationDelete,
	"deletecollection": OperationDeleteCollection, "get": OperationRead, "list": OperationRead, "watch": OperationRead,
}

// connections are the kinds that open one: admission sees a connect for whatever verb carries them.
var connections = []schema.GroupVersionKind{
	{Version: "v1", Kind: "NodeProxyOptions"}, {Version: "v1", Kind: "PodAttachOptions"}, {Version: "v1", Kind: "PodExecOptions"},
	{Version: "v1", Kind: "PodPortForwardOptions"}, {Version: "v1", Kind: "PodProxyOptions"}, {Version: "v1", Kind: "ServiceProxyOptions"},
}

// verbsOf sorts a resource's verbs by operation. A verb that this package does not know is an error.
func verbsOf(r *Resource) (map[Operation][]string, error) {
	verbs := map[Operation][]string{}
	for _, verb := range slices.Sorted(slices.Values(r.Verbs)) {
		operation, ok := operationOf[verb]
		if !ok {
			return nil, fmt.Errorf("%s: verb %q has no operation", r.Path(), verb)
		}
		if slices.Contains(connections, r.Kind) {
			operation = OperationConnect
		}
		verbs[operation] = append(verbs[operation], verb)
	}
	return verbs, nil
}
