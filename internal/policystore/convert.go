// Package policystore is the only converter from the policy kinds of the API to the engine. It keeps one immutable
// snapshot of everything that decisions need and swaps it whole.
package policystore

import (
	"k8s.io/apimachinery/pkg/types"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

// Kinds of the API as they stand in a policy identity.
const (
	kindClusterAgentPolicy = "ClusterAgentPolicy"
	kindAgentPolicy        = "AgentPolicy"
)

// FromClusterAgentPolicy converts the part of a ClusterAgentPolicy that the engine decides with.
func FromClusterAgentPolicy(p *v1alpha1.ClusterAgentPolicy) policy.Policy {
	return policy.Policy{
		ID:        policy.PolicyID{Kind: kindClusterAgentPolicy, Name: p.Name, UID: string(p.UID), Generation: p.Generation},
		Rules:     rulesOf(p.Spec.Rules, v1alpha1.EnforcementEnforce),
		Catalogue: catalogueOf(p.Spec.Catalogue),
	}
}

// FromAgentPolicy converts the part of an AgentPolicy that the engine decides with. profile tells whether the object
// is a profile (of the system namespace) or a namespace's own policy.
func FromAgentPolicy(p *v1alpha1.AgentPolicy, profile bool) policy.Policy {
	id := policy.PolicyID{
		Kind: kindAgentPolicy, Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Generation: p.Generation,
	}
	spec := &p.Spec
	if profile {
		id.Kind = policy.KindProfile
		spec = spec.WithProfileDefaults() // in a namespace's own object an omission leaves the profile's value
	}
	return policy.Policy{
		ID:        id,
		Rules:     rulesOf(spec.Rules, spec.RulesEnforcement),
		Catalogue: catalogueOf(spec.Catalogue),
		Approvals: approvalsOf(spec),
	}
}

// References names the API objects of a policy identity, for status fields. The embedded baseline is no object.
func References(ids []policy.PolicyID) []v1alpha1.PolicyReference {
	var references []v1alpha1.PolicyReference
	for _, id := range ids {
		kind := id.Kind
		switch kind {
		case policy.KindBaseline:
			continue
		case policy.KindProfile:
			kind = kindAgentPolicy
		}
		references = append(references, v1alpha1.PolicyReference{
			Kind: kind, Namespace: id.Namespace, Name: id.Name, UID: types.UID(id.UID), Generation: id.Generation,
		})
	}
	return references
}

func rulesOf(rules []v1alpha1.Rule, objectDefault v1alpha1.Enforcement) []policy.Rule {
	converted := make([]policy.Rule, 0, len(rules))
	for i := range rules {
		r := &rules[i]
		class, _ := policy.ParseClass(string(r.Class))
		converted = append(converted, policy.Rule{
			Name: r.Name, Class: class, Enforcement: enforcementOf(r.Enforcement, objectDefault), Match: matchOf(&r.Match),
			When: r.When, Detail: r.Detail, Recovery: r.Recovery,
		})
	}
	return converted
}

// enforcementOf resolves a rule's own value, then its object's, then Enforce: an omission never weakens.
func enforcementOf(own, object v1alpha1.Enforcement) policy.Enforcement {
	if own == "" {
		own = object
	}
	switch own {
	case v1alpha1.EnforcementWarn:
		return policy.EnforcementWarn
	case v1alpha1.EnforcementAudit:
		return policy.EnforcementAudit
	default:
		return policy.EnforcementEnforce
	}
}

func catalogueOf(entries []v1alpha1.CatalogueEntry) []policy.CatalogueEntry {
	converted := make([]policy.CatalogueEntry, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		converted = append(converted, policy.CatalogueEntry{
			Name: e.Name, Match: matchOf(&e.Match), When: e.When, Present: factsOf(e.Facts.Present),
			Absent: factsOf(e.Facts.Absent), Effect: policy.Effect(e.Effect), Detail: e.Detail, Recovery: e.Recovery,
		})
	}
	return converted
}

func matchOf(m *v1alpha1.OperationMatch) policy.Match {
	converted := policy.Match{Tools: m.Tools}
	for i := range m.Kubernetes {
		k := &m.Kubernetes[i]
		converted.Kubernetes = append(converted.Kubernetes, policy.KubernetesSelector{
			Groups: k.Groups, Resources: k.Resources, Names: k.Names,
			Verbs: words[policy.Verb](k.Verbs), Origins: words[policy.Origin](k.Origins),
		})
	}
	return converted
}

// AuthorityOf converts a session's authority. namespaces are those that the session may write to.
func AuthorityOf(a *v1alpha1.Authority, namespaces ...string) policy.Authority {
	converted := policy.Authority{
		Stages: words[policy.Stage](a.Stages), Capabilities: words[policy.Capability](a.Capabilities), Namespaces: namespaces,
	}
	for i := range a.Kubernetes {
		k := &a.Kubernetes[i]
		converted.Kubernetes = append(converted.Kubernetes, policy.KubernetesSelector{
			Groups: k.Groups, Resources: k.Resources, Names: k.Names, Verbs: words[policy.Verb](k.Verbs),
		})
	}
	return converted
}

func approvalsOf(spec *v1alpha1.AgentPolicySpec) policy.Approvals {
	var converted policy.Approvals
	if caps := spec.Caps; caps != nil {
		converted.MaxPendingPerSession, converted.MaxPendingPerNamespace = caps.MaxPendingGrantsPerSession, caps.MaxPendingGrants
	}
	a := spec.Approvals
	if a == nil {
		return converted
	}
	converted.DecideWithinSeconds = a.DecideWithinSeconds
	converted.UseWithinSeconds = a.UseWithinSeconds
	converted.AskAgainAfterSeconds = a.AskAgainAfterSeconds
	converted.WidestScope = policy.ScopeType(a.WidestScope)
	converted.MaxTimeBoxSeconds, converted.MaxTimeBoxUses = a.MaxTimeBoxSeconds, a.MaxTimeBoxUses
	for i := range a.Requirements {
		r := &a.Requirements[i]
		requirement := policy.Requirement{Name: r.Name, Required: max(1, r.Required), ApproverGroups: r.ApproverGroups}
		if r.Match != nil {
			requirement.Facts, requirement.Rules, requirement.Resources = factsOf(r.Match.Facts), r.Match.Rules, r.Match.Resources
		}
		converted.Requirements = append(converted.Requirements, requirement)
	}
	return converted
}

// factsOf converts names that the schema's enum bounds; a name that the engine lacks is caught by the mapping test.
func factsOf(names []v1alpha1.Fact) []policy.Fact {
	facts := make([]policy.Fact, 0, len(names))
	for _, name := range names {
		if fact, ok := policy.ParseFact(string(name)); ok {
			facts = append(facts, fact)
		}
	}
	return facts
}

// words converts between two vocabularies that spell alike; the mapping test compares their values.
func words[To, From ~string](values []From) []To {
	if len(values) == 0 {
		return nil
	}
	converted := make([]To, len(values))
	for i, value := range values {
		converted[i] = To(value)
	}
	return converted
}
