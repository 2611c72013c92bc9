package bench

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/casbin/casbin/v3"
	"github.com/casbin/casbin/v3/effector"
	"github.com/casbin/casbin/v3/model"

	"stepbeyond.dev/stepbeyond/policy"
)

// casbinModel has one matcher for all rules, so that the fixed ones are rows of which only the attribute is set.
const casbinModel = `
[request_definition]
r = capability, tool, verb, target, cost, reversible, confidence, request
[policy_definition]
p = attribute, capability, tool, verbs, prefix, cost, confidence, class
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = (p.capability == r.capability && p.tool == r.tool && among(r.verb, p.verbs) && prefixed(r.target, p.prefix) && atMost(r.cost, p.cost) && (r.reversible || atMost(p.confidence, r.confidence))) || (p.attribute != "" && has(r.request, p.attribute))
`

// newCasbin is the policy as rows under one matcher, joined by an effector that looks at every row.
func newCasbin(p Policy) (func(*Request) (policy.Class, error), error) {
	m, err := model.NewModelFromString(casbinModel)
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	enforcer, err := casbin.NewEnforcer(m)
	if err != nil {
		return nil, fmt.Errorf("make enforcer: %w", err)
	}
	enforcer.SetEffector(strictestRow(p))
	enforcer.AddFunction("among", func(args ...any) (any, error) {
		return strings.Contains(args[1].(string), " "+args[0].(string)+" "), nil
	})
	enforcer.AddFunction("prefixed", func(args ...any) (any, error) {
		return strings.HasPrefix(args[0].(string), args[1].(string)), nil
	})
	enforcer.AddFunction("has", func(args ...any) (any, error) {
		return args[0].(*Request).Has(Attribute(args[1].(string))), nil
	})
	enforcer.AddFunction("atMost", func(args ...any) (any, error) { return number(args[0]) <= number(args[1]), nil })
	rows := make([][]string, 0, len(p))
	for i := range p {
		rows = append(rows, casbinRow(&p[i]))
	}
	if _, err := enforcer.AddPolicies(rows); err != nil {
		return nil, fmt.Errorf("add rules: %w", err)
	}
	return func(r *Request) (policy.Class, error) {
		matched, row, err := enforcer.EnforceEx(r.Capability, r.Tool, r.Verb, r.Target, r.CostCents, r.Reversible, r.Confidence, r)
		if err != nil {
			return 0, fmt.Errorf("enforce: %w", err)
		}
		if !matched {
			return policy.ClassAsk, nil
		}
		class, _ := policy.ParseClass(row[len(row)-1])
		return class, nil
	}, nil
}

func casbinRow(rule *Rule) []string {
	return []string{
		string(rule.Attribute), rule.Capability, rule.Tool, " " + strings.Join(rule.Verbs, " ") + " ", rule.TargetPrefix,
		strconv.FormatInt(rule.MaxCostCents, 10), strconv.FormatInt(rule.MinConfidence, 10), rule.Class.String(),
	}
}

// number reads a cost or a confidence: casbin passes what a rule says as text.
func number(value any) int64 {
	switch v := value.(type) {
	case string:
		n, _ := strconv.ParseInt(v, 10, 64) // rows are written by casbinRow
		return n
	case float64: // the expression library passes every number like this
		return int64(v)
	default:
		return value.(int64)
	}
}

// strictestRow is an effector that lets every row be looked at and explains the strictest that matched.
type strictestRow Policy

// MergeEffects implements casbin's effector.
func (p strictestRow) MergeEffects(_ string, _ []effector.Effect, matches []float64, row, rows int) (effector.Effect, int, error) {
	if row < rows-1 {
		return effector.Indeterminate, -1, nil
	}
	strictest := -1
	for i, match := range matches {
		if match != 0 && (strictest < 0 || p[i].Class > p[strictest].Class) {
			strictest = i
		}
	}
	if strictest < 0 {
		return effector.Indeterminate, -1, nil
	}
	return effector.Allow, strictest, nil
}
