package expr

import (
	"cmp"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Most expressions of rules compare a few fields of the object with constants. What such a comparison gives is certain
// where the field is there and has the type of the constant; [Program.Plain] answers then without CEL, whose run takes a
// third of the time of such a decision. Everything else is left to CEL: a field that is missing, null or of another type,
// another function, a macro. So there is one definition of what an expression means, and a short cut to it.

// plain is such an expression. known is false where only CEL can tell.
type plain interface {
	holds(object, oldObject map[string]any) (result, known bool)
}

// Plain tells without CEL what the expression gives for the two objects, and known false where it cannot. The cost is that
// of Eval.
func (p *Program) Plain(object, oldObject map[string]any) (result bool, cost uint64, known bool) {
	if p.plain == nil {
		return false, 0, false
	}
	result, known = p.plain.holds(object, oldObject)
	return result, p.bound, known
}

// plainOf is nil for an expression that is none. No part of one is taken out of its whole.
func plainOf(e ast.Expr) plain {
	switch e.Kind() {
	case ast.SelectKind:
		if f, ok := fieldOf(e); ok {
			return truth{f}
		}
	case ast.CallKind:
		return plainCall(e.AsCall())
	}
	return nil
}

func plainCall(call ast.CallExpr) plain {
	arguments := call.Args()
	switch function := call.FunctionName(); function {
	case operators.LogicalAnd, operators.LogicalOr:
		parts := make([]plain, 0, len(arguments))
		for _, argument := range arguments {
			part := plainOf(argument)
			if part == nil {
				return nil
			}
			parts = append(parts, part)
		}
		return junction{parts: parts, decides: function == operators.LogicalOr}
	case operators.LogicalNot:
		if part := plainOf(arguments[0]); part != nil {
			return negation{part}
		}
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return comparisonOf(function, arguments[0], arguments[1])
	}
	return nil
}

// comparisonOf is that of a field with an int or a string.
func comparisonOf(function string, left, right ast.Expr) plain {
	f, ok := fieldOf(left)
	if !ok || right.Kind() != ast.LiteralKind {
		return nil
	}
	switch constant := right.AsLiteral().(type) {
	case types.Int:
		return comparison[int64]{f, function, int64(constant)}
	case types.String:
		return comparison[string]{f, function, string(constant)}
	default:
		return nil
	}
}

// field is a path of fields from one of the two objects.
type field struct {
	old  bool
	path []string
}

func fieldOf(e ast.Expr) (field, bool) {
	if e.Kind() == ast.IdentKind {
		name := e.AsIdent()
		return field{old: name == variableOldObject}, name == variableObject || name == variableOldObject
	}
	if e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly() {
		return field{}, false
	}
	f, ok := fieldOf(e.AsSelect().Operand())
	f.path = append(f.path, e.AsSelect().FieldName())
	return f, ok
}

// value is nil where a field of the path is missing.
func (f *field) value(object, oldObject map[string]any) any {
	value := any(object)
	if f.old {
		value = oldObject
	}
	for _, key := range f.path {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = fields[key]
	}
	return value
}

// truth is a field that is a bool.
type truth struct{ field field }

func (t truth) holds(object, oldObject map[string]any) (result, known bool) {
	result, known = t.field.value(object, oldObject).(bool)
	return result, known
}

// comparison is that of a field with a constant.
type comparison[T cmp.Ordered] struct {
	field    field
	function string
	constant T
}

func (c comparison[T]) holds(object, oldObject map[string]any) (result, known bool) {
	value, known := c.field.value(object, oldObject).(T)
	if !known {
		return false, false
	}
	switch c.function {
	case operators.Equals:
		return value == c.constant, true
	case operators.NotEquals:
		return value != c.constant, true
	case operators.Less:
		return value < c.constant, true
	case operators.LessEquals:
		return value <= c.constant, true
	case operators.Greater:
		return value > c.constant, true
	case operators.GreaterEquals:
		return value >= c.constant, true
	default:
		return false, false
	}
}

type negation struct{ part plain }

func (n negation) holds(object, oldObject map[string]any) (result, known bool) {
	result, known = n.part.holds(object, oldObject)
	return !result, known
}

// junction is a conjunction, which the first false part decides, or a disjunction, which the first true part decides.
type junction struct {
	parts   []plain
	decides bool
}

func (j junction) holds(object, oldObject map[string]any) (result, known bool) {
	for _, part := range j.parts {
		result, known = part.holds(object, oldObject)
		if !known || result == j.decides {
			return result, known
		}
	}
	return !j.decides, true
}

// plainIn is the plain form of a checked expression whose cost is known; nil when it has none.
func plainIn(checked *cel.Ast, bound uint64) plain {
	if bound == 0 {
		return nil
	}
	return plainOf(checked.NativeRep().Expr())
}
