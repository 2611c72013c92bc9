package bench

import (
	"encoding/json"
	"fmt"
	"testing"

	"stepbeyond.dev/stepbeyond/policy"
)

// manyRules select the target of every operation below, in all but one thing each, and would read the object.
func manyRules(n int) policy.Policy {
	var p policy.Policy
	for i := range n {
		selector := policy.KubernetesSelector{
			Groups: []string{"apps", "*"}, Resources: []string{"deployments", "deployments/scale", "deployments/*"},
			Verbs: []policy.Verb{policy.VerbCreate, policy.VerbUpdate},
		}
		switch i % 3 {
		case 0:
			selector.Names = []string{fmt.Sprintf("other-%d-*", i), fmt.Sprintf("another-%d", i)}
		case 1:
			selector.Origins = []policy.Origin{policy.OriginController}
		case 2:
			selector.Resources = []string{fmt.Sprintf("widgets-%d", i)}
		}
		match := policy.Match{Kubernetes: []policy.KubernetesSelector{selector}, Tools: []string{fmt.Sprintf("tool-%d", i), fmt.Sprintf("to-%d*", i)}}
		name, when := fmt.Sprintf("rule-%d", i), "object.spec.replicas > 1"
		p.Rules = append(p.Rules, policy.Rule{Name: name, Class: policy.ClassForbidden, Enforcement: policy.EnforcementEnforce, Match: match, When: when})
		p.Catalogue = append(p.Catalogue, policy.CatalogueEntry{Name: name, Match: match, When: when, Present: []policy.Fact{policy.Destructive}})
	}
	return p
}

func TestMatchingAThousandRulesAllocatesNothingAndEvaluatesNoExpression(t *testing.T) {
	baseline := policy.Policy{ID: policy.PolicyID{Kind: policy.KindBaseline, Name: "baseline", UID: "v1"}}
	without, err := compile(baseline, policy.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	with, err := compile(baseline, manyRules(1000))
	if err != nil {
		t.Fatal(err)
	}
	facts := policy.Facts{}
	for _, fact := range policy.AllFacts() {
		presence := policy.Absent
		if fact == policy.Reversible || fact == policy.Local || fact == policy.InScope {
			presence = policy.Present
		}
		facts.Add(fact, policy.FactValue{Presence: presence, Provenance: policy.Parsed})
	}
	view := session()
	for name, change := range map[string]func(*policy.Operation){
		"the creation of a Deployment": func(op *policy.Operation) { op.Verb = policy.VerbCreate },
		"the update of a Deployment":   func(*policy.Operation) {},
		"a scale request":              func(op *policy.Operation) { op.Target.Subresource = "scale" },
		"a long subresource": func(op *policy.Operation) {
			op.Target.Group, op.Target.Resource, op.Target.Subresource = "admissionregistration.k8s.io", "validatingadmissionpolicies", "status"
		},
		"an unnamed target": func(op *policy.Operation) { op.Target.Name = "" },
		"a tool call": func(op *policy.Operation) {
			op.Tool, op.Kubernetes, op.Target = "tool", nil, policy.Target{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			op := policy.Operation{
				Capability: policy.CapabilityExecuteLocal, Stage: policy.StageExecute, Verb: policy.VerbUpdate, Facts: facts,
				Target: policy.Target{
					Group: "apps", Version: "v1", Resource: "deployments", Namespace: namespace, Name: "cart", Origin: policy.OriginThisSession,
				},
				Kubernetes: &policy.KubernetesRequest{Object: map[string]any{"spec": map[string]any{"replicas": int64(3)}}},
			}
			change(&op)
			allocations := func(engine *policy.Engine) float64 {
				return testing.AllocsPerRun(200, func() {
					if got := engine.Decide(op, view, now).Class; got != policy.ClassAuto {
						t.Fatalf("class = %v, want AUTO", got)
					}
				})
			}
			// Every expression is true of the object, so an evaluation would show in the class.
			if got, want := allocations(with), allocations(without); got != want {
				t.Errorf("a decision under 1,000 rules allocates %v times, without them %v times", got, want)
			}
		})
	}
}

func TestTheMeasuredObjectHasTwoKilobytes(t *testing.T) {
	request, err := Deployment("cart")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(request.Object)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(text); got < 1800 || got > 2400 {
		t.Errorf("the object has %d bytes of JSON, want about 2,000", got)
	}
}
