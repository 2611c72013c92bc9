package v1alpha1

// Labels that people and the system set.
const (
	// LabelProfile on a Namespace joins it to the profile of that name (ClusterAgentPolicy.spec.profiles). An unknown
	// value governs the namespace and refuses every governed write in it.
	LabelProfile = "stepbeyond.dev/profile"

	// LabelSession on a PermissionGrant is the name of the session that asked.
	LabelSession = "stepbeyond.dev/session"

	// LabelSessionNamespace on a PermissionGrant is the namespace of the session that asked; it differs from the
	// grant's own namespace when the target lives in another governed namespace.
	LabelSessionNamespace = "stepbeyond.dev/session-namespace"

	// LabelVerb on a PermissionGrant is the verb of the operation asked about.
	LabelVerb = "stepbeyond.dev/verb"

	// LabelScope on a PermissionGrant is the widest scope of its approvals, Session or TimeBoxed, written with the answer:
	// an index by which wide answers are found. What they allow is in the answers alone. Absent: all are Exact.
	LabelScope = "stepbeyond.dev/scope"

	// LabelTemplate on an AgentSession is the session template it was made from; a session opened by a person has none.
	LabelTemplate = "stepbeyond.dev/template"

	// LabelRootOwner on an AgentSession with lifetime Pod is the UID of the pod's root owner, so that the sessions of one
	// workload's pods find each other.
	LabelRootOwner = "stepbeyond.dev/root-owner"

	// LabelQuestion on a PermissionGrant is the 16 base32 characters of its digest that are also in its name. All
	// questions about one digest share them, so one list finds the earlier ones (requirement G-7).
	LabelQuestion = "stepbeyond.dev/question"
)

// ExtraRelay is the key of userInfo.extra by which a relay says, while it impersonates a person, which ServiceAccount it is.
// The API server lets it pass only from who may impersonate that key and value.
const ExtraRelay = "stepbeyond.dev/relay"

// Annotations. The two stamps are written by the server only: a governed identity cannot set or change them.
const (
	// AnnotationCreatedBy on any object names the session that created it, with a keyed digest over session, resource,
	// namespace and name. Only a stamp that verifies gives the origin ThisSession.
	AnnotationCreatedBy = "stepbeyond.dev/created-by"

	// AnnotationTemplateWriter in the metadata of a pod template names the session that last wrote the template. It is
	// lineage only and never gives an origin.
	AnnotationTemplateWriter = "stepbeyond.dev/template-writer"

	// AnnotationUser on a Pod names the human whose work it does, where the session template says
	// source PodAnnotation. It does not count when a governed identity wrote the pod template.
	AnnotationUser = "stepbeyond.dev/user"

	// AnnotationOpenedBy on an AgentSession is the authenticated username that created it, written by the server
	// and never changed. The manager's own sessions have none.
	AnnotationOpenedBy = "stepbeyond.dev/opened-by"
)
