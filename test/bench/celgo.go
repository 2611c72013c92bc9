package bench

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"

	"stepbeyond.dev/stepbeyond/policy"
)

// activation shows a request to CEL.
type activation struct{ *Request }

// ResolveName implements cel.Activation.
func (a activation) ResolveName(name string) (any, bool) {
	switch name {
	case "capability":
		return a.Capability, true
	case "tool":
		return a.Tool, true
	case "verb":
		return a.Verb, true
	case "target":
		return a.Target, true
	case "costCents":
		return a.CostCents, true
	case "reversible":
		return a.Reversible, true
	case "confidence":
		return a.Confidence, true
	case string(Escalates), string(Exfiltrates), string(External), string(Credentials):
		return a.Has(Attribute(name)), true
	default:
		return nil, false
	}
}

// Parent implements cel.Activation; a request has none.
func (a activation) Parent() cel.Activation { return nil }

// newCELGo is one typed program per rule without cost tracking, all of which run.
func newCELGo(p Policy) (func(*Request) (policy.Class, error), error) {
	env, err := cel.NewEnv(
		cel.Variable("capability", cel.StringType), cel.Variable("tool", cel.StringType), cel.Variable("verb", cel.StringType),
		cel.Variable("target", cel.StringType), cel.Variable("costCents", cel.IntType), cel.Variable("reversible", cel.BoolType),
		cel.Variable("confidence", cel.IntType), cel.Variable(string(Escalates), cel.BoolType),
		cel.Variable(string(Exfiltrates), cel.BoolType), cel.Variable(string(External), cel.BoolType), cel.Variable(string(Credentials), cel.BoolType),
	)
	if err != nil {
		return nil, fmt.Errorf("build environment: %w", err)
	}
	programs := make([]cel.Program, 0, len(p))
	for i := range p {
		ast, issues := env.Compile(celSource(&p[i]))
		if err := issues.Err(); err != nil {
			return nil, fmt.Errorf("compile %s: %w", p[i].Name, err)
		}
		program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize))
		if err != nil {
			return nil, fmt.Errorf("plan %s: %w", p[i].Name, err)
		}
		programs = append(programs, program)
	}
	return func(r *Request) (policy.Class, error) {
		var class policy.Class
		for i, program := range programs {
			value, _, err := program.Eval(activation{r})
			if err != nil {
				return 0, fmt.Errorf("evaluate %s: %w", p[i].Name, err)
			}
			if value.Value() == true {
				class = max(class, p[i].Class)
			}
		}
		return strictest(class), nil
	}, nil
}

func celSource(rule *Rule) string {
	if rule.Attribute != "" {
		return string(rule.Attribute)
	}
	source := fmt.Sprintf("capability == %q && tool == %q && verb in [%s] && target.startsWith(%q) && costCents <= %d",
		rule.Capability, rule.Tool, quoted(rule.Verbs), rule.TargetPrefix, rule.MaxCostCents)
	if rule.MinConfidence > 0 {
		source += fmt.Sprintf(" && (reversible || confidence >= %d)", rule.MinConfidence)
	}
	return source
}

// quoted lists strings as CEL, Rego and Cedar write them between their brackets.
func quoted(texts []string) string {
	return `"` + strings.Join(texts, `", "`) + `"`
}
