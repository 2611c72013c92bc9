package policytest

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

// Group, version and kind of a policy test.
const (
	APIVersion = "test.stepbeyond.dev/v1alpha1"
	Kind       = "PolicyTest"
)

// Test is one file cases.yaml.
type Test struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        Metadata `json:"metadata"`
	Spec            Spec     `json:"spec"`
}

// Metadata names a test.
type Metadata struct {
	Name string `json:"name"`
}

// Spec says under which policies which cases have which answer.
type Spec struct {
	// Policies are files below the folder: any mix of ClusterAgentPolicy, AgentPolicy and Namespace documents.
	// Omitted: policy.yaml.
	Policies []string `json:"policies,omitempty"`
	// BaselineVersion that the policies must put in force. Omitted: whichever they pin.
	BaselineVersion string `json:"baselineVersion,omitempty"`
	// Now is the one clock of all cases.
	Now metav1.Time `json:"now"`
	// Sessions by unique name.
	Sessions []Session `json:"sessions"`
	// Cases by unique name.
	Cases []Case `json:"cases"`
}

// SessionState is where a session stands: Pending (its object does not exist yet) or a state of the engine.
type SessionState string

// SessionPending is the state of a session whose object does not exist yet.
const SessionPending SessionState = "Pending"

// Session is a short AgentSession.
type Session struct {
	Name string `json:"name"`
	// Namespace of the session.
	Namespace string `json:"namespace"`
	// Profile labels the namespace. Omitted: a Namespace document does.
	Profile string `json:"profile,omitempty"`
	// Template that the session is made from, by name. Omitted: Authority and ServiceAccountName say it.
	Template string `json:"template,omitempty"`
	// Authority of a session that a person opened, instead of Template's.
	Authority *v1alpha1.Authority `json:"authority,omitempty"`
	// ServiceAccountName of the caller. Omitted: the template's.
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// Created lists what the session made, as [group/]kind/namespace/name or [group/]resource/namespace/name, with
	// an empty namespace for a cluster-scoped object. Their origin is ThisSession, everything else's Unknown.
	Created []string `json:"created,omitempty"`
	// State is Active, Suspended, Pending, Missing, Ambiguous or Ended. Omitted: Active.
	State SessionState `json:"state,omitempty"`
	// StateReason says why a session is Missing. Omitted: NoSession.
	StateReason policy.Reason `json:"stateReason,omitempty"`
	// Epoch of the session. Omitted: 1.
	Epoch int64 `json:"epoch,omitempty"`
	// DeadlineTime of the session. Omitted: an hour from now.
	DeadlineTime *metav1.Time `json:"deadlineTime,omitempty"`
	// StrictScope: the user limited the work to what was asked, so optional operations are refused.
	StrictScope bool `json:"strictScope,omitempty"`
	// Hold is a change of plan that the model has not answered yet. Omitted: none.
	Hold *Hold `json:"hold,omitempty"`
}

// Hold is a short SteeringInput in the session's namespace that old-plan work waits for.
type Hold struct {
	// Name of the steering input.
	Name string `json:"name"`
	// Author who changed the plan, by username.
	Author string `json:"author"`
	// SinceTime is when the input was accepted. Omitted: now.
	SinceTime *metav1.Time `json:"sinceTime,omitempty"`
}

// Case is one operation and the answer that it must have.
type Case struct {
	Name string `json:"name"`
	// Proves lists the requirements that the case proves.
	Proves []string `json:"proves,omitempty"`
	// Session by name.
	Session string `json:"session"`
	// Grants that exist, oldest first. Omitted: none.
	Grants    []Grant   `json:"grants,omitempty"`
	Operation Operation `json:"operation"`
	Want      Want      `json:"want"`
	// WantAgain is the answer to the same operation after the first answer had its consequence: a question was opened,
	// or a use of a grant was spent. Omitted: it is not sent again.
	WantAgain *Want `json:"wantAgain,omitempty"`
}

// Operation is a union: exactly one of kubernetes and tool is set.
type Operation struct {
	Kubernetes *KubernetesOperation `json:"kubernetes,omitempty"`
	Tool       *ToolOperation       `json:"tool,omitempty"`
	// Spared: the operation goes on under a hold, such as a catalogued verifier or the reconciliation itself. Reads and
	// dry runs do without it.
	Spared bool `json:"spared,omitempty"`
}

// ToolOperation is a tool call as the agent's host sees it.
type ToolOperation struct {
	// Name of the tool, with its server, as in mcp:kubernetes/pods_list.
	Name string `json:"name"`
	// Description that the tool's server gives. Omitted: not known.
	Description string         `json:"description,omitempty"`
	Arguments   map[string]any `json:"arguments,omitempty"`
	// Declared is what the agent or its adapter says. Omitted: nothing.
	Declared Declared `json:"declared,omitzero"`
	// Context tells that the call reads what the session itself holds.
	Context bool `json:"context,omitempty"`
	// Optional tells that the requested result does not need the call. Admission cannot know it of a Kubernetes request.
	Optional bool `json:"optional,omitempty"`
}

// Declared are a stage and facts that count only where they raise.
type Declared struct {
	Stage   policy.Stage `json:"stage,omitempty"`
	Present []string     `json:"present,omitempty"`
	Absent  []string     `json:"absent,omitempty"`
}

