package expr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"stepbeyond.dev/stepbeyond/policy/expr"
)

// Every variable of the rule language, and nothing else, is there.
func TestExpressionsSeeTheDeclaredVariables(t *testing.T) {
	v := &expr.View{
		Request: expr.Request{
			Verb: "update", Namespace: "checkout", Name: "web", DryRun: true,
			Resource: expr.Resource{Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale"},
		},
		Target:  expr.Target{Origin: "Person", UID: "u1", PodTemplates: []expr.PodTemplate{{ServiceAccountName: "a", Images: []string{"i"}}}},
		Session: expr.Session{Namespace: "checkout", Name: "agent", Username: "system:serviceaccount:checkout:agent"},
		Object:  map[string]any{"new": true}, OldObject: map[string]any{"old": true},
	}
	for _, source := range []string{
		`request.verb == 'update' && request.namespace == 'checkout' && request.name == 'web' && request.dryRun`,
		`request.resource.group == 'apps' && request.resource.version == 'v1'`,
		`request.resource.resource == 'deployments' && request.resource.subresource == 'scale'`,
		`target.origin == 'Person' && target.uid == 'u1'`,
		`target.podTemplates[0].serviceAccountName == 'a' && target.podTemplates[0].images == ['i']`,
		`session.namespace == 'checkout' && session.name == 'agent' && session.username.startsWith('system:')`,
		`object.new && oldObject.old`,
	} {
		program, err := expr.Compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got, _, err := program.Eval(v); err != nil || !got {
			t.Errorf("%s gives %v, %v, want true", source, got, err)
		}
	}
	for _, name := range []string{"", "now", "user", "facts", "grant"} {
		if value, known := v.ResolveName(name); known {
			t.Errorf("variable %q is %v, want none", name, value)
		}
	}
	if v.Parent() != nil {
		t.Error("the view has a parent, so expressions see more than is declared")
	}
}

// A problem is told with its place, and what is behind it can be asked for.
func TestAProblemSaysWhereItIs(t *testing.T) {
	_, err := expr.Compile("request.verb")
	if !errors.Is(err, expr.ErrNotBool) || !strings.HasPrefix(err.Error(), "line 1, column 1: ") {
		t.Errorf("error %v, want ErrNotBool with line and column", err)
	}
}

// hostile is a value that panics when it is compared or read, as a function with a mistake does.
type hostile struct{ types.Null }

func (hostile) Equal(ref.Val) ref.Val { panic("compared") }

func (hostile) Value() any { panic("read") }

// A panic ends its own expression and nothing else.
func TestAPanicIsAnError(t *testing.T) {
	for _, source := range []string{`object.x == [1]`, `object.x`} {
		program, err := expr.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		if got, cost, err := program.Eval(&expr.View{Object: map[string]any{"x": hostile{}}}); got || cost < 1 || err == nil {
			t.Errorf("%s gives %v at cost %d, error %v, want an error and its cost", source, got, cost, err)
		}
	}
}

// An object that is no JSON cannot be looked at.
func TestAnObjectThatIsNoJSONIsAnError(t *testing.T) {
	program, err := expr.Compile(`object.x == 1`)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := program.Eval(&expr.View{Object: map[string]any{"x": func() {}}}); got || err == nil {
		t.Errorf("result %v, %v, want an error", got, err)
	}
}

// What an object holds has the type that it has in JSON, whichever adapter converts it, and also as an element.
func TestScalarsOfAnObjectKeepTheirTypes(t *testing.T) {
	object := map[string]any{
		"whole": int64(1), "small": int32(1), "fraction": 0.5, "text": "a", "yes": true, "nothing": nil,
		"list": []any{int64(1), "a"}, "map": map[string]any{"one": int64(1)},
	}
	for _, source := range []string{
		`type(object.whole) == int && object.whole == 1`, `type(object.small) == int && object.small == 1`,
		`type(object.fraction) == double && object.fraction == 0.5 && object.fraction < object.whole`,
		`type(object.text) == string && object.text == 'a'`, `type(object.yes) == bool && object.yes`,
		`object.nothing == null`, `type(object.list) == list && object.list == [1, 'a'] && 'a' in object.list`,
		`type(object.map) == map && object.map == {'one': 1} && object.map.one == 1`,
	} {
		program, err := expr.Compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got, _, err := program.Eval(&expr.View{Object: object}); err != nil || !got {
			t.Errorf("%s gives %v, %v, want true", source, got, err)
		}
	}
}
