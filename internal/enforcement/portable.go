package enforcement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/parser"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// oldestKubernetes is the oldest release whose admission must accept what is compiled here.
var oldestKubernetes = version.MajorMinor(1, 34)

// admissionEnvironment is CEL as the oldest API server has it, with the variables of admission policies.
var admissionEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(oldestKubernetes).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType),
			cel.Variable("request", cel.DynType), cel.Variable("variables", cel.DynType),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("build the CEL environment of admission: %w", err)
	}
	return set.Env(environment.NewExpressions)
})

// admissible is nil for an expression that an API server takes.
func admissible(expression string) error {
	env, err := admissionEnvironment()
	if err != nil {
		return err
	}
	checked, issues := env.Compile(expression)
	if issues != nil && len(issues.Errors()) > 0 {
		return errors.New(issues.Errors()[0].Message)
	}
	if _, err := env.Program(checked); err != nil {
		return fmt.Errorf("make the program: %w", err)
	}
	return nil
}

// requestFields are what `request` has in the rule language; admission's own has others of the same names.
var requestFields = []string{
	"verb", "namespace", "name", "dryRun", "resource.group", "resource.version", "resource.resource", "resource.subresource",
}

// sameFunctions mean the same in the rule language and in admission, for every argument, and their errors hold nothing
// of the objects: what the API server answers when one errs, an agent reads. So there is no conversion or parser among
// them, and no arithmetic, because a whole number of a custom resource can be an int for one and a double for the other.
var sameFunctions = []string{
	operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.NotStrictlyFalse,
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
	operators.In, operators.OptSelect, operators.OptIndex,
	"size", "contains", "startsWith", "endsWith", "lowerAscii", "upperAscii", "trim",
	"orValue", "or", "hasValue", "value", "optional.none", "optional.of",
}

// literalFunctions are the same as long as their last argument is a literal.
var literalFunctions = []string{operators.Index, "matches"}

// accumulators are the variables that macros write; which one they use is a setting of the environment.
var accumulators = []string{parser.AccumulatorName, parser.HiddenAccumulatorName}

// portable is nil for an expression of the rule language that means the same over the variables object, oldObject and
// asked in an admission policy, errors included: where it errs here, it errs there. The error says what does not.
func portable(when string) error {
	env, err := admissionEnvironment()
	if err != nil {
		return err
	}
	for _, name := range accumulators {
		if strings.Contains(when, name) {
			return fmt.Errorf("%s is not the same in admission", name)
		}
	}
	parsed, issues := env.Parse(when)
	if issues != nil && len(issues.Errors()) > 0 {
		return errors.New(issues.Errors()[0].Message)
	}
	return portableExpression(parsed.NativeRep().Expr(), nil)
}

// portableExpression looks at one node; bound are the variables of the comprehensions around it.
func portableExpression(e ast.Expr, bound []string) error {
	switch e.Kind() {
	case ast.LiteralKind:
		return nil
	case ast.IdentKind:
		if name := e.AsIdent(); !slices.Contains(append([]string{"object", "oldObject"}, bound...), name) {
			return fmt.Errorf("%s is not the same in admission", name)
		}
		return nil
	case ast.SelectKind:
		return portableSelect(e, bound)
	case ast.CallKind:
		return portableCall(e.AsCall(), bound)
	case ast.ListKind:
		return portableAll(e.AsList().Elements(), bound)
	case ast.MapKind:
		return portableMap(e.AsMap(), bound)
	case ast.ComprehensionKind:
		return portableComprehension(e.AsComprehension(), bound)
	default:
		return errors.New("messages are not the same in admission")
	}
}

// portableMap looks at a map literal; a key that is repeated is an error with that key in it.
func portableMap(m ast.MapExpr, bound []string) error {
	for _, entry := range m.Entries() {
		if entry.AsMapEntry().Key().Kind() != ast.LiteralKind {
			return errors.New("a map whose keys are not literals is not the same in admission")
		}
		if err := portableExpression(entry.AsMapEntry().Value(), bound); err != nil {
			return err
		}
	}
	return nil
}

func portableAll(expressions []ast.Expr, bound []string) error {
	for _, e := range expressions {
		if err := portableExpression(e, bound); err != nil {
			return err
		}
	}
	return nil
}

func portableSelect(e ast.Expr, bound []string) error {
	path := ""
	root := e
	for root.Kind() == ast.SelectKind {
		path = "." + root.AsSelect().FieldName() + path
		root = root.AsSelect().Operand()
	}
	if root.Kind() != ast.IdentKind || root.AsIdent() != "request" || slices.Contains(bound, "request") {
		return portableExpression(e.AsSelect().Operand(), bound)
	}
	// A typed field counts as absent when it is empty, an entry of a map does not.
	if e.AsSelect().IsTestOnly() || !slices.Contains(requestFields, strings.TrimPrefix(path, ".")) {
		return fmt.Errorf("request%s is not the same in admission", path)
	}
	return nil
}

func portableCall(call ast.CallExpr, bound []string) error {
	name, args := call.FunctionName(), call.Args()
	switch {
	case slices.Contains(sameFunctions, name):
	case slices.Contains(literalFunctions, name) && args[len(args)-1].Kind() == ast.LiteralKind:
	case name == operators.Add && args[0].Kind() == ast.IdentKind && slices.Contains(accumulators, args[0].AsIdent()):
		// how filter, map and exists_one count and collect
	case name == operators.Index:
		return errors.New("an index that is not a literal says what it was when it fails, and that may hold data")
	default:
		return fmt.Errorf("%s is not the same in admission, or what it says when it fails may hold data", readable(name))
	}
	if call.IsMemberFunction() {
		if err := portableExpression(call.Target(), bound); err != nil {
			return err
		}
	}
	return portableAll(args, bound)
}

// readable is the sign of an operator, or the name of a function.
func readable(function string) string {
	if sign, ok := operators.FindReverse(function); ok && sign != "" {
		return sign
	}
	return strings.Trim(function, "_@")
}

func portableComprehension(c ast.ComprehensionExpr, bound []string) error {
	if err := portableAll([]ast.Expr{c.IterRange(), c.AccuInit()}, bound); err != nil {
		return err
	}
	inside := append(slices.Clone(bound), c.IterVar(), c.AccuVar())
	if c.HasIterVar2() {
		inside = append(inside, c.IterVar2())
	}
	return portableAll([]ast.Expr{c.LoopCondition(), c.LoopStep(), c.Result()}, inside)
}
