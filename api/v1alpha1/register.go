package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: "stepbeyond.dev", Version: "v1alpha1"}

// SchemeGroupVersion is GroupVersion under the name that generated code expects.
var SchemeGroupVersion = GroupVersion

var schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme registers every kind of this package.
var AddToScheme = schemeBuilder.AddToScheme

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ClusterAgentPolicy{}, &ClusterAgentPolicyList{},
		&AgentPolicy{}, &AgentPolicyList{},
		&AgentSession{}, &AgentSessionList{},
		&PermissionGrant{}, &PermissionGrantList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Resource names a resource of this group, for errors of k8s.io/apimachinery/pkg/api/errors.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}
