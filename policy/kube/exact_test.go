package kube_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

var (
	testKey = kube.Key{1, 2, 3}
	binding = kube.Binding{SessionUID: "s-1", Epoch: 1, Stage: policy.StageExecute}
)

func exact(t *testing.T, req kube.Request) kube.Exact {
	t.Helper()
	op, err := kube.Operation(req, own())
	if err != nil {
		t.Fatalf("Operation: %v", err)
	}
	form, err := kube.ExactForm(testKey, req, op.Target, binding)
	if err != nil {
		t.Fatalf("ExactForm: %v", err)
	}
	return form
}

const deploymentOld = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","uid":"u-1","resourceVersion":"7",
	"generation":3,"creationTimestamp":"2026-01-01T00:00:00Z","managedFields":[{"manager":"kubectl"}],
	"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","stepbeyond.dev/created-by":"x","deployment.kubernetes.io/revision":"1"}},
	"spec":{"replicas":3,"template":{"metadata":{"creationTimestamp":null},"spec":{"containers":[{"name":"web","image":"web:1"}]}}},
	"status":{"replicas":3}}`

// Proves G-2: all ways to make one change have one digest, and every other change has another.
func TestOneChangeHasOneForm(t *testing.T) {
	scaled := strings.Replace(deploymentOld, `"replicas":3,"template"`, `"replicas":6,"template"`, 1)
	base := exact(t, request(t, "UPDATE apps/deployments", scaled, deploymentOld))
	same := []struct{ name, object, old string }{
		{"another resourceVersion, generation and managedFields", strings.NewReplacer(
			`"resourceVersion":"7"`, `"resourceVersion":"8"`, `"generation":3`, `"generation":4`, `"manager":"kubectl"`, `"manager":"helm"`).Replace(scaled), deploymentOld},
		{"a status that a controller wrote in between", strings.Replace(scaled, `"status":{"replicas":3}`, `"status":{"replicas":2}`, 1),
			strings.Replace(deploymentOld, `"status":{"replicas":3}`, `"status":{"replicas":2}`, 1)},
		{"another note of kubectl apply", strings.Replace(scaled, `"kubectl.kubernetes.io/last-applied-configuration":"{}"`, `"kubectl.kubernetes.io/last-applied-configuration":"{\"a\":1}"`, 1), deploymentOld},
		{"kubectl replace, which loses the stamp", strings.Replace(scaled, `"stepbeyond.dev/created-by":"x",`, ``, 1), deploymentOld},
		{"another revision of the controller", strings.Replace(scaled, `revision":"1"`, `revision":"2"`, 1), strings.Replace(deploymentOld, `revision":"1"`, `revision":"2"`, 1)},
		{"an empty map of annotations", strings.Replace(scaled, `"metadata":{"creationTimestamp":null}`, `"metadata":{}`, 1), strings.Replace(deploymentOld, `"metadata":{"creationTimestamp":null}`, `"metadata":{}`, 1)},
	}
	for _, c := range same {
		t.Run(c.name+" is the same", func(t *testing.T) {
			got := exact(t, request(t, "UPDATE apps/deployments", c.object, c.old))
			if !bytes.Equal(base.Canonical, got.Canonical) {
				t.Errorf("canonical forms differ:\n%s\n%s", base.Canonical, got.Canonical)
			}
		})
	}
	other := []struct{ name, object, old string }{
		{"another number", strings.Replace(scaled, `"replicas":6`, `"replicas":12`, 1), deploymentOld},
		{"another field beside it", strings.Replace(scaled, "web:1", "web:2", 1), deploymentOld},
		{"another object before", strings.Replace(scaled, "web:1", "web:2", 1), strings.Replace(deploymentOld, "web:1", "web:2", 1)},
		{"a restart beside it", strings.Replace(scaled, `"metadata":{"creationTimestamp":null}`, `"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}`, 1), deploymentOld},
		{"a revision that the caller sets", strings.Replace(scaled, `revision":"1"`, `revision":"9"`, 1), deploymentOld},
	}
	for _, c := range other {
		t.Run(c.name+" is another", func(t *testing.T) {
			if got := exact(t, request(t, "UPDATE apps/deployments", c.object, c.old)); bytes.Equal(base.Canonical, got.Canonical) {
				t.Errorf("same canonical form: %s", got.Canonical)
			}
		})
	}
	t.Run("numbers from another decoder are the same", func(t *testing.T) {
		req := request(t, "UPDATE apps/deployments", "{}", "{}")
		for field, text := range map[*map[string]any]string{&req.Object: scaled, &req.OldObject: deploymentOld} {
			if err := json.Unmarshal([]byte(text), field); err != nil {
				t.Fatal(err)
			}
		}
		if got := exact(t, req); !bytes.Equal(base.Canonical, got.Canonical) {
			t.Errorf("canonical forms differ:\n%s\n%s", base.Canonical, got.Canonical)
		}
	})
	t.Run("what was dropped is named", func(t *testing.T) {
		want := []string{
			"metadata.annotations.deployment.kubernetes.io/revision",
			"metadata.annotations.kubectl.kubernetes.io/last-applied-configuration",
			"metadata.annotations.stepbeyond.dev/created-by", "metadata.creationTimestamp", "metadata.generation",
			"metadata.managedFields", "metadata.resourceVersion", "metadata.uid",
			"spec.template.metadata.creationTimestamp", "status",
		}
		if diff := cmp.Diff(want, base.Dropped); diff != "" {
			t.Error(diff)
		}
	})
}

