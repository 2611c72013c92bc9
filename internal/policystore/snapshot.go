package policystore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/baseline"
)

// NamespacePolicyName is the only name of an AgentPolicy outside the system namespace.
const NamespacePolicyName = "default"

// Snapshot is one consistent state of all policies. It is immutable.
type Snapshot struct {
	Engine *policy.Engine
	// Cluster policies in force, sorted by name.
	Cluster []policy.Policy
	// Baseline version in force: the newest that a cluster policy pins.
	BaselineVersion string
	// Scope is who is governed and enforced now, before what an earlier scope keeps.
	Scope enforcement.Scope
	// Onboarding are the governed namespaces whose profile only audits, sorted.
	Onboarding []string
	// Reads are the selectors of rules and catalogue entries about reads, of all policies.
	Reads enforcement.Reads
	// Released namespaces leave an earlier scope.
	Released []string

	namespaces map[string]Namespace
	approvers  map[enforcement.ServiceAccount]bool
	relays     map[enforcement.ServiceAccount]bool
	problems   map[types.UID][]policy.Problem
	users      map[string]string

	// nextExpiry is when the first exemption that counts now ends; zero when none does.
	nextExpiry time.Time

	clusterGenerations generations
	policyGenerations  map[client.ObjectKey]objectGeneration
}

// Namespace is what a governed namespace's profile and own policy say beyond rules.
type Namespace struct {
	// Profile is the value of the namespace's profile label.
	Profile string
	// Governing is the ClusterAgentPolicy that governs the namespace: the first by name that selects it.
	Governing string
	// Delegated is what that policy lets the namespace's own AgentPolicy set.
	Delegated []v1alpha1.DelegableSetting
	// ToolPrefixes of the tools that the namespace's own AgentPolicy may catalogue.
	ToolPrefixes []string
	// Policy is the profile's AgentPolicy; nil when the label names none that is valid, and then everything governed is
	// refused.
	Policy *v1alpha1.AgentPolicy
	// Templates for sessions in this namespace.
	Templates []v1alpha1.SessionTemplate
	// ModelTier and InitiativeMode of new sessions: the profile's, or the namespace's own where that is delegated; strict
	// may always be set (requirement K-3). Empty without a profile.
	ModelTier      v1alpha1.ModelTier
	InitiativeMode v1alpha1.InitiativeMode
	// WarnBeforeExpirySeconds and AskAgainAfterSeconds are the longest of the profile's and the namespace's own. 0 without a
	// profile.
	WarnBeforeExpirySeconds, AskAgainAfterSeconds int32
}

// Namespace returns what is known about a governed namespace; ok is false for one that is not governed.
func (s *Snapshot) Namespace(name string) (Namespace, bool) {
	n, ok := s.namespaces[name]
	return n, ok
}

// Governs tells whether the ServiceAccounts of the namespace are governed.
func (s *Snapshot) Governs(namespace string) bool {
	_, ok := s.namespaces[namespace]
	return ok
}

// GovernedUser returns the session namespace of a listed user; ok is false for one that is not listed.
func (s *Snapshot) GovernedUser(name string) (namespace string, ok bool) {
	namespace, ok = s.users[name]
	return namespace, ok
}

// MayApprove tells whether a ServiceAccount is named as an approver (requirement G-4).
func (s *Snapshot) MayApprove(namespace, name string) bool {
	return s.approvers[enforcement.ServiceAccount{Namespace: namespace, Name: name}]
}

// MayRelay tells whether a ServiceAccount is named as a relay of people's answers.
func (s *Snapshot) MayRelay(namespace, name string) bool {
	return s.relays[enforcement.ServiceAccount{Namespace: namespace, Name: name}]
}

// Problems of one policy object; an object with problems is not in force, its last valid generation is.
func (s *Snapshot) Problems(id types.UID) []policy.Problem { return s.problems[id] }

// Template finds the session template of a ServiceAccount.
func (s *Snapshot) Template(namespace, serviceAccount string) (v1alpha1.SessionTemplate, bool) {
	for _, template := range s.namespaces[namespace].Templates {
		if template.ServiceAccountName == serviceAccount {
			return template, true
		}
	}
	return v1alpha1.SessionTemplate{}, false
}

