// Package confinement finds what RBAC lets an identity do past admission: reads that nobody judges, and ways to act as
// somebody else (requirement K-10). It knows nothing of a cluster; it is given the RBAC objects.
//
// Writes are not its subject, but for those of admission itself, which no webhook or policy is shown: admission sees the
// others, whatever RBAC allows. Groups other than those that every
// ServiceAccount is in are not known here, so what a governed user gets by such a group is not found.
package confinement