// Proves G-2: a scale is the update that it is.
func TestScaleIsAnUpdateOfReplicas(t *testing.T) {
	const parent = `{"kind":"Deployment","metadata":{"name":"web","uid":"u-1","resourceVersion":"7"},"spec":{"replicas":3,"paused":true}}`
	scale := func(replicas string) string {
		return `{"kind":"Scale","metadata":{"name":"web","uid":"u-1","resourceVersion":"7"},"spec":{` + replicas + `}}`
	}
	for _, replicas := range []string{"6", "0"} {
		t.Run("to "+replicas, func(t *testing.T) {
			named := strings.TrimSuffix(`"replicas":`+replicas, `"replicas":0`) // a Scale omits 0
			req := request(t, "UPDATE apps/deployments/scale", scale(named), scale(`"replicas":3`))
			req.Parent = decode(t, parent)
			update := request(t, "UPDATE apps/deployments", strings.Replace(parent, `"replicas":3`, `"replicas":`+replicas, 1), parent)
			got, want := exact(t, req), exact(t, update)
			if diff := cmp.Diff(string(want.Canonical), string(got.Canonical)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"spec.replicas: 3 -> " + replicas}, got.Lines); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("without its parent it keeps a form of its own", func(t *testing.T) {
		got := exact(t, request(t, "UPDATE apps/deployments/scale", scale(`"replicas":6`), scale(`"replicas":3`)))
		if !strings.Contains(string(got.Canonical), `"subresource":"scale"`) {
			t.Errorf("%s", got.Canonical)
		}
		if diff := cmp.Diff([]string{"spec.replicas: 3 -> 6"}, got.Lines); diff != "" {
			t.Error(diff)
		}
	})
}

// Proves G-2: everything that a grant binds to is in the digest.
func TestDigestBindsEverything(t *testing.T) {
	type input struct {
		req    kube.Request
		target policy.Target
		bind   kube.Binding
	}
	fresh := func() input {
		req := request(t, "DELETE configmaps", "", `{"metadata":{"uid":"u-1"}}`)
		op, err := kube.Operation(req, own())
		if err != nil {
			t.Fatal(err)
		}
		return input{req, op.Target, binding}
	}
	digest := func(t *testing.T, key kube.Key, in input) string {
		t.Helper()
		form, err := kube.ExactForm(key, in.req, in.target, in.bind)
		if err != nil {
			t.Fatal(err)
		}
		return key.Digest(form.Canonical)
	}
	base := digest(t, testKey, fresh())
	if !strings.HasPrefix(base, "v1:") || len(base) != len("v1:")+64 {
		t.Errorf("digest %q", base)
	}
	if again := digest(t, testKey, fresh()); again != base {
		t.Errorf("the same request has digests %s and %s", base, again)
	}
	if other := digest(t, kube.Key{9}, fresh()); other == base {
		t.Error("another key gives the same digest")
	}
	options := func(text string) func(*input) {
		return func(in *input) { in.req.Options = decode(t, text) }
	}
	changes := map[string]func(*input){
		"session":              func(in *input) { in.bind.SessionUID = "s-2" },
		"epoch":                func(in *input) { in.bind.Epoch = 2 },
		"stage":                func(in *input) { in.bind.Stage = policy.StagePropose },
		"target UID":           func(in *input) { in.target.UID = "u-2" },
		"name":                 func(in *input) { in.target.Name = "api" },
		"namespace":            func(in *input) { in.target.Namespace = "search" },
		"resource":             func(in *input) { in.target.Resource = "secrets" },
		"group":                func(in *input) { in.target.Group = "apps" },
		"version":              func(in *input) { in.target.Version = "v2" },
		"subresource":          func(in *input) { in.req.Subresource = "status" },
		"propagation":          options(`{"propagationPolicy":"Orphan"}`),
		"deprecated orphaning": options(`{"orphanDependents":true}`),
		"immediacy":            options(`{"gracePeriodSeconds":0}`),
		"UID precondition":     options(`{"preconditions":{"uid":"u-1"}}`),
		"version precondition": options(`{"preconditions":{"resourceVersion":"7"}}`),
		"broken store":         options(`{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`),
	}
	seen := map[string]string{base: "the base"}
	for name, apply := range changes {
		in := fresh()
		apply(&in)
		got := digest(t, testKey, in)
		if other, ok := seen[got]; ok {
			t.Errorf("another %s gives the digest of %s", name, other)
		}
		seen[got] = "another " + name
	}
	t.Run("a grace that the API server fills in is no difference", func(t *testing.T) {
		in := fresh()
		in.req.Options = decode(t, `{"gracePeriodSeconds":30}`)
		if got := digest(t, testKey, in); got != base {
			t.Error("digests differ")
		}
	})
	t.Run("a deletion without a name has no form", func(t *testing.T) {
		in := fresh()
		in.req.Name = ""
		if _, err := kube.ExactForm(testKey, in.req, in.target, in.bind); !errors.Is(err, kube.ErrUnnamed) {
			t.Errorf("error %v", err)
		}
	})
}

func TestCreateFormIsStable(t *testing.T) {
	cases := []struct{ name, what, first, second string }{
		{
			"a generated name, its uid and the labels made of both", "CREATE batch/jobs",
			`{"metadata":{"generateName":"run-","name":"run-bbbbb","uid":"u-1"},"spec":{"template":{"metadata":{"labels":{"controller-uid":"u-1","job-name":"run-bbbbb"}}}}}`,
			`{"metadata":{"generateName":"run-","name":"run-ccccc","uid":"u-2"},"spec":{"template":{"metadata":{"labels":{"controller-uid":"u-2","job-name":"run-ccccc"}}}}}`,
		},
		{
			"the addresses and ports of a Service", "CREATE services",
			`{"metadata":{"generateName":"a"},"spec":{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"healthCheckNodePort":31000,"ports":[{"port":80,"nodePort":30001}]}}`,
			`{"metadata":{"generateName":"a"},"spec":{"clusterIP":"10.0.0.2","clusterIPs":["10.0.0.2"],"healthCheckNodePort":32000,"ports":[{"port":80,"nodePort":30002}]}}`,
		},
		{
			"the token volume of a Pod", "CREATE pods",
			`{"metadata":{"generateName":"a"},"spec":{"volumes":[{"name":"data"},` + tokenVolume("kube-api-access-aaaaa") + `],"containers":[{"name":"c","volumeMounts":[` + tokenMount("kube-api-access-aaaaa") + `]}]}}`,
			`{"metadata":{"generateName":"a"},"spec":{"volumes":[{"name":"data"},` + tokenVolume("kube-api-access-bbbbb") + `],"containers":[{"name":"c","volumeMounts":[` + tokenMount("kube-api-access-bbbbb") + `]}]}}`,
		},
		{
			"the status of a built-in kind", "CREATE pods",
			`{"metadata":{"generateName":"a"},"status":{"phase":"Pending"}}`, `{"metadata":{"generateName":"a"}}`,
		},
	}
	for _, c := range cases {
		t.Run(c.name+" do not count", func(t *testing.T) {
			first, second := request(t, c.what, c.first, ""), request(t, c.what, c.second, "")
			first.Name, second.Name = "", ""
			if diff := cmp.Diff(string(exact(t, first).Canonical), string(exact(t, second).Canonical)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Proves G-2: numbers have one form whatever decoded them, and keep every digit.
func TestNumbers(t *testing.T) {
	form := func(n any) string {
		req := request(t, "CREATE acme.example/widgets", `{}`, "")
		req.Object = map[string]any{"spec": map[string]any{"n": n}}
		return string(exact(t, req).Canonical)
	}
	alike := [][]any{
		{int64(3), 3, int32(3), 3.0, json.Number("3"), json.Number("3.0")},
		{0.5, json.Number("0.5"), json.Number("5e-1")},
		{int64(9007199254740993), json.Number("9007199254740993")},
		{json.Number("123456789012345678901234567890")},
		{json.Number("123456789012345678901234567891")},
	}
	seen := map[string]int{}
	for i, group := range alike {
		for _, n := range group {
			got := form(n)
			if j, ok := seen[got]; ok && j != i {
				t.Errorf("%v has the form of %v: %s", n, alike[j][0], got)
			}
			if i0 := form(group[0]); i0 != got {
				t.Errorf("%T %v has the form %s, want %s", n, n, got, i0)
			}
			seen[got] = i
		}
	}
	t.Run("what is no decoded JSON is refused", func(t *testing.T) {
		req := request(t, "CREATE configmaps", `{}`, "")
		req.Object = map[string]any{"data": map[string]string{}}
		if _, err := kube.ExactForm(testKey, req, policy.Target{Name: "web"}, binding); err == nil {
			t.Error("no error")
		}
	})
}

func tokenVolume(name string) string {
	return fmt.Sprintf(`{"name":%q,"projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},
		{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},
		{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}]}}`, name)
}

func tokenMount(name string) string {
	return fmt.Sprintf(`{"name":%q,"readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}`, name)
}

// Proves G-2: what only looks like the server's own is bound.
func TestProjectionHidesNoChoice(t *testing.T) {
	cases := []struct{ name, what, object, old, second, secondOld string }{
		{
			"a host path under the name of a token volume", "CREATE pods",
			`{"spec":{"volumes":[{"name":"kube-api-access-x","hostPath":{"path":"/"}}]}}`, "", `{"spec":{}}`, "",
		},
		{
			"a token for another audience under that name", "CREATE pods",
			`{"spec":{"volumes":[` + strings.Replace(tokenVolume("kube-api-access-x"), `"path":"token"`, `"path":"token","audience":"vault"`, 1) + `]}}`, "", `{"spec":{}}`, "",
		},
		{
			"a token mounted somewhere else", "CREATE pods",
			`{"spec":{"volumes":[` + tokenVolume("kube-api-access-x") + `],"containers":[{"volumeMounts":[` + strings.Replace(tokenMount("kube-api-access-x"), "/var/run", "/data", 1) + `]}]}}`, "",
			`{"spec":{"volumes":[` + tokenVolume("kube-api-access-x") + `],"containers":[{"volumeMounts":[` + tokenMount("kube-api-access-x") + `]}]}}`, "",
		},
		{"a headless Service", "CREATE services", `{"spec":{"clusterIP":"None"}}`, "", `{"spec":{}}`, ""},
		{"a PersistentVolume that a claim asks for", "CREATE persistentvolumeclaims", `{"spec":{"volumeName":"pv-1"}}`, "", `{"spec":{}}`, ""},
		{
			"another node port than before", "UPDATE services",
			`{"spec":{"ports":[{"port":80,"nodePort":30022}]}}`, `{"spec":{"ports":[{"port":80,"nodePort":30001}]}}`,
			`{"spec":{"ports":[{"port":80,"nodePort":30001}]}}`, `{"spec":{"ports":[{"port":80,"nodePort":30001}]}}`,
		},
		{"a status of a custom resource", "CREATE acme.example/widgets", `{"status":{"approved":true}}`, "", `{}`, ""},
		{"a status that the caller changes", "UPDATE acme.example/widgets", `{"status":{"approved":true}}`, `{"status":{}}`, `{"status":{}}`, `{"status":{}}`},
		{"a status that the caller removes", "UPDATE acme.example/widgets", `{}`, `{"status":{"approved":false}}`, `{"status":{"approved":false}}`, `{"status":{"approved":false}}`},
		{"the status subresource", "UPDATE pods/status", `{"status":{"phase":"Failed"}}`, `{"status":{}}`, `{"status":{}}`, `{"status":{}}`},
		{"null where there was nothing", "UPDATE acme.example/widgets", `{"spec":{"a":null}}`, `{"spec":{}}`, `{"spec":{}}`, `{"spec":{}}`},
		{"a key with a dot and a nested key", "UPDATE configmaps", `{"data":{"a.b":"1"}}`, `{"data":{}}`, `{"data":{"a":{"b":"1"}}}`, `{"data":{}}`},
		{"the order of a list", "UPDATE apps/deployments", `{"spec":{"x":[1,2]}}`, `{"spec":{"x":[2,1]}}`, `{"spec":{"x":[2,1]}}`, `{"spec":{"x":[2,1]}}`},
		{"the last digit of a large number", "CREATE acme.example/widgets", `{"spec":{"n":9007199254740993}}`, "", `{"spec":{"n":9007199254740992}}`, ""},
	}
	for _, c := range cases {
		t.Run(c.name+" is bound", func(t *testing.T) {
			first, second := exact(t, request(t, c.what, c.object, c.old)), exact(t, request(t, c.what, c.second, c.secondOld))
			if bytes.Equal(first.Canonical, second.Canonical) {
				t.Errorf("same canonical form: %s", first.Canonical)
			}
		})
	}
	t.Run("a node port that the server fills in is not", func(t *testing.T) {
		nodePort := func(port string) string {
			return `{"spec":{"type":"NodePort","clusterIP":"10.0.0.1","ports":[{"port":80,"protocol":"TCP"` + port + `}]}}`
		}
		first := exact(t, request(t, "UPDATE services", nodePort(`,"nodePort":30001`), nodePort("")))
		second := exact(t, request(t, "UPDATE services", nodePort(`,"nodePort":30002`), nodePort("")))
		if diff := cmp.Diff(string(first.Canonical), string(second.Canonical)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a restart is the same at any time and no empty update", func(t *testing.T) {
		restart := func(at string) kube.Exact {
			return exact(t, request(t, "UPDATE apps/deployments",
				`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"`+at+`"}}}}}`, `{"spec":{"template":{"metadata":{}}}}`))
		}
		if !bytes.Equal(restart("1").Canonical, restart("2").Canonical) {
			t.Error("two restarts differ")
		}
		want := []string{"spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt]: (none) -> $restart"}
		if diff := cmp.Diff(want, restart("1").Lines); diff != "" {
			t.Error(diff)
		}
	})
}

// Proves G-2: what the server writes by its own clock or counter is no part of what is approved.
func TestServerClocksAndCountersAreNotBound(t *testing.T) {
	same := func(name, what string, forms ...[2]string) {
		t.Run(name, func(t *testing.T) {
			first := exact(t, request(t, what, forms[0][0], forms[0][1]))
			for _, form := range forms[1:] {
				if got := exact(t, request(t, what, form[0], form[1])); !bytes.Equal(first.Canonical, got.Canonical) {
					t.Errorf("two tries differ:\n%s\n%s", first.Canonical, got.Canonical)
				}
			}
		})
	}
	taint := func(at string) string {
		return `{"metadata":{"name":"t"},"spec":{"taint":{"key":"a","effect":"NoSchedule","timeAdded":"` + at + `"}}}`
	}
	same("the time of a device taint", "CREATE resource.k8s.io/devicetaintrules", [2]string{taint("2026-11-30T10:00:00Z"), ""}, [2]string{taint("2026-11-30T10:00:07Z"), ""})
	daemon := func(generation, image string) string {
		return `{"metadata":{"name":"d","annotations":{"deprecated.daemonset.template.generation":"` + generation + `"}},"spec":{"template":{"spec":{"containers":[{"name":"a","image":"` + image + `"}]}}}}`
	}
	same("the counter of a DaemonSet's templates", "UPDATE apps/daemonsets", [2]string{daemon("2", "a:2"), daemon("1", "a:1")}, [2]string{daemon("4", "a:2"), daemon("3", "a:1")})
}
