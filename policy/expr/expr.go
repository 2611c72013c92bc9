// Package expr compiles and runs the CEL expressions of policies: once compiled, bounded in cost, over a small typed
// view of the operation.
package expr

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"
)

// MaxCost is the cost limit of one run of one program, in the cost units of CEL.
const MaxCost = 1_000_000

// ErrNotBool is returned by Compile for an expression whose result is not a bool.
var ErrNotBool = errors.New("the expression must give a bool")

// ErrEval is returned by Eval for an expression that cannot be evaluated on the view.
var ErrEval = errors.New("the expression cannot be evaluated")

// Request is the variable `request`.
type Request struct {
	Verb      string   `cel:"verb"`
	Resource  Resource `cel:"resource"`
	Namespace string   `cel:"namespace"`
	Name      string   `cel:"name"`
	DryRun    bool     `cel:"dryRun"`
}

// Resource is `request.resource`.
type Resource struct {
	Group       string `cel:"group"`
	Version     string `cel:"version"`
	Resource    string `cel:"resource"`
	Subresource string `cel:"subresource"`
}

// Target is the variable `target`.
type Target struct {
	Origin       string        `cel:"origin"`
	UID          string        `cel:"uid"`
	PodTemplates []PodTemplate `cel:"podTemplates"`
}

// PodTemplate is an element of `target.podTemplates`.
type PodTemplate struct {
	ServiceAccountName string   `cel:"serviceAccountName"`
	Images             []string `cel:"images"`
}

// Session is the variable `session`.
type Session struct {
	Namespace string `cel:"namespace"`
	Name      string `cel:"name"`
	Username  string `cel:"username"`
}

// Names of the variables that hold what was sent.
const (
	variableObject    = "object"
	variableOldObject = "oldObject"
)

// View is what an expression sees. Object and OldObject are null where the request has none.
type View struct {
	Request   Request
	Target    Target
	Session   Session
	Object    map[string]any
	OldObject map[string]any
}

// Forget lets go of the request's content, so that a view can be kept for the next one, which sets every field.
func (v *View) Forget() { v.Object, v.OldObject, v.Target.PodTemplates = nil, nil, nil }

// ResolveName implements cel's activation.
func (v *View) ResolveName(name string) (any, bool) {
	switch name {
	case "request":
		return v.Request, true
	case "target":
		return v.Target, true
	case "session":
		return v.Session, true
	case variableObject:
		return nullable(v.Object), true
	case variableOldObject:
		return nullable(v.OldObject), true
	default:
		return nil, false
	}
}

// Parent implements cel's activation; a view has none.
func (v *View) Parent() cel.Activation { return nil }

// nullable keeps a nil map from reaching CEL as an empty one: rules test `object != null`.
func nullable(object map[string]any) any {
	if object == nil {
		return nil
	}
	return object
}

var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.OptionalTypes(), ext.Strings(), ext.Sets(), cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		cel.EagerlyValidateDeclarations(true),
		library.Regex(), library.Lists(), library.URLs(), library.Quantity(), library.IP(), library.CIDR(), library.Format(),
		library.SemverLib(),
		ext.NativeTypes(ext.ParseStructTags(true), reflect.TypeFor[Request](), reflect.TypeFor[Target](), reflect.TypeFor[Session]()),
		scalarsFirst,
		cel.Variable("request", cel.ObjectType("expr.Request")),
		cel.Variable("target", cel.ObjectType("expr.Target")),
		cel.Variable("session", cel.ObjectType("expr.Session")),
		cel.Variable(variableObject, cel.DynType),
		cel.Variable(variableOldObject, cel.DynType),
	)
})

// scalarsFirst converts scalars before the adapter of native types does, which finds out by reflection that they are none.
func scalarsFirst(env *cel.Env) (*cel.Env, error) {
	return cel.CustomTypeAdapter(scalars{env.CELTypeAdapter()})(env)
}