// Input is everything that a snapshot is built from.
type Input struct {
	Cluster    []v1alpha1.ClusterAgentPolicy
	Policies   []v1alpha1.AgentPolicy
	Namespaces []corev1.Namespace
	// Now decides which exemptions have ended.
	Now metav1.Time
}

// Build compiles a snapshot. It always gives one: what is wrong is left out and named in Problems, and what depends on it
// is refused by the engine, never allowed.
func Build(in Input) (*Snapshot, error) {
	b := assembly{
		in: in,
		snapshot: &Snapshot{
			namespaces: map[string]Namespace{}, approvers: map[enforcement.ServiceAccount]bool{}, relays: map[enforcement.ServiceAccount]bool{},
			problems: map[types.UID][]policy.Problem{}, users: map[string]string{},
		},
		set: policy.Set{Profiles: map[string]policy.Policy{}, Namespaces: map[string]policy.Namespace{}},
	}
	if err := b.chooseBaseline(); err != nil {
		return nil, err
	}
	b.addCluster()
	b.addNamespaces()
	engine, problems := policy.Compile(b.set)
	if len(problems) > 0 {
		// Every object was compiled alone before; a problem of the whole set is a defect of this package.
		return nil, fmt.Errorf("compile policies: %w", problems[0])
	}
	b.snapshot.Engine, b.snapshot.Cluster, b.snapshot.Reads = engine, b.set.Cluster, readsOf(&b.set, b.snapshot.users)
	return b.snapshot, nil
}

// assembly is a snapshot under construction.
type assembly struct {
	in       Input
	snapshot *Snapshot
	set      policy.Set
	valid    []*v1alpha1.ClusterAgentPolicy
	// incomplete: a cluster policy has no generation that could be in force.
	incomplete bool
	// owner of each profile binding; a second owner makes the binding void.
	bindings map[string]*v1alpha1.ClusterAgentPolicy
}

// chooseBaseline takes the newest version that a valid cluster policy pins, or the newest embedded one without any.
func (b *assembly) chooseBaseline() error {
	version := baseline.Latest
	position := -1
	for i := range b.in.Cluster {
		if len(CheckCluster(&b.in.Cluster[i])) > 0 {
			continue
		}
		if p := slices.Index(baseline.Versions(), b.in.Cluster[i].Spec.BaselineVersion); p > position {
			version, position = b.in.Cluster[i].Spec.BaselineVersion, p
		}
	}
	loaded, err := baseline.Load(version)
	if err != nil {
		return fmt.Errorf("load baseline: %w", err)
	}
	b.set.Baseline, b.snapshot.BaselineVersion = loaded, version
	return nil
}

// addCluster takes the cluster policies that are valid alone and together.
func (b *assembly) addCluster() {
	// Lists of a cache have no order; which object governs a namespace must not depend on it.
	slices.SortFunc(b.in.Cluster, func(x, y v1alpha1.ClusterAgentPolicy) int { return strings.Compare(x.Name, y.Name) })
	b.bindings = map[string]*v1alpha1.ClusterAgentPolicy{}
	for i := range b.in.Cluster {
		object := &b.in.Cluster[i]
		for _, binding := range object.Spec.Profiles {
			other, taken := b.bindings[binding.Name]
			if !taken {
				b.bindings[binding.Name] = object
				continue
			}
			for _, both := range []*v1alpha1.ClusterAgentPolicy{object, other} {
				b.problem(both.UID, policy.Problem{Field: "profiles", Rule: binding.Name,
					Message: fmt.Sprintf("profile %q is bound by ClusterAgentPolicy %s and %s", binding.Name, other.Name, object.Name)})
			}
		}
	}
	for i := range b.in.Cluster {
		object := &b.in.Cluster[i]
		b.problem(object.UID, CheckCluster(object)...)
		if len(b.snapshot.problems[object.UID]) > 0 {
			// Its rules are unknown, and rules count everywhere: nothing governed passes until it is repaired.
			b.incomplete = true
			continue
		}
		b.valid = append(b.valid, object)
		b.set.Cluster = append(b.set.Cluster, FromClusterAgentPolicy(object))
		b.addSubjects(object)
	}
}

