package policy

import "strings"

// Set is everything that the engine is compiled from. The zero value of a field means none.
type Set struct {
	// Baseline is the embedded, versioned floor and default catalogue; it counts for every operation.
	Baseline Policy
	// Cluster policies count for every operation.
	Cluster []Policy
	// Profiles by name. A profile counts where a namespace is bound to it.
	Profiles map[string]Policy
	// Namespaces that are governed, by name.
	Namespaces map[string]Namespace
}

// Namespace is how one governed namespace takes part.
type Namespace struct {
	// Profile names an entry of Set.Profiles.
	Profile string
	// Policy is the namespace's own policy; nil when it has none.
	Policy *Policy
}

// PolicyID identifies one generation of one policy object.
type PolicyID struct {
	Kind       string
	Namespace  string
	Name       string
	UID        string
	Generation int64
}

// RulePrefix is how rule names of this policy begin in messages: "default", "payments/default", "baseline".
func (id PolicyID) RulePrefix() string {
	if id.Namespace == "" || id.Kind == KindProfile {
		return id.Name
	}
	return id.Namespace + "/" + id.Name
}

// Kinds of PolicyID that are not API kinds.
const (
	KindBaseline = "Baseline"
	// KindProfile marks an AgentPolicy of the system namespace.
	KindProfile = "Profile"
)

// Policy is one object's contribution.
type Policy struct {
	ID        PolicyID
	Rules     []Rule
	Catalogue []CatalogueEntry
	Approvals Approvals
}

// Rule tightens: where it matches, the class is at least its own (requirement C-3).
type Rule struct {
	Name        string
	Class       Class // ClassAsk or ClassForbidden
	Enforcement Enforcement
	Match       Match
	// When is a CEL expression that must be true as well; empty means it always is. A rule whose expression errs or
	// exceeds its cost counts as matched.
	When string
	// Detail says why, in literal text that is safe to show to an agent; may be empty.
	Detail string
	// Recovery is the next step that a refusal offers; literal text, empty for the default sentence of its reason.
	Recovery string
}

// CatalogueEntry adds facts about kinds or tools that nothing else can know. An entry whose expression errs or exceeds
// its cost counts as unmatched.
type CatalogueEntry struct {
	Name    string
	Match   Match
	When    string
	Present []Fact
	Absent  []Fact
	// Effect is what the operation does as a whole; empty when the entry does not say.
	Effect Effect
	// Detail is shown as the reason of the facts; literal text.
	Detail string
	// Recovery is the next step when one of the facts prevents the operation; literal text, may be empty.
	Recovery string
}

// Effect is what an operation does as a whole.
type Effect string

// EffectRead: the tool or request only reads. What is not known about it does not count then; what is known to harm does
// (requirement C-4).
const EffectRead Effect = "Read"

// Match selects operations. Any entry of any list matches.
type Match struct {
	Kubernetes []KubernetesSelector
	// Tools are names of tools and match whole; "*" stands alone or as one suffix ("mcp:kubernetes/*").
	Tools []string
}

// KubernetesSelector selects Kubernetes requests. Every non-empty field must match; an empty field matches anything.
type KubernetesSelector struct {
	// Groups are API groups; "" is the core group, "*" any.
	Groups []string
	// Resources are plural resources, with their subresource as in "deployments/scale"; "*" is any with any
	// subresource, "pods/*" any subresource of pods.
	Resources []string
	// Names match whole; "*" stands alone or as one suffix ("web-*"). An empty request name matches only "*": but a read
	// without a name (a list, a watch) shows every object, so rules and what speaks against an operation take it for a
	// match of any name.
	Names []string
	Verbs []Verb
	// Origins of the target.
	Origins []Origin
}

func (s *KubernetesSelector) matches(op *Operation) bool {
	return s.matchesBesideName(op) && matchesName(s.Names, op.Target.Name)
}

// touches tells whether the operation is, or can show, something that the selector selects.
func (s *KubernetesSelector) touches(op *Operation) bool {
	return s.matchesBesideName(op) && (op.readsMany() || matchesName(s.Names, op.Target.Name))
}

func (s *KubernetesSelector) matchesBesideName(op *Operation) bool {
	t := &op.Target
	return matchesAny(s.Groups, t.Group) && matchesResource(s.Resources, t) &&
		matchesValue(s.Verbs, op.Verb) && matchesValue(s.Origins, t.Origin)
}

// readsMany tells whether the operation is a read that names no object: any may be among what it shows.
func (op *Operation) readsMany() bool {
	return op.Kubernetes != nil && op.Verb == VerbRead && op.Target.Name == ""
}

func matchesAny(list []string, value string) bool {
	if len(list) == 0 {
		return true
	}
	for _, entry := range list {
		if entry == value || entry == "*" {
			return true
		}
	}
	return false
}

func matchesValue[T comparable](list []T, value T) bool {
	if len(list) == 0 {
		return true
	}
	for _, entry := range list {
		if entry == value {
			return true
		}
	}
	return false
}

func matchesResource(list []string, t *Target) bool {
	if len(list) == 0 {
		return true
	}
	for _, entry := range list {
		if entry == "*" {
			return true
		}
		resource, subresource, _ := strings.Cut(entry, "/")
		if resource != t.Resource {
			continue
		}
		if subresource == t.Subresource || subresource == "*" && t.Subresource != "" {
			return true
		}
	}
	return false
}

func matchesName(list []string, name string) bool {
	if len(list) == 0 {
		return true
	}
	for _, entry := range list {
		prefix, wild := strings.CutSuffix(entry, "*")
		switch {
		case wild && prefix == "":
			return true
		case name == "":
		case wild && strings.HasPrefix(name, prefix), entry == name:
			return true
		}
	}
	return false
}

// Approvals say what a question needs. Several policies join to the strictest.
type Approvals struct {
	// DecideWithinSeconds bounds a question's wait for an answer; 0 means not set.
	DecideWithinSeconds int32
	// UseWithinSeconds bounds the time from approval to use; 0 means not set.
	UseWithinSeconds int32
	// AskAgainAfterSeconds is how long a denied operation is refused without asking; 0 means not set.
	AskAgainAfterSeconds int32
	// MaxPendingPerSession caps a session's open questions; nil means not set, 0 that nothing may be asked.
	MaxPendingPerSession *int32
	// MaxPendingPerNamespace caps the open questions of all sessions of a namespace; as MaxPendingPerSession.
	MaxPendingPerNamespace *int32
	Requirements           []Requirement

	// WidestScope, MaxTimeBoxSeconds and MaxTimeBoxUses bound what an approver may answer; empty and 0 mean not set. They
	// bound no operation, so no decision holds them: [Engine.WidthBounds] does.
	WidestScope       ScopeType
	MaxTimeBoxSeconds int32
	MaxTimeBoxUses    int32
}

// Requirement is one condition on the approvers of a question. Every requirement that matches must be met.
type Requirement struct {
	Name     string
	Required int32
	// ApproverGroups limits who counts; empty means anyone with verb approve.
	ApproverGroups []string
	// Facts, Resources and Rules select the operations; all empty means every ASK. Facts and Rules: any entry that is
	// among the reasons matches; Resources narrow further.
	Facts     []Fact
	Resources []string
	Rules     []string
}