// scalars is an adapter that converts what decoded JSON and the view hold most as its base would.
type scalars struct{ types.Adapter }

// NativeToValue implements types.Adapter.
func (s scalars) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case bool:
		return types.Bool(v)
	case int64:
		return types.Int(v)
	case float64:
		return types.Double(v)
	case string:
		return types.String(v)
	default:
		return s.Adapter.NativeToValue(value)
	}
}

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	program cel.Program
	// bound is what a run costs at most; 0 for a program whose cost is counted while it runs.
	bound uint64
	// plain is nil for a program that only CEL can run.
	plain plain
}

// SyntaxError is why an expression does not compile.
type SyntaxError struct {
	Line, Column int // 1-based
	Message      string

	err error
}

// Unwrap gives ErrNotBool where that is the cause.
func (e *SyntaxError) Unwrap() error { return e.err }

// Error names line, column and cause.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// Compile checks an expression against the declared variables. The error is a [*SyntaxError] with the first place that
// is wrong; it wraps [ErrNotBool] where the type of the result is.
func Compile(source string) (*Program, error) {
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("build CEL environment: %w", err)
	}
	ast, issues := env.Compile(source)
	if issues != nil && len(issues.Errors()) > 0 {
		first := issues.Errors()[0]
		return nil, &SyntaxError{Line: first.Location.Line(), Column: first.Location.Column() + 1, Message: first.Message}
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		// The whole expression has the wrong type, so its beginning is the place.
		return nil, &SyntaxError{Line: 1, Column: 1, Message: fmt.Sprintf("%s, not %s", ErrNotBool, t), err: ErrNotBool}
	}
	p := &Program{}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	// To count the cost of a run takes longer than the run, so a program that is cheap by its form is not counted.
	if estimate, err := env.EstimateCost(ast, sizes{}); err == nil && estimate.Max <= maxUncounted {
		p.bound = max(1, estimate.Max)
	} else {
		options = append(options, cel.CostLimit(MaxCost))
	}
	if p.program, err = env.Program(ast, options...); err != nil {
		// A constant argument that its function refuses, such as a pattern that is none; CEL does not say where it stands.
		return nil, &SyntaxError{Line: 1, Column: 1, Message: err.Error()}
	}
	p.plain = plainIn(ast, p.bound)
	return p, nil
}

// maxUncounted is the largest cost of a program that runs without counting.
const maxUncounted = MaxCost / 1000

// sizes knows no size of any input and no cost of any function beyond CEL's own: what depends on them is unbounded.
type sizes struct{}

// EstimateSize implements checker.CostEstimator.
func (sizes) EstimateSize(checker.AstNode) *checker.SizeEstimate { return nil }

// EstimateCallCost implements checker.CostEstimator. A function that the estimate does not know would count as cheap.
func (sizes) EstimateCallCost(function, overloadID string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	return (&library.CostEstimator{SizeEstimator: sizes{}}).EstimateCallCost(function, overloadID, target, args)
}

// Eval runs the program. cost is what the run cost, at least 1, also when it failed. An error means that the result is
// not known: [ErrEval] for a type mismatch, a missing field, the cost limit or a panic in a function, [ErrNotBool] for a
// result of another type.
func (p *Program) Eval(view *View) (result bool, cost uint64, err error) {
	cost = max(1, p.bound)
	defer func() {
		if recover() != nil {
			result, err = false, ErrEval // the panic's value may hold request data as well
		}
	}()
	value, details, err := p.program.Eval(view)
	if details != nil && details.ActualCost() != nil {
		cost = max(cost, *details.ActualCost())
	}
	if err != nil {
		// CEL turns a panic into an error with the panic's value, and other errors quote values too. They may hold request
		// data, and nobody needs them: a rule that cannot be evaluated counts by its kind.
		return false, cost, ErrEval
	}
	result, ok := value.Value().(bool)
	if !ok {
		return false, cost, fmt.Errorf("evaluate: %w", ErrNotBool)
	}
	return result, cost, nil
}