func (b *assembly) addSubjects(object *v1alpha1.ClusterAgentPolicy) {
	governed := &object.Spec.Governed
	for _, user := range governed.Users {
		b.snapshot.users[user.Name] = user.SessionNamespace
		b.snapshot.Scope.Users = append(b.snapshot.Scope.Users, user.Name)
	}
	for _, exempt := range governed.ExemptServiceAccounts {
		if exempt.ExpirationTime != nil && !b.in.Now.Before(exempt.ExpirationTime) {
			continue
		}
		if end := exempt.ExpirationTime; end != nil && (b.snapshot.nextExpiry.IsZero() || end.Time.Before(b.snapshot.nextExpiry)) {
			b.snapshot.nextExpiry = end.Time
		}
		b.snapshot.Scope.Exempt = append(b.snapshot.Scope.Exempt, enforcement.ServiceAccount{Namespace: exempt.Namespace, Name: exempt.Name})
	}
	for _, released := range governed.Released {
		b.snapshot.Released = append(b.snapshot.Released, released.Namespace)
	}
	for _, account := range object.Spec.ServiceAccountApprovers {
		b.snapshot.approvers[enforcement.ServiceAccount{Namespace: account.Namespace, Name: account.Name}] = true
	}
	for _, account := range object.Spec.AnswerRelays {
		b.snapshot.relays[enforcement.ServiceAccount{Namespace: account.Namespace, Name: account.Name}] = true
	}
}

func (b *assembly) addNamespaces() {
	for i := range b.in.Namespaces {
		namespace := &b.in.Namespaces[i]
		if neverGoverned(namespace.Name) {
			continue
		}
		for _, object := range b.valid {
			selector, err := metav1.LabelSelectorAsSelector(&object.Spec.Governed.NamespaceSelector)
			if err == nil && !selector.Empty() && selector.Matches(labels.Set(namespace.Labels)) {
				b.addNamespace(namespace, object)
				break
			}
		}
	}
	slices.Sort(b.snapshot.Released)
	slices.Sort(b.snapshot.Scope.Namespaces)
	slices.Sort(b.snapshot.Onboarding)
}

// addNamespace binds one namespace to its profile. A label that names no valid profile leaves the namespace governed and
// without a profile, so that the engine refuses.
func (b *assembly) addNamespace(namespace *corev1.Namespace, governing *v1alpha1.ClusterAgentPolicy) {
	view := Namespace{Profile: namespace.Labels[v1alpha1.LabelProfile], Governing: governing.Name}
	if governing.Spec.Delegation != nil {
		view.Delegated, view.ToolPrefixes = governing.Spec.Delegation.NamespaceMaySet, governing.Spec.Delegation.CatalogueToolPrefixes
	}
	bound := policy.Namespace{}
	if profile := b.profileOf(view.Profile, governing); profile != nil {
		view.Policy, bound.Profile = profile, view.Profile
		view.Templates = profile.Spec.SessionTemplates
		defaults := profile.Spec.WithProfileDefaults()
		view.ModelTier, view.InitiativeMode = defaults.ModelTier, defaults.Initiative.Mode
		view.WarnBeforeExpirySeconds, view.AskAgainAfterSeconds = defaults.Approvals.WarnBeforeExpirySeconds, defaults.Approvals.AskAgainAfterSeconds
		b.set.Profiles[view.Profile] = FromAgentPolicy(profile, true)
	}
	if own := b.agentPolicy(namespace.Name, NamespacePolicyName); own != nil {
		if b.compiles(own) {
			converted := FromAgentPolicy(own, false)
			converted.Catalogue = slices.DeleteFunc(converted.Catalogue, func(e policy.CatalogueEntry) bool { return !view.MayCatalogue(e.Match.Tools) })
			bound.Policy = &converted
			view.override(&own.Spec)
		} else {
			bound.Profile, view.Policy = "", nil // its rules are unknown, so nothing governed passes here
		}
	}
	b.snapshot.namespaces[namespace.Name] = view
	b.set.Namespaces[namespace.Name] = bound
	if audited(view.Profile, governing) {
		b.snapshot.Onboarding = append(b.snapshot.Onboarding, namespace.Name)
		return
	}
	b.snapshot.Scope.Namespaces = append(b.snapshot.Scope.Namespaces, namespace.Name)
}

