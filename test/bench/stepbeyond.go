package bench

import (
	"errors"
	"fmt"
	"time"

	"stepbeyond.dev/stepbeyond/policy"
)

// namespace that the measured session works in.
const namespace = "checkout"

var now = time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)

// session may do everything in its namespace, and nothing has been asked yet.
func session() policy.SessionView {
	return policy.SessionView{
		State: policy.SessionActive, Namespace: namespace, Name: "agent", UID: "uid-agent", Epoch: 1,
		Username: "system:serviceaccount:checkout:agent", Deadline: now.Add(time.Hour),
		Authority: policy.Authority{
			Stages:       []policy.Stage{policy.StageUnderstand, policy.StagePropose, policy.StageExecute},
			Capabilities: []policy.Capability{policy.CapabilityExecuteLocal}, Namespaces: []string{namespace},
		},
	}
}

// compile makes an engine in which the namespace is governed by these policies.
func compile(baseline, cluster policy.Policy) (*policy.Engine, error) {
	cluster.ID = policy.PolicyID{Kind: "ClusterAgentPolicy", Name: "default", UID: "uid-default", Generation: 1}
	profile := policy.Policy{ID: policy.PolicyID{Kind: policy.KindProfile, Namespace: "stepbeyond-system", Name: "standard", UID: "uid-standard", Generation: 1}}
	engine, problems := policy.Compile(policy.Set{
		Baseline: baseline, Cluster: []policy.Policy{cluster}, Profiles: map[string]policy.Policy{"standard": profile},
		Namespaces: map[string]policy.Namespace{namespace: {Profile: "standard"}},
	})
	var errs []error
	for _, problem := range problems {
		errs = append(errs, problem)
	}
	return engine, errors.Join(errs...)
}

func newStepBeyond(p Policy) (func(*Request) (policy.Class, error), error) {
	var cluster policy.Policy
	for i := range p {
		addRule(&cluster, &p[i])
	}
	baseline := policy.Policy{ID: policy.PolicyID{Kind: policy.KindBaseline, Name: "baseline", UID: "v1"}}
	engine, err := compile(baseline, cluster)
	if err != nil {
		return nil, err
	}
	view := session()
	return func(r *Request) (policy.Class, error) {
		return engine.Decide(operationOf(r), view, now).Class, nil
	}, nil
}

// addRule writes one rule of the equal policy in the rule language. Fixed rules are floors of facts and need none.
func addRule(p *policy.Policy, rule *Rule) {
	if rule.Attribute != "" {
		return
	}
	selector := policy.KubernetesSelector{Groups: []string{rule.Capability}, Resources: []string{rule.Tool}, Names: []string{rule.TargetPrefix + "*"}}
	for _, verb := range rule.Verbs {
		selector.Verbs = append(selector.Verbs, policy.Verb(verb))
	}
	match := policy.Match{Kubernetes: []policy.KubernetesSelector{selector}}
	when := fmt.Sprintf("object.costCents <= %d", rule.MaxCostCents)
	if rule.MinConfidence > 0 {
		when += fmt.Sprintf(" && (object.reversible || object.confidence >= %d)", rule.MinConfidence)
	}
	if rule.Class == policy.ClassAsk || rule.Class == policy.ClassForbidden {
		p.Rules = append(p.Rules, policy.Rule{
			Name: rule.Name, Class: rule.Class, Enforcement: policy.EnforcementEnforce, Match: match, When: when, Detail: "The equal policy says so.",
		})
		return
	}
	entry := policy.CatalogueEntry{Name: rule.Name, Match: match, When: when}
	for _, fact := range policy.AllFacts() {
		switch fact {
		case policy.Reversible, policy.Local, policy.InScope:
			entry.Present = append(entry.Present, fact)
		case policy.OutsideAuthority: // the engine compares the session's authority itself
		case policy.MaterialAssumption:
			if rule.Class == policy.ClassAutoWithDisclosure {
				entry.Present = append(entry.Present, fact)
			} else {
				entry.Absent = append(entry.Absent, fact)
			}
		default:
			entry.Absent = append(entry.Absent, fact)
		}
	}
	p.Catalogue = append(p.Catalogue, entry)
}

func operationOf(r *Request) policy.Operation {
	op := policy.Operation{
		Capability: policy.CapabilityExecuteLocal, Stage: policy.StageExecute, Verb: policy.Verb(r.Verb),
		Target: policy.Target{
			Group: r.Capability, Version: "v1", Resource: r.Tool, Namespace: namespace, Name: r.Target, Origin: policy.OriginThisSession,
		},
		Kubernetes: &policy.KubernetesRequest{Object: map[string]any{
			"costCents": r.CostCents, "reversible": r.Reversible, "confidence": r.Confidence,
		}},
	}
	for _, attribute := range [...]struct {
		present bool
		fact    policy.Fact
	}{
		{r.Escalates, policy.EscalatesAuthority}, {r.Exfiltrates, policy.ExfiltratesSecret},
		{r.External, policy.External}, {r.Credentials, policy.Credentials},
	} {
		if attribute.present {
			op.Facts.Add(attribute.fact, policy.FactValue{Presence: policy.Present, Provenance: policy.Parsed, Why: "the request says so"})
		}
	}
	return op
}