// KubernetesOperation is a request as admission sees it. What a manifest says need not be said again.
type KubernetesOperation struct {
	// Verb is create, update, delete or connect. A patch is an update.
	Verb policy.Verb `json:"verb"`
	// Manifest is the new object; not for delete and connect.
	Manifest Manifest `json:"manifest,omitzero"`
	// Old is the object before; for update required, for delete only its metadata when omitted.
	Old Manifest `json:"old,omitzero"`
	// Parent is the object that a scale changes.
	Parent Manifest `json:"parent,omitzero"`
	// Resource is the plural, with a subresource where one is meant, as in pods/exec. Omitted: guessed from the kind.
	Resource string `json:"resource,omitempty"`
	// Group and Version of the resource. Omitted: the manifest's, for a resource without one the core group and v1.
	Group   *string `json:"group,omitempty"`
	Version string  `json:"version,omitempty"`
	// Namespace of the target. Omitted: the manifest's; neither: the target is cluster-scoped.
	Namespace string `json:"namespace,omitempty"`
	// Name of the target. Omitted: the manifest's; neither: one object of a collection, or a generated name.
	Name string `json:"name,omitempty"`
	// Options are DeleteOptions; for connect what is connected to, as in {command: [ls]}.
	Options map[string]any `json:"options,omitempty"`
	// Origin of the target. Omitted: ThisSession for what the session made, else Unknown.
	Origin policy.Origin `json:"origin,omitempty"`
	// LastWriter is the field manager that wrote the target last.
	LastWriter string `json:"lastWriter,omitempty"`
	// Recreated: the target is a Pod whose controller has another ready replica.
	Recreated bool `json:"recreated,omitempty"`
	// ForeignClaims are claims of a StatefulSet's templates that are there already and that the session did not make.
	// Omitted: none is there. A claim that a pod names is foreign unless the session made it.
	ForeignClaims []string `json:"foreignClaims,omitempty"`
	DryRun        bool     `json:"dryRun,omitempty"`
}

// Manifest is an object: written out, or as a file below the folder.
type Manifest struct {
	File   string
	Object map[string]any
}

// UnmarshalJSON reads a file name or an object.
func (m *Manifest) UnmarshalJSON(source []byte) error {
	if json.Unmarshal(source, &m.File) == nil {
		return nil
	}
	if err := unmarshal(source, &m.Object); err != nil || m.Object == nil {
		return fmt.Errorf("a manifest is an object or the name of a file that holds one")
	}
	return nil
}

// PolicyState tells whether the policies are those that a grant was approved under.
type PolicyState string

// Policy states.
const (
	PoliciesCurrent PolicyState = "Current"
	PoliciesChanged PolicyState = "Changed"
)

// Grant is a PermissionGrant for the exact operation of a case. Session, epoch, stage and requester that it records are
// those of the case that uses it; the fields change them one by one.
type Grant struct {
	// Case whose operation was asked about. Omitted: the case that uses the grant.
	Case string `json:"case,omitempty"`
	// State of the grant. Omitted: Approved.
	State policy.GrantState `json:"state,omitempty"`
	// Uses that are left. Omitted: 1.
	Uses *int `json:"uses,omitempty"`
	// Session that asked, by name. Omitted: the case's.
	Session string `json:"session,omitempty"`
	// Requester that asked, by username. Omitted: the case's caller.
	Requester string `json:"requester,omitempty"`
	// Epoch that the question belongs to. Omitted: the session's.
	Epoch int64 `json:"epoch,omitempty"`
	// Stage that the grant is for. Omitted: the operation's.
	Stage policy.Stage `json:"stage,omitempty"`
	// Policies are Current or Changed since the approval. Omitted: Current.
	Policies PolicyState `json:"policies,omitempty"`
	// ExpirationTime of the question or the approval. Omitted: an hour from now.
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
	// ClosedTime is when a closed grant was closed. Omitted: now.
	ClosedTime *metav1.Time `json:"closedTime,omitempty"`
}

// Want is an answer. Class and verdict are required; what else is omitted is not compared.
type Want struct {
	Class   string         `json:"class"`
	Verdict policy.Verdict `json:"verdict"`
	// Reasons that must be among the answer's reason and the reasons for the class.
	Reasons []string `json:"reasons,omitempty"`
	// Rules and catalogue entries that must be among the reasons, as policy/name.
	Rules []string `json:"rules,omitempty"`
	// Requirements on the approvers: exactly these, as policy/name or name.
	Requirements []string `json:"requirements,omitempty"`
	// Disclosures: as many as these, each of which has the text. An empty list means none.
	Disclosures *[]string `json:"disclosures,omitempty"`
	// WouldBe are the rules in Warn and Audit that match.
	WouldBe *WantWouldBe `json:"wouldBe,omitempty"`
	// Detail lists texts that the message must have.
	Detail []string `json:"detail,omitempty"`
	// Next is a text that the next step in the message must have.
	Next string `json:"next,omitempty"`
}

// WantWouldBe is what rules in Warn and Audit would have done.
type WantWouldBe struct {
	// Class is the largest of theirs. Omitted: not compared.
	Class string `json:"class,omitempty"`
	// Rules are exactly these, as policy/name. Empty means none.
	Rules []string `json:"rules"`
}
