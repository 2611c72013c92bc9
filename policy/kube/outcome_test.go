package kube_test

import (
	"encoding/json"
	"strings"
	"testing"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// Proves G-5: whether a stored version carries an approved change is told from the lines of the grant; what cannot be
// told is never taken for absent.
func TestAVersionCarriesAChangeOrDoesNot(t *testing.T) {
	const web = `{"kind":"Deployment","metadata":{"name":"web","uid":"u-1","labels":{"app":"web"},"annotations":{"acme.example/note: a":"1"},"finalizers":["acme.example/keep"]},
		"spec":{"replicas":3,"paused":true,"template":{"spec":{"containers":[{"name":"web","image":"web:1"},{"name":"log","image":"log:1"}]}}}}`
	with := func(old, new string) string {
		t.Helper()
		if strings.Count(web, old) != 1 {
			t.Fatalf("%q is not once in the object", old)
		}
		return strings.Replace(web, old, new, 1)
	}
	scaled := with(`"replicas":3`, `"replicas":6`)
	image := with(`web:1`, `web:2`)
	both := strings.Replace(scaled, `web:1`, `web:2`, 1)
	relabelled := with(`"labels":{"app":"web"}`, `"labels":{"app":"web","tier":"front"}`)
	unpaused := with(`"paused":true,`, ``)
	noted := with(`"acme.example/note: a":"1"`, `"acme.example/note: a":"2"`)
	sidecar := with(`{"name":"log","image":"log:1"}`, `{"name":"log","image":"log:1"},{"name":"new","image":"new:1"}`)
	emptied := with(`,"finalizers":["acme.example/keep"]`, ``)
	tests := []struct {
		name         string
		changed, now string
		want         kube.Outcome
	}{
		{"the change itself", scaled, scaled, kube.OutcomeCarried},
		{"another writer's status", scaled, web, kube.OutcomeAbsent},
		{"the change among others", scaled, both, kube.OutcomeCarried},
		{"half of the change", both, image, kube.OutcomeAbsent},
		{"another value", scaled, with(`"replicas":3`, `"replicas":9`), kube.OutcomeAbsent},
		{"an item by its name", image, image, kube.OutcomeCarried},
		{"an item by its name, before", image, web, kube.OutcomeAbsent},
		{"a key that is new", relabelled, relabelled, kube.OutcomeCarried},
		{"a key that is not there yet", relabelled, web, kube.OutcomeAbsent},
		{"a field that goes", unpaused, unpaused, kube.OutcomeCarried},
		{"a field that is still there", unpaused, web, kube.OutcomeAbsent},
		{"a key that looks like a line", noted, noted, kube.OutcomeCarried},
		{"an item that is new", sidecar, sidecar, kube.OutcomeCarried},
		{"an item that is not there, or under another name", sidecar, web, kube.OutcomeUnclear},
		{"finalizers that go", emptied, emptied, kube.OutcomeCarried},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			form := exact(t, request(t, "UPDATE apps/deployments", tt.changed, web))
			got, err := kube.OutcomeOf(testKey, policy.Target{Group: "apps", Resource: "deployments", Namespace: "checkout", Name: "web"}, form.Lines, request(t, "UPDATE apps/deployments", tt.now, web).Object)
			if err != nil || got != tt.want {
				t.Errorf("outcome %d, %v, want %d of %q", got, err, tt.want, form.Lines)
			}
		})
	}
	t.Run("a scale is seen on its workload", func(t *testing.T) {
		req := request(t, "UPDATE apps/deployments/scale", `{"kind":"Scale","metadata":{"name":"web","uid":"u-1"},"spec":{"replicas":6}}`, `{"kind":"Scale","metadata":{"name":"web","uid":"u-1"},"spec":{"replicas":3}}`)
		req.Parent = request(t, "UPDATE apps/deployments", web, web).Object
		form := exact(t, req)
		for object, want := range map[string]kube.Outcome{scaled: kube.OutcomeCarried, web: kube.OutcomeAbsent} {
			got, err := kube.OutcomeOf(testKey, policy.Target{Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "checkout", Name: "web"}, form.Lines, request(t, "UPDATE apps/deployments", object, web).Object)
			if err != nil || got != want {
				t.Errorf("outcome %d, %v, want %d of %q", got, err, want, form.Lines)
			}
		}
	})
	t.Run("a scale of a custom resource cannot be told", func(t *testing.T) {
		req := request(t, "UPDATE acme.example/widgets/scale", `{"kind":"Scale","metadata":{"name":"web","uid":"u-1"},"spec":{}}`, `{"kind":"Scale","metadata":{"name":"web","uid":"u-1"},"spec":{"replicas":1}}`)
		form := exact(t, req)
		got, err := kube.OutcomeOf(testKey, policy.Target{Group: "acme.example", Resource: "widgets", Subresource: "scale", Namespace: "checkout", Name: "web"}, form.Lines,
			request(t, "UPDATE acme.example/widgets", `{"metadata":{"name":"web","uid":"u-1"},"spec":{"replicas":0}}`, web).Object)
		if err != nil || got != kube.OutcomeUnclear {
			t.Errorf("outcome %d, %v, want unclear of %q", got, err, form.Lines)
		}
	})
	t.Run("a status that goes is carried where there is none", func(t *testing.T) {
		form := exact(t, request(t, "UPDATE acme.example/widgets", `{"metadata":{"name":"web"}}`, `{"metadata":{"name":"web"},"status":{"a":1}}`))
		got, err := kube.OutcomeOf(testKey, policy.Target{Group: "acme.example", Resource: "widgets", Namespace: "checkout", Name: "web"}, form.Lines,
			request(t, "UPDATE acme.example/widgets", `{"metadata":{"name":"web"}}`, web).Object)
		if err != nil || got == kube.OutcomeAbsent {
			t.Errorf("outcome %d, %v of %q", got, err, form.Lines)
		}
	})
	t.Run("a restart is told by its digest only", func(t *testing.T) {
		restarted := func(at string) string {
			return with(`"template":{`, `"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"`+at+`"}},`)
		}
		form := exact(t, request(t, "UPDATE apps/deployments", restarted("1"), web))
		digests := map[string]bool{}
		for _, object := range []string{web, restarted("1"), restarted("2")} {
			fields := request(t, "UPDATE apps/deployments", object, web).Object
			got, err := kube.OutcomeOf(testKey, policy.Target{Group: "apps", Resource: "deployments", Namespace: "checkout", Name: "web"}, form.Lines, fields)
			if err != nil || got != kube.OutcomeUnclear {
				t.Errorf("outcome %d, %v, want unclear of %q", got, err, form.Lines)
			}
			digest, err := kube.ObjectDigest(testKey, "apps", "deployments", fields)
			if err != nil {
				t.Fatal(err)
			}
			digests[digest] = true
		}
		if len(digests) != 3 {
			t.Errorf("%d digests of three objects", len(digests))
		}
	})
	t.Run("emptied finalizers are told from other changes", func(t *testing.T) {
		for object, want := range map[string]bool{emptied: true, scaled: false} {
			if form := exact(t, request(t, "UPDATE apps/deployments", object, web)); kube.EmptiesFinalizers(form.Lines) != want {
				t.Errorf("%q: empties finalizers = %t", form.Lines, !want)
			}
		}
	})
}