// MayCatalogue tells whether the namespace's own AgentPolicy may say what these tools do: each begins with a prefix that
// is delegated to it. No tools are none of its own.
func (n *Namespace) MayCatalogue(tools []string) bool {
	for _, tool := range tools {
		if !slices.ContainsFunc(n.ToolPrefixes, func(prefix string) bool { return strings.HasPrefix(tool, prefix) }) {
			return false
		}
	}
	return len(tools) > 0
}

// override takes from a namespace's own policy what the cluster policy delegates, and what is longer.
func (n *Namespace) override(own *v1alpha1.AgentPolicySpec) {
	if len(own.SessionTemplates) > 0 && slices.Contains(n.Delegated, v1alpha1.DelegableSessionTemplates) {
		n.Templates = own.SessionTemplates
	}
	if n.Policy == nil {
		return
	}
	if a := own.Approvals; a != nil {
		n.WarnBeforeExpirySeconds = max(n.WarnBeforeExpirySeconds, a.WarnBeforeExpirySeconds)
		n.AskAgainAfterSeconds = max(n.AskAgainAfterSeconds, a.AskAgainAfterSeconds)
	}
	if own.ModelTier != "" && slices.Contains(n.Delegated, v1alpha1.DelegableModelTier) {
		n.ModelTier = own.ModelTier
	}
	if own.Initiative == nil || own.Initiative.Mode == "" {
		return
	}
	if own.Initiative.Mode == v1alpha1.InitiativeModeStrict || slices.Contains(n.Delegated, v1alpha1.DelegableInitiativeMode) {
		n.InitiativeMode = own.Initiative.Mode
	}
}

// audited tells whether the binding of a profile only audits. That does not depend on the profile's settings, nor on other
// policies: a namespace that nothing was ever refused in is not closed because one of them is broken.
func audited(label string, governing *v1alpha1.ClusterAgentPolicy) bool {
	return slices.ContainsFunc(governing.Spec.Profiles, func(binding v1alpha1.ProfileBinding) bool {
		return binding.Name == label && binding.FloorEnforcement == v1alpha1.FloorEnforcementAudit
	})
}

func (b *assembly) profileOf(label string, governing *v1alpha1.ClusterAgentPolicy) *v1alpha1.AgentPolicy {
	for _, binding := range governing.Spec.Profiles {
		if binding.Name != label || b.incomplete {
			continue
		}
		if profile := b.agentPolicy(enforcement.SystemNamespace, binding.AgentPolicyName); profile != nil && b.compiles(profile) {
			return profile
		}
	}
	return nil
}

func (b *assembly) agentPolicy(namespace, name string) *v1alpha1.AgentPolicy {
	for i := range b.in.Policies {
		if p := &b.in.Policies[i]; p.Namespace == namespace && p.Name == name {
			return p
		}
	}
	return nil
}

// compiles tells whether an AgentPolicy is valid alone; each is compiled once.
func (b *assembly) compiles(p *v1alpha1.AgentPolicy) bool {
	if _, done := b.snapshot.problems[p.UID]; !done {
		b.snapshot.problems[p.UID] = CheckAgentPolicy(p)
	}
	return len(b.snapshot.problems[p.UID]) == 0
}

func (b *assembly) problem(id types.UID, problems ...policy.Problem) {
	b.snapshot.problems[id] = append(b.snapshot.problems[id], problems...)
}

// neverGoverned keeps the cluster and the product from depending on themselves, whatever a selector says.
func neverGoverned(namespace string) bool {
	return strings.HasPrefix(namespace, "kube-") || namespace == enforcement.SystemNamespace || namespace == enforcement.CanaryNamespace
}
