// Package enforcement compiles the scope (who is governed) and the floor (what stays closed to agents whatever
// happens to the manager) into configuration of the API server, applies it, and proves with canary requests that the
// API server acts on it.
//
// Everything written here has no owner reference and refers to no other object, so it outlives the operator: with the
// manager dead or uninstalled, the floor still answers 403, every other governed write fails closed, and nobody else
// notices (requirements K-2, K-6).
//
// What admission cannot close: Kubernetes shows writes of ValidatingAdmissionPolicies, MutatingAdmissionPolicies and
// their bindings to no admission policy and to no webhook, so that nobody can lock a cluster. RBAC must keep governed
// identities from them.
package enforcement
