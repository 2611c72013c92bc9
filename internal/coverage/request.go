package coverage

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stepbeyond.dev/stepbeyond/policy/kube"
)

// Touched is the annotation that the update of an example sets.
const Touched = "acme.example/touched"

// requestOf is the review of an operation on an example: an update sets [Touched], or one replica more.
func requestOf(row *Row, namespace string) (kube.Request, error) {
	at := Place{Name: "own", Number: 1}
	if row.Namespaced {
		at.Namespace = namespace
	}
	kind := row.Kind
	object, _, err := Example(kind, at)
	if err != nil {
		return kube.Request{}, err
	}
	identify(object)
	request := kube.Request{
		Group: row.Group, Version: row.Version, Resource: row.Resource.Resource, Subresource: row.Subresource,
		Kind: kind.Kind, Namespace: at.Namespace, Name: object.GetName(),
		ServiceAccount: kube.ServiceAccount{Namespace: home, Name: "agent"},
	}
	if row.GroupResource() == (schema.GroupResource{Resource: "namespaces"}) {
		request.Namespace = request.Name // as admission does
	}
	switch row.Operation {
	case OperationCreate:
		request.Operation, request.Object = "CREATE", object.Object
	case OperationUpdate:
		request.Operation, request.OldObject = "UPDATE", object.Object
		request.Object = touched(object).Object
		if row.Subresource == "scale" {
			request.Parent, err = parentOf(row, at)
		}
	case OperationDelete:
		request.Operation, request.OldObject = "DELETE", object.Object
	case OperationDeleteCollection:
		request.Operation, request.OldObject, request.Name = "DELETE", object.Object, ""
	case OperationConnect:
		request.Operation, request.Object = "CONNECT", object.Object
	}
	return request, err
}

// identify gives an object what every stored one has.
func identify(object *unstructured.Unstructured) {
	object.SetUID("11111111-2222-3333-4444-555555555555")
	object.SetResourceVersion("1")
}

// touched is the object after an update.
func touched(object *unstructured.Unstructured) *unstructured.Unstructured {
	changed := object.DeepCopy()
	if object.GetKind() == "Scale" {
		spec, _ := changed.Object["spec"].(map[string]any)
		replicas, _ := spec["replicas"].(int64)
		spec["replicas"] = replicas + 1
		return changed
	}
	annotations := changed.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[Touched] = "true"
	changed.SetAnnotations(annotations)
	return changed
}

// parentOf is the object that a scale changes. Its kind is not in the row of the subresource, so the built-in kinds that have a
// scale are named here; of any other kind the webhook reads the parent and finds nothing more in it.
func parentOf(row *Row, at Place) (map[string]any, error) {
	kind, ok := scaled[row.GroupResource()]
	if !ok {
		return nil, nil
	}
	object, _, err := Example(schema.GroupVersionKind{Group: row.Group, Version: row.Version, Kind: kind}, at)
	if err != nil {
		return nil, err
	}
	identify(object)
	return object.Object, nil
}

var scaled = map[schema.GroupResource]string{
	{Group: "apps", Resource: "deployments"}: "Deployment", {Group: "apps", Resource: "replicasets"}: "ReplicaSet",
	{Group: "apps", Resource: "statefulsets"}: "StatefulSet", {Resource: "replicationcontrollers"}: "ReplicationController",
}
