package kube_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"stepbeyond.dev/stepbeyond/policy/kube"
)

// FuzzOperation: whatever JSON a request holds, it is read or refused with a path, what it becomes is bounded, and the
// same request gives the same answer.
func FuzzOperation(f *testing.F) {
	for kind, form := range podKinds {
		f.Add("UPDATE "+kind, fmt.Sprintf(form, `{"containers":[{"name":"a","image":"b","env":[{"name":"A","value":"1"}]}]}`), fmt.Sprintf(form, `{}`), `{}`)
	}
	f.Add("UPDATE apps/deployments/scale", `{"metadata":{"uid":"1"},"spec":{}}`, `{"metadata":{"uid":"1"},"spec":{"replicas":2}}`, `{}`)
	f.Add("UPDATE apps/statefulsets", `{"metadata":{"name":"a"},"spec":{"replicas":9,"ordinals":{"start":1},"volumeClaimTemplates":[{"metadata":{"name":"d"}}]}}`, `{"spec":{"replicas":-1,"volumeClaimTemplates":[{"metadata":{"name":"d"}}]}}`, ``)
	f.Add("CREATE autoscaling/horizontalpodautoscalers", `{"spec":{"minReplicas":0,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"a"}}}`, ``, ``)
	f.Add("CREATE services", `{"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30000}],"clusterIP":"None"}}`, ``, `{}`)
	f.Add("UPDATE services", `{"spec":{"ports":[{"port":80}]}}`, `{"spec":{"ports":[{"port":[],"nodePort":1}]}}`, `{}`)
	f.Add("DELETE persistentvolumeclaims", ``, `{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}`, `{"gracePeriodSeconds":0,"preconditions":{"uid":"1"}}`)
	f.Add("CONNECT pods/exec", `{"command":["ls"],"container":"a"}`, ``, ``)
	f.Add("CREATE pods/eviction", `{"deleteOptions":{"gracePeriodSeconds":1e400}}`, ``, ``)
	f.Add("UPDATE namespaces", `{"metadata":{"labels":{"stepbeyond.dev/profile":1}}}`, `{"metadata":null}`, ``)
	f.Fuzz(func(t *testing.T, what, object, old, options string) {
		var req kube.Request
		read := func(text string) map[string]any {
			var fields map[string]any
			decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
			decoder.UseNumber()
			if decoder.Decode(&fields) != nil {
				return nil
			}
			return fields
		}
		req = request(t, what, "", "")
		req.Object, req.OldObject, req.Options = read(object), read(old), read(options)
		req.Parent = req.OldObject
		op, err := kube.Operation(req, foreign())
		again, errAgain := kube.Operation(req, foreign())
		if fmt.Sprint(err) != fmt.Sprint(errAgain) || op.Facts != again.Facts {
			t.Fatalf("two answers: %v, %v", err, errAgain)
		}
		var malformed *kube.MalformedError
		if err != nil {
			if !errors.As(err, &malformed) || malformed.Path == "" {
				t.Fatalf("no path in %v", err)
			}
			return
		}
		form, err := kube.ExactForm(testKey, req, op.Target, binding)
		if err != nil {
			return
		}
		second, err := kube.ExactForm(testKey, req, op.Target, binding)
		if err != nil || !bytes.Equal(form.Canonical, second.Canonical) {
			t.Fatalf("two forms, or %v", err)
		}
		if len(form.Lines) > 64 {
			t.Errorf("%d lines", len(form.Lines))
		}
		for _, line := range form.Lines {
			for _, r := range line {
				if r < ' ' || r > '~' {
					t.Errorf("line %q is not printable ASCII", line)
				}
			}
			if len(line) > 256 {
				t.Errorf("a line of %d characters", len(line))
			}
		}
	})
}
