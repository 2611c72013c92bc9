package kube_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"stepbeyond.dev/stepbeyond/policy/kube"
)

// nested is an object inside an object, and a list inside a list.
func nested(depth int) (map[string]any, []any) {
	object, list := map[string]any{"a": "x"}, []any{"x"}
	for range depth {
		object, list = map[string]any{"a": object}, []any{list}
	}
	return object, list
}

// Objects of any depth and width are read or refused with a path, and what people read of them stays bounded. The depth is
// the largest that a JSON decoder takes.
func TestHostileObjectsAreReadOrRefused(t *testing.T) {
	deep, lists := nested(9000)
	wide := map[string]any{}
	for i := range 20_000 {
		wide[fmt.Sprintf("key-%d", i)] = strings.Repeat("v", 40)
	}
	containers := make([]any, 5000)
	for i := range containers {
		containers[i] = map[string]any{"name": fmt.Sprint("c", i), "image": "i", "env": []any{map[string]any{"name": "A", "value": "1"}}}
	}
	for name, spec := range map[string]any{
		"a deep object": deep, "a deep list": lists, "a wide object": wide,
		"many containers":                   map[string]any{"containers": containers},
		"a deep object among containers":    map[string]any{"containers": []any{deep}},
		"a deep list instead of containers": map[string]any{"containers": lists},
		"a deep volume":                     map[string]any{"volumes": []any{map[string]any{"name": "v", "projected": deep}}},
		"a deep value in an env":            map[string]any{"containers": []any{map[string]any{"env": []any{map[string]any{"name": "A", "value": deep}}}}},
	} {
		for _, what := range []string{"CREATE pods", "UPDATE pods", "CREATE configmaps", "UPDATE acme.example/widgets"} {
			t.Run(name+", "+what, func(t *testing.T) {
				req := request(t, what, "", "")
				req.Object = map[string]any{"metadata": map[string]any{"name": "a", "namespace": "checkout"}, "spec": spec}
				if strings.HasPrefix(what, "UPDATE") {
					req.OldObject = map[string]any{"metadata": map[string]any{"name": "a", "namespace": "checkout"}}
				}
				op, err := kube.Operation(req, foreign())
				var malformed *kube.MalformedError
				if err != nil {
					if !errors.As(err, &malformed) || malformed.Path == "" || len(malformed.Error()) > 4096 {
						t.Errorf("error %.200v, want a bounded one with a path", err)
					}
					return
				}
				form, err := kube.ExactForm(testKey, req, op.Target, binding)
				if err != nil {
					t.Fatalf("%.200v", err)
				}
				if len(form.Lines) > 64 {
					t.Errorf("%d lines, want at most 64", len(form.Lines))
				}
				for _, line := range form.Lines {
					if len(line) > 512 {
						t.Errorf("a line of %d characters, want at most 512", len(line))
					}
				}
			})
		}
	}
}
