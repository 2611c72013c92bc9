package policy_test

import (
	"testing"
	"time"

	"stepbeyond.dev/stepbeyond/policy"
)

var now = time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)

// tester is a test or one run of a property.
type tester interface {
	Helper()
	Fatalf(format string, values ...any)
}

// harmless are the facts of an operation that is AUTO.
func harmless() policy.Facts {
	var f policy.Facts
	for _, fact := range policy.AllFacts() {
		presence := policy.Absent
		if fact == policy.Reversible || fact == policy.Local || fact == policy.InScope {
			presence = policy.Present
		}
		f.Add(fact, policy.FactValue{Presence: presence, Provenance: policy.Parsed})
	}
	return f
}

// session may do everything.
func session() policy.SessionView {
	return policy.SessionView{
		State: policy.SessionActive, Namespace: "checkout", Name: "agent", UID: "uid-agent", Epoch: 1,
		Username: "system:serviceaccount:checkout:agent", Deadline: now.Add(time.Hour),
		Authority: policy.Authority{
			Stages:       []policy.Stage{policy.StageUnderstand, policy.StagePropose, policy.StageExecute, policy.StagePublish},
			Capabilities: []policy.Capability{policy.CapabilityExecuteLocal}, Namespaces: []string{"checkout"},
		},
	}
}

// update of a ConfigMap with these facts.
func update(f policy.Facts) policy.Operation {
	return policy.Operation{
		Capability: policy.CapabilityExecuteLocal, Stage: policy.StageExecute, Verb: policy.VerbUpdate,
		Target: policy.Target{
			Version: "v1", Resource: "configmaps", Namespace: "checkout", Name: "web", UID: "u1", Origin: policy.OriginThisSession,
		},
		Facts: f, Kubernetes: &policy.KubernetesRequest{Object: map[string]any{}, OldObject: map[string]any{}}, Digest: "v1:digest",
	}
}

// everything selects every Kubernetes request.
func everything() policy.Match { return policy.Match{Kubernetes: []policy.KubernetesSelector{{}}} }

// under is a set with one cluster policy, in which namespace checkout is governed.
func under(p policy.Policy) policy.Set {
	p.ID = policy.PolicyID{Kind: "ClusterAgentPolicy", Name: "default", UID: "uid-default", Generation: 1}
	return policy.Set{
		Baseline:   policy.Policy{ID: policy.PolicyID{Kind: policy.KindBaseline, Name: "baseline", UID: "v1"}},
		Cluster:    []policy.Policy{p},
		Profiles:   map[string]policy.Policy{"standard": {ID: policy.PolicyID{Kind: policy.KindProfile, Name: "standard"}}},
		Namespaces: map[string]policy.Namespace{"checkout": {Profile: "standard"}},
	}
}

func compile(t tester, set policy.Set) *policy.Engine {
	t.Helper()
	engine, problems := policy.Compile(set)
	if len(problems) > 0 {
		t.Fatalf("compile: %v", problems)
	}
	return engine
}

// classOf the facts alone, without any rule.
func classOf(t tester, f policy.Facts) policy.Class {
	t.Helper()
	return compile(t, under(policy.Policy{})).Decide(update(f), session(), now).Class
}

// Proves C-4.
func TestAMemoryWriteNeedsAProvenBasis(t *testing.T) {
	engine := compile(t, under(policy.Policy{}))
	for name, test := range map[string]struct {
		capability policy.Capability
		basis      policy.Presence
		want       policy.Class
	}{
		"a write to the user model without a proven basis is forbidden": {policy.CapabilityWriteUserModel, policy.Unknown, policy.ClassForbidden},
		"with one it is not": {policy.CapabilityWriteUserModel, policy.Absent, policy.ClassAuto},
		"any other operation that lacks the fact is asked": {policy.CapabilityExecuteLocal, policy.Unknown, policy.ClassAsk},
	} {
		t.Run(name, func(t *testing.T) {
			f := harmless()
			f[policy.PersistsSensitiveMemory] = policy.FactValue{Presence: test.basis, Provenance: policy.Parsed}
			op, s := update(f), session()
			op.Capability = test.capability
			s.Authority.Capabilities = append(s.Authority.Capabilities, policy.CapabilityWriteUserModel)
			if d := engine.Decide(op, s, now); d.Class != test.want {
				t.Errorf("class %s, want %s", d.Class, test.want)
			}
		})
	}
}

// Proves C-4: an empty name in a selector does not stand for "no name", so an authority that holds one covers nothing by it.
func TestAnEmptyNameSelectsNothing(t *testing.T) {
	engine := compile(t, under(policy.Policy{}))
	op, s := update(harmless()), session()
	op.Target.Name = ""
	s.Authority.Kubernetes = []policy.KubernetesSelector{{Names: []string{""}}}
	if d := engine.Decide(op, s, now); d.Reason != policy.ReasonOutsideAuthority {
		t.Errorf("an operation without a name under an empty name: %s %s, want OutsideAuthority", d.Class, d.Reason)
	}
	s.Authority.Kubernetes = []policy.KubernetesSelector{{Names: []string{"*"}}}
	if d := engine.Decide(op, s, now); d.Verdict != policy.VerdictAllow {
		t.Errorf("an operation without a name under *: %s %s, want it allowed", d.Class, d.Reason)
	}
}
