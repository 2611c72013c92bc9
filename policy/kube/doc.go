// Package kube reads Kubernetes requests for the engine: [Operation] finds the facts that only the object can tell,
// and [ExactForm] gives the canonical form of the request that a grant binds to.
//
// The package is pure: decoded JSON and plain data go in, plain data comes out. It sets only facts that need the
// request's content or the API server's own data; what follows from kind, verb and origin alone is the catalogue's to
// say. Facts join to the worst, so neither can take back what the other found.
//
// # Facts
//
// What is parsed, and the class that it gives by itself (requirements C-2, C-7):
//
//	target in a namespace of the session          Local, InScope               -
//	target or Namespace outside of them           OutsideAuthority             FORBIDDEN
//	deletion without a name                       Unbounded                    ASK
//	finalizer removed, ownerReferences changed    Destructive                  ASK
//	finalizer added to a foreign object           Security                     ASK
//	foreign workload to 0, foreign Job suspended  Destructive                  ASK
//	StatefulSet that deletes its claims           Destructive                  ASK
//	foreign Pod deleted, a replica stands in      MaterialAssumption           AUTO_WITH_DISCLOSURE
//	foreign Pod deleted otherwise, or at once     Destructive                  ASK
//	Service reachable from outside                External                     ASK
//	selector of a foreign Service changed         Security                     ASK
//	NetworkPolicy that allows, changed, deleted   Security                     ASK
//	Secret created, changed, deleted              Credentials                  ASK
//	Secret that is a token, serviceaccounts/token EscalatesAuthority           FORBIDDEN
//	stepbeyond.dev/ key on a Namespace            EscalatesAuthority           FORBIDDEN
//	pod-security.kubernetes.io/ key on it         Security                     ASK
//	*/proxy                                       EscalatesAuthority           FORBIDDEN
//	exec in an own Pod, command, no stdin or tty  every harm Absent            AUTO
//	ephemeral container                           Security                     ASK
//
// # Pod templates
//
// A pod spec is judged when it is created, and as a whole when an update changes what it runs: whoever sets the image
// of a privileged pod runs privileged. Updates that touch only resources and scheduling are not judged. The yardstick is
// the baseline profile of the Pod Security Standards as of Kubernetes 1.37; everything that it refuses is at least ASK:
//
//	foreign serviceAccountName                    EscalatesAuthority           FORBIDDEN
//	hostNetwork, hostPID, hostIPC, hostPath       EscalatesAuthority           FORBIDDEN
//	privileged, Windows hostProcess               EscalatesAuthority           FORBIDDEN
//	capabilities beyond the runtime's default     EscalatesAuthority           FORBIDDEN
//	hostPort                                      Security, External           ASK
//	host of a probe or lifecycle handler          Security                     ASK
//	procMount, unless hostUsers is false          Security                     ASK
//	unsafe sysctls                                Security                     ASK
//	seccomp or AppArmor Unconfined, SELinux       Security                     ASK
//	a Secret that the object did not use before   Credentials                  ASK
//
// The first four reach the node or another identity by themselves. The others loosen a confinement that still has the
// rest around it, and legitimate workloads set them, so a person may allow them.
package kube
