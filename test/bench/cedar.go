package bench

import (
	"fmt"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"stepbeyond.dev/stepbeyond/policy"
)

// newCedar is the policy in Cedar. Cedar knows two effects: FORBIDDEN is forbid, every other class a permit, and the
// strictest of the permits that Cedar names as its reasons is the class.
func newCedar(p Policy) (func(*Request) (policy.Class, error), error) {
	return cedarOf(p, func(rule *Rule) string {
		return fmt.Sprintf("(principal, action, resource) when { context.capability == %q && context.tool == %q && %s }",
			rule.Capability, rule.Tool, cedarCondition(rule))
	})
}

// newCedarScoped is the same with capability and tool in the scope of each policy, as action and resource.
func newCedarScoped(p Policy) (func(*Request) (policy.Class, error), error) {
	return cedarOf(p, func(rule *Rule) string {
		return fmt.Sprintf("(principal, action == Capability::%q, resource == Tool::%q) when { %s }",
			rule.Capability, rule.Tool, cedarCondition(rule))
	})
}

func cedarOf(p Policy, selector func(*Rule) string) (func(*Request) (policy.Class, error), error) {
	var document strings.Builder
	for i := range p {
		body := fmt.Sprintf("(principal, action, resource) when { context.%s }", p[i].Attribute)
		if p[i].Attribute == "" {
			body = selector(&p[i])
		}
		fmt.Fprintf(&document, "%s %s;\n", cedarEffect(p[i].Class), body)
	}
	return prepareCedar(document.String(), func(i int) policy.Class { return p[i].Class }, cedarRequest)
}

// prepareCedar parses a document whose policies are in the order of the rules.
func prepareCedar[R any](document string, classOf func(int) policy.Class, convert func(R) cedar.Request) (func(R) (policy.Class, error), error) {
	list, err := cedar.NewPolicyListFromBytes("bench.cedar", []byte(document))
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	policies := cedar.NewPolicySet()
	classes := map[cedar.PolicyID]policy.Class{}
	for i, p := range list {
		id := cedar.PolicyID(fmt.Sprintf("rule-%d", i))
		policies.Add(id, p)
		classes[id] = classOf(i)
	}
	return func(r R) (policy.Class, error) {
		_, diagnostic := cedar.Authorize(policies, nil, convert(r))
		if len(diagnostic.Errors) > 0 {
			return 0, fmt.Errorf("evaluate: %s", diagnostic.Errors[0].Message)
		}
		var class policy.Class
		for _, reason := range diagnostic.Reasons {
			class = max(class, classes[reason.PolicyID])
		}
		return strictest(class), nil
	}, nil
}

func cedarEffect(class policy.Class) string {
	if class == policy.ClassForbidden {
		return "forbid"
	}
	return "permit"
}

// cedarCondition is what a selector rule asks beyond capability and tool.
func cedarCondition(rule *Rule) string {
	condition := fmt.Sprintf("[%s].contains(context.verb) && context.target like %q && context.costCents <= %d",
		quoted(rule.Verbs), rule.TargetPrefix+"*", rule.MaxCostCents)
	if rule.MinConfidence > 0 {
		condition += fmt.Sprintf(" && (context.reversible || context.confidence >= %d)", rule.MinConfidence)
	}
	return condition
}

func cedarRequest(r *Request) cedar.Request {
	return cedar.Request{
		Principal: types.NewEntityUID("Session", "agent"),
		Action:    types.NewEntityUID("Capability", types.String(r.Capability)),
		Resource:  types.NewEntityUID("Tool", types.String(r.Tool)),
		Context: types.NewRecord(types.RecordMap{
			"capability": types.String(r.Capability), "tool": types.String(r.Tool), "verb": types.String(r.Verb), "target": types.String(r.Target), "costCents": types.Long(r.CostCents),
			"reversible": types.Boolean(r.Reversible), "confidence": types.Long(r.Confidence),
			types.String(Escalates): types.Boolean(r.Escalates), types.String(Exfiltrates): types.Boolean(r.Exfiltrates),
			types.String(External): types.Boolean(r.External), types.String(Credentials): types.Boolean(r.Credentials),
		}),
	}
}
