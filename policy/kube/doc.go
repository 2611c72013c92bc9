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
//	object created with ownerReferences           Destructive                  ASK
//	finalizer added to a foreign object           Security                     ASK
//	foreign workload to 0, foreign Job suspended  Destructive                  ASK
//	foreign Pod deleted, a replica stands in      MaterialAssumption           AUTO_WITH_DISCLOSURE
//	foreign Pod deleted otherwise, or at once     Destructive                  ASK
//	Service reachable from outside                External                     ASK
//	selector of a foreign Service changed         Security                     ASK
//	NetworkPolicy that allows, changed, deleted   Security                     ASK
//	PodDisruptionBudget over all Pods             Security                     ASK
//	Secret created, changed, deleted              Credentials                  ASK
//	Secret that is a token, serviceaccounts/token EscalatesAuthority           FORBIDDEN
//	stepbeyond.dev/ key on a Namespace or a Pod   EscalatesAuthority           FORBIDDEN
//	  and any of them through a subresource       EscalatesAuthority           FORBIDDEN
//	pod-security.kubernetes.io/ key on it         Security                     ASK
//	*/proxy                                       EscalatesAuthority           FORBIDDEN
//	exec in an own Pod, command, no stdin or tty  every harm Absent            AUTO
//	ephemeral container                           Security                     ASK
//
// # What no admission sees
//
// [Authorization.Operation] reads what an authorizer is asked: get, list and watch are parsed reads, and the verbs of
// impersonation are one of their own. A namespace outside of the session is OutsideAuthority as for a write.
//
// # What controllers do
//
// An agent that may not do a thing can write what makes a controller do it, and no request of the controller's is
// reviewed. So the facts of these writes are those of what follows from them:
//
//	labels of a foreign or a controlled Pod       Destructive                  ASK
//	Job with manualSelector, also in a CronJob    Destructive                  ASK
//	smaller limit of a foreign object: deadlines, Destructive                  ASK
//	  ttlSecondsAfterFinished, history, backoff
//	StatefulSet that deletes its claims, or that  Destructive                  ASK
//	  is told to
//	autoscaler of a foreign Deployment            MaterialAssumption           AUTO_WITH_DISCLOSURE
//	autoscaler of anything else foreign, or to 0  Destructive                  ASK
//	PersistentVolumeClaim for the pods that is    Destructive                  ASK
//	  not the session's and was not used before
//	claim with dataSource(Ref) or volumeName      Security                     ASK
//	labels that a foreign Service selects         Security                     ASK
//	labels of a Pod that a foreign ReplicaSet     Destructive                  ASK
//	  selects
//	selector of a workload that takes foreign     Destructive                  ASK
//	  Pods or ReplicaSets without a controller
//	stepbeyond.dev/ key in the metadata of a      EscalatesAuthority           FORBIDDEN
//	  template, but for the server's template-writer
//
// A claim is the session's when it bears its stamp. One that does not exist counts as its own: there is nothing to lose
// or to read, and whoever makes it later makes it for the pods that wait for it. What is made for an own StatefulSet
// from its claim templates is its own too; what was there before it under those names is not.
//
// # Pod templates
//
// A pod spec is judged when it is created, and as a whole when an update changes what it runs: whoever sets the image
// of a privileged pod runs privileged. Of a workload that this session did not make, every Secret and every claim that
// the new template uses counts then, because what the agent runs there reads them. Updates that touch only resources and
// scheduling are not judged, but for the priority classes of the system and the way to control-plane nodes. The yardstick
// is the baseline profile of the Pod Security Standards as of Kubernetes 1.37; everything that it refuses is at least ASK:
//
//	foreign serviceAccountName                    EscalatesAuthority           FORBIDDEN
//	hostNetwork, hostPID, hostIPC, hostPath       EscalatesAuthority           FORBIDDEN
//	privileged, Windows hostProcess               EscalatesAuthority           FORBIDDEN
//	capabilities beyond the runtime's default     EscalatesAuthority           FORBIDDEN
//	default capability that was not added before, Security                     ASK
//	  but NET_BIND_SERVICE
//	hostPort                                      Security, External           ASK
//	host of a probe or lifecycle handler          Security                     ASK
//	procMount, unless hostUsers is false          Security                     ASK
//	unsafe sysctls                                Security                     ASK
//	seccomp or AppArmor Unconfined, SELinux       Security                     ASK
//	nodeName, another runtimeClassName            Security                     ASK
//	priorityClassName that begins with system-    Security                     ASK
//	another priorityClassName than before         MaterialAssumption           AUTO_WITH_DISCLOSURE
//	toleration of control-plane taints or of all, Security                     ASK
//	  selector or affinity for such nodes
//	volume of csi, nfs or any other kind of its   Security                     ASK
//	  own, which passes claims and classes by
//	a Secret that the object did not use before   Credentials                  ASK
//
// The first four reach the node or another identity by themselves. The others loosen a confinement that still has the
// rest around it, and legitimate workloads set them, so a person may allow them. Runtimes differ in the capabilities that
// they give by default, so adding one of those is asked about; NET_BIND_SERVICE alone is free, as the restricted profile
// has it.
//
// # Deputies
//
// An object of any other kind is searched, because controllers make pods and other objects of it with rights of their
// own. A map with a list of containers is a pod spec and counts as one of a built-in kind; what the platform's catalogue
// says of the kind takes none of it back. What is only like a part of a pod spec is asked about:
//
//	container with an image, outside a pod spec   as in a pod spec             FORBIDDEN
//	identity or way to the node, elsewhere        Security                     ASK
//	pod spec that cannot be read, or too deep     Ambiguous                    ASK
//	whole object for another controller to write  Security                     ASK
//	  of RBAC, admission, API extension,          EscalatesAuthority           FORBIDDEN
//	  certificates or Step Beyond itself
//	stepbeyond.dev/ key in labels or annotations  EscalatesAuthority           FORBIDDEN
//	  of what is made of the object
package kube
