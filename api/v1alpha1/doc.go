// Package v1alpha1 holds the stored types of Step Beyond: ClusterAgentPolicy, AgentPolicy, AgentSession and
// PermissionGrant.
//
// Humans and GitOps write spec, the system writes status. Everything that the API server can check without other
// objects or the caller's identity is in the schema: bounds, enums, unions, immutability. Values that the project's
// specifications name keep the specifications' spelling (AUTO_WITH_DISCLOSURE, standard, runtime-backed); all other
// values are UpperCamelCase. Units are part of names (...Seconds, ...Percent), names of points in time end in Time.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package=../../internal/applyconfiguration
// +groupName=stepbeyond.dev
package v1alpha1
