package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"stepbeyond.dev/stepbeyond/policy"
)

const regoHead = `package bench

default class := 3

class := max(matched)

settled(_) if input.reversible

settled(least) if input.confidence >= least

`

// newOPA is the policy in Rego as a partial set, whose rules OPA indexes by their equalities.
func newOPA(p Policy) (func(*Request) (policy.Class, error), error) {
	var module strings.Builder
	module.WriteString(regoHead)
	for i := range p {
		fmt.Fprintf(&module, "matched contains %d if {\n%s}\n\n", p[i].Class, regoBody(&p[i]))
	}
	query, err := prepareRego(module.String())
	if err != nil {
		return nil, err
	}
	return func(r *Request) (policy.Class, error) { return evalRego(query, regoInput(r)) }, nil
}

func regoBody(rule *Rule) string {
	if rule.Attribute != "" {
		return "\tinput." + string(rule.Attribute) + "\n"
	}
	body := fmt.Sprintf("\tinput.capability == %q\n\tinput.tool == %q\n\tinput.verb in {%s}\n\tstartswith(input.target, %q)\n\tinput.costCents <= %d\n",
		rule.Capability, rule.Tool, quoted(rule.Verbs), rule.TargetPrefix, rule.MaxCostCents)
	if rule.MinConfidence > 0 {
		body += fmt.Sprintf("\tsettled(%d)\n", rule.MinConfidence)
	}
	return body
}

func prepareRego(module string) (rego.PreparedEvalQuery, error) {
	query, err := rego.New(rego.Query("data.bench.class"), rego.Module("bench.rego", module)).PrepareForEval(context.Background())
	if err != nil {
		return query, fmt.Errorf("prepare: %w", err)
	}
	return query, nil
}

// The keys of the input, made once.
var (
	keyCapability  = ast.StringTerm("capability")
	keyTool        = ast.StringTerm("tool")
	keyVerb        = ast.StringTerm("verb")
	keyTarget      = ast.StringTerm("target")
	keyCost        = ast.StringTerm("costCents")
	keyReversible  = ast.StringTerm("reversible")
	keyConfidence  = ast.StringTerm("confidence")
	keyEscalates   = ast.StringTerm(string(Escalates))
	keyExfiltrates = ast.StringTerm(string(Exfiltrates))
	keyExternal    = ast.StringTerm(string(External))
	keyCredentials = ast.StringTerm(string(Credentials))
)

// regoInput builds OPA's own value, which costs less than to let OPA convert a Go map.
func regoInput(r *Request) ast.Value {
	return ast.NewObject(
		ast.Item(keyCapability, ast.StringTerm(r.Capability)), ast.Item(keyTool, ast.StringTerm(r.Tool)),
		ast.Item(keyVerb, ast.StringTerm(r.Verb)), ast.Item(keyTarget, ast.StringTerm(r.Target)),
		ast.Item(keyCost, ast.IntNumberTerm(int(r.CostCents))), ast.Item(keyReversible, ast.InternedTerm(r.Reversible)),
		ast.Item(keyConfidence, ast.IntNumberTerm(int(r.Confidence))), ast.Item(keyEscalates, ast.InternedTerm(r.Escalates)),
		ast.Item(keyExfiltrates, ast.InternedTerm(r.Exfiltrates)), ast.Item(keyExternal, ast.InternedTerm(r.External)),
		ast.Item(keyCredentials, ast.InternedTerm(r.Credentials)),
	)
}

var errNoClass = errors.New("the query gives no class")

func evalRego(query rego.PreparedEvalQuery, input ast.Value) (policy.Class, error) {
	results, err := query.Eval(context.Background(), rego.EvalParsedInput(input))
	if err != nil {
		return 0, fmt.Errorf("evaluate: %w", err)
	}
	if len(results) != 1 {
		return 0, errNoClass
	}
	number, ok := results[0].Expressions[0].Value.(json.Number)
	if !ok {
		return 0, errNoClass
	}
	class, err := number.Int64()
	if err != nil {
		return 0, fmt.Errorf("read class: %w", err)
	}
	return policy.Class(class), nil
}
