package expr_test

import (
	"errors"
	"strings"
	"testing"

	"stepbeyond.dev/stepbeyond/policy/expr"
)

func view() *expr.View {
	return &expr.View{
		Request: expr.Request{Verb: "create", Resource: expr.Resource{Resource: "services"}, Namespace: "checkout"},
		Target: expr.Target{Origin: "Unknown", PodTemplates: []expr.PodTemplate{
			{ServiceAccountName: "agent", Images: []string{"registry.acme.example/web:1", "docker.example/debug"}},
		}},
		Object: map[string]any{"spec": map[string]any{"type": "LoadBalancer", "replicas": int64(3)}},
	}
}

func TestEval(t *testing.T) {
	for name, test := range map[string]struct {
		source  string
		want    bool
		wantErr bool
	}{
		"a typed field of the request is read":           {source: `request.resource.resource == 'services'`, want: true},
		"an optional field of the object is read":        {source: `object.spec.?type.orValue('ClusterIP') in ['LoadBalancer']`, want: true},
		"a missing optional field takes its default":     {source: `object.spec.?absent.orValue('x') == 'x'`, want: true},
		"a number of the object compares with a literal": {source: `object.spec.replicas > 2`, want: true},
		"images of pod templates are read":               {source: `target.podTemplates.exists(t, t.images.exists(i, !i.startsWith('registry.acme.example/')))`, want: true},
		"an object that is not there is null":            {source: `oldObject == null`, want: true},
		"a missing field is an error, not false":         {source: `object.spec.absent == 1`, wantErr: true},
		"a result that is not a bool is an error":        {source: `object.spec.type`, wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := expr.Compile(test.source)
			if err != nil {
				t.Fatal(err)
			}
			got, cost, err := program.Eval(view())
			if (err != nil) != test.wantErr {
				t.Fatalf("error = %v, want error %v", err, test.wantErr)
			}
			if got != test.want {
				t.Errorf("result = %v, want %v", got, test.want)
			}
			if cost < 1 {
				t.Errorf("cost = %d, want at least 1", cost)
			}
		})
	}
}

func TestCompileNamesThePlace(t *testing.T) {
	_, err := expr.Compile("request.verb == 'create' &&\n  request.nothing == 1")
	var syntax *expr.SyntaxError
	if !errors.As(err, &syntax) {
		t.Fatalf("error = %v, want a SyntaxError", err)
	}
	if syntax.Line != 2 || syntax.Column != 10 || !strings.Contains(syntax.Message, "nothing") {
		t.Errorf("error = %v, want line 2, column 10 and the field's name", err)
	}
	if _, err := expr.Compile(`1 + 1`); !errors.Is(err, expr.ErrNotBool) {
		t.Errorf("error = %v, want ErrNotBool", err)
	}
}

func TestAnExpressionThatCostsTooMuchFails(t *testing.T) {
	v := view()
	list := make([]any, 3000)
	for i := range list {
		list[i] = int64(i)
	}
	v.Object["list"] = list
	program, err := expr.Compile(`object.list.all(a, object.list.all(b, a + b >= 0))`)
	if err != nil {
		t.Fatal(err)
	}
	if _, cost, err := program.Eval(v); err == nil || cost < expr.MaxCost {
		t.Errorf("cost = %d, error = %v, want the cost limit to stop it", cost, err)
	}
}