// FuzzOutcome: whatever an update changes, the object that it leaves is never said to lack the change.
//
// Proves G-5.
func FuzzOutcome(f *testing.F) {
	f.Add("UPDATE apps/deployments", `{"spec":{"replicas":3,"a":{"b":1}}}`, `{"spec":{"replicas":6,"a":{}}}`)
	f.Add("UPDATE configmaps", `{"data":{"a: b":"x -> y","c[d]":"1"}}`, `{"data":{"a: b":"x","e..":"z"}}`)
	f.Add("UPDATE services", `{"spec":{"ports":[{"name":"a","port":1},{"name":"b","port":2}]}}`, `{"spec":{"ports":[{"name":"b","port":2},{"name":"a","port":3}],"type":"NodePort"}}`)
	f.Add("UPDATE acme.example/widgets", `{"spec":{"list":[[1,2],[]],"x":null}}`, `{"spec":{"list":[[2],[null]],"x":{"y":[]}}}`)
	f.Fuzz(func(t *testing.T, what, old, object string) {
		req := request(t, what, "", "")
		if json.Unmarshal([]byte(object), &req.Object) != nil || json.Unmarshal([]byte(old), &req.OldObject) != nil || req.Operation != "UPDATE" || req.Object == nil || req.OldObject == nil {
			return
		}
		target := policy.Target{Group: req.Group, Resource: req.Resource, Subresource: req.Subresource, Name: "x"}
		form, err := kube.ExactForm(testKey, req, target, binding)
		if err != nil {
			return
		}
		outcome, err := kube.OutcomeOf(testKey, target, form.Lines, req.Object)
		if err != nil {
			t.Fatal(err)
		}
		if outcome == kube.OutcomeAbsent {
			t.Fatalf("the object lacks its own change: %q", form.Lines)
		}
	})
}
