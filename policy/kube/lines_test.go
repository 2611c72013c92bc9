package kube_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// shortDigest hides the digits of short digests, so that wants stay readable.
var shortDigest = regexp.MustCompile(`v1:[0-9a-f]{8}`)

func linesOf(t *testing.T, req kube.Request) []string {
	t.Helper()
	lines := exact(t, req).Lines
	hidden := make([]string, 0, len(lines))
	for _, line := range lines {
		hidden = append(hidden, shortDigest.ReplaceAllString(line, "v1:#"))
	}
	return hidden
}

func TestLinesSayWhatHappens(t *testing.T) {
	cases := []struct {
		name, what, object, old, options string
		want                             []string
	}{
		{
			name: "an update shows numbers, words and images, what matters first", what: "UPDATE apps/deployments",
			object: `{"metadata":{"labels":{"team":"b"}},"spec":{"replicas":6,"strategy":{"type":"Recreate"},"template":{"spec":{"hostNetwork":true,"containers":[{"name":"web","image":"web:2","env":[{"name":"TOKEN","value":"hunter2"}]},{"name":"proxy"}]}}}}`,
			old:    `{"metadata":{"labels":{"team":"a"}},"spec":{"replicas":3,"strategy":{"type":"RollingUpdate"},"template":{"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}`,
			want: []string{
				"spec.replicas: 3 -> 6",
				"spec.strategy.type: RollingUpdate -> Recreate",
				"spec.template.spec.hostNetwork: (none) -> true",
				"spec.template.spec.containers[proxy].name: (none) -> proxy",
				"spec.template.spec.containers[web].image: web:1 -> web:2",
				"spec.template.spec.containers[web].env[TOKEN].name: (none) -> TOKEN",
				"spec.template.spec.containers[web].env[TOKEN].value: (none) -> v1:#",
				"metadata.labels.team: v1:# -> v1:#",
			},
		},
		{
			name: "values of Secrets are never shown, words in them neither", what: "UPDATE secrets",
			object: `{"type":"Opaque","data":{"type":"aHVudGVyMg","replicas":"Mw"}}`, old: `{"type":"Opaque","data":{"type":"b2xk"}}`,
			want: []string{"data.replicas: (none) -> v1:#", "data.type: v1:# -> v1:#"},
		},
		{
			name: "values of ConfigMaps neither", what: "CREATE configmaps", object: `{"metadata":{"name":"web"},"data":{"type":"Opaque"}}`,
			want: []string{"data.type: v1:#"},
		},
		{
			name: "what a container runs is shown in ASCII, words under chosen keys are not", what: "CREATE pods",
			object: `{"spec":{"nodeSelector":{"type":"fast"},"containers":[{"command":["sh","-c","curl \u202e$X"],"restartPolicy":"Always"}]}}`,
			want: []string{
				"spec.nodeSelector.type: v1:#", "spec.containers[0].restartPolicy: Always",
				"spec.containers[0].command[0]: sh", "spec.containers[0].command[1]: -c", `spec.containers[0].command[2]: "curl \u202e$X"`,
			},
		},
		{
			name: "names of Secrets, quantities and capabilities are shown", what: "CREATE pods",
			object: `{"spec":{"serviceAccountName":"agent","containers":[{"name":"web","envFrom":[{"secretRef":{"name":"db"}}],"resources":{"limits":{"memory":"2Gi"}},"securityContext":{"capabilities":{"add":["NET_ADMIN"]}}}]}}`,
			want: []string{
				"spec.serviceAccountName: agent", "spec.containers[web].name: web", "spec.containers[web].resources.limits.memory: 2Gi",
				"spec.containers[web].envFrom[0].secretRef.name: db", "spec.containers[web].securityContext.capabilities.add[0]: NET_ADMIN",
			},
		},
		{
			name: "hosts of an Ingress are shown, paths are not", what: "CREATE networking.k8s.io/ingresses",
			object: `{"spec":{"rules":[{"host":"shop.example","http":{"paths":[{"path":"/x y","pathType":"Prefix","backend":{"service":{"name":"web","port":{"number":80}}}}]}}]}}`,
			want: []string{
				"spec.rules[0].host: shop.example", "spec.rules[0].http.paths[0].path: v1:#", "spec.rules[0].http.paths[0].pathType: Prefix",
				"spec.rules[0].http.paths[0].backend.service.name: web", "spec.rules[0].http.paths[0].backend.service.port.number: 80",
			},
		},
		{
			name: "of custom resources only numbers and truth values are", what: "CREATE acme.example/widgets", object: `{"spec":{"type":"Secret","size":3,"on":true,"none":null,"map":{},"list":[]}}`,
			want: []string{"spec.list: []", "spec.map: {}", "spec.none: null", "spec.on: true", "spec.size: 3", "spec.type: v1:#"},
		},
		{
			name: "another order is said", what: "UPDATE apps/deployments", object: `{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}`,
			old: `{"spec":{"containers":[{"name":"b"},{"name":"a"}]}}`, want: []string{"spec.containers: other order or detail"},
		},
		{
			name: "long values are cut with their length, and never look alike", what: "UPDATE pods",
			object: `{"spec":{"containers":[{"name":"web","args":["` + strings.Repeat("a", 300) + `b"]}],"note":"` + strings.Repeat("c", 100) + `"}}`,
			old:    `{"spec":{"containers":[{"name":"web","args":["` + strings.Repeat("a", 301) + `"]}]}}`,
			want: []string{
				"spec.note: (none) -> v1:# (100 bytes)",
				"spec.containers[web].args[0]: " + strings.Repeat("a", 133) + ".. (301 bytes, v1:#) -> " + strings.Repeat("a", 133) + ".. (301 bytes, v1:#)",
			},
		},
		{
			name: "how long a value of a Secret is stays hidden", what: "UPDATE secrets", object: `{"data":{"a":"` + strings.Repeat("c", 100) + `"}}`, old: `{}`,
			want: []string{"data.a: (none) -> v1:#"},
		},
		{
			name: "what kubectl kept of a Secret is dropped", what: "UPDATE secrets",
			object: `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"a\":\"hunter3\"}}"}},"data":{"a":"aHVudGVyMw"}}`,
			old:    `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"a\":\"hunter2\"}}"}},"data":{"a":"aHVudGVyMg"}}`,
			want:   []string{"data.a: v1:# -> v1:#"},
		},
		{
			name: "keys are screened", what: "CREATE configmaps", object: "{\"data\":{\"approve\u202e this\\n: now\":\"x\"}}",
			want: []string{"data[approve__this___now~v1:#]: v1:#"},
		},
		{
			name: "a deleted claim is sized", what: "DELETE persistentvolumeclaims", options: `{"propagationPolicy":"Background","gracePeriodSeconds":0}`,
			old:  `{"metadata":{"creationTimestamp":"2026-03-02T10:00:00Z","finalizers":["kubernetes.io/pvc-protection"]},"spec":{"storageClassName":"fast","volumeName":"pvc-2f1c9a58","resources":{"requests":{"storage":"20Gi"}}}}`,
			want: []string{"options: propagationPolicy=Background, gracePeriodSeconds=0", "object: 20Gi, storageClass fast, bound to pvc-2f1c9a58, created 2026-03-02, 1 finalizers"},
		},
		{name: "a deleted workload too", what: "DELETE apps/statefulsets", old: `{"spec":{"replicas":3,"volumeClaimTemplates":[{}]}}`, want: []string{"options: defaults", "object: 3 replicas, 1 claim templates"}},
		{
			name: "a deleted Pod too, with who wrote it", what: "DELETE pods", options: `{"orphanDependents":true,"preconditions":{"uid":"u-1"}}`,
			old:  `{"spec":{"containers":[{},{}]},"status":{"phase":"Running"}}`,
			want: []string{"options: orphanDependents=true, with preconditions", "object: 2 containers, Running"},
		},
		{name: "a deleted Service by its type", what: "DELETE services", old: `{"spec":{"type":"LoadBalancer"}}`, want: []string{"options: defaults", "object: type LoadBalancer"}},
		{name: "a size that is no quantity is left out", what: "DELETE persistentvolumeclaims", old: `{"spec":{"storageClassName":"a b","resources":{"requests":{"storage":"approve me"}}}}`, want: []string{"options: defaults"}},
		{name: "an update without effect says so", what: "UPDATE configmaps", object: `{"metadata":{"generation":2}}`, old: `{"metadata":{"generation":1}}`, want: []string{"nothing that a grant binds to"}},
		{name: "of a deleted Secret the number of keys", what: "DELETE secrets", old: `{"data":{"a":"hunter2"}}`, want: []string{"options: defaults", "object: 1 keys"}},
		{
			name: "the command of exec is shown in ASCII", what: "CONNECT pods/exec", object: "{\"container\":\"web\",\"command\":[\"sh\",\"-c\",\"echo \u202e \\\"a\\\"\\n\"],\"stdin\":true,\"tty\":true}",
			want: []string{`command: sh -c "echo \u202e \"a\"\n"`, "container: web", "stdin: true", "tty: true"},
		},
		{name: "the ports of port-forward are", what: "CONNECT pods/portforward", object: `{"ports":[8080,9090]}`, want: []string{"ports: 8080, 9090"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			req := request(t, c.what, c.object, c.old)
			req.Options = decode(t, c.options)
			if diff := cmp.Diff(c.want, linesOf(t, req)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLinesAreBounded(t *testing.T) {
	t.Run("many changes end in a count, and the spec stays in sight", func(t *testing.T) {
		var labels []string
		for i := range 200 {
			labels = append(labels, fmt.Sprintf(`"a%d":"x"`, i))
		}
		lines := linesOf(t, request(t, "UPDATE services", `{"metadata":{"labels":{`+strings.Join(labels, ",")+`}},"spec":{"type":"NodePort"}}`, `{"spec":{"type":"ClusterIP"}}`))
		if len(lines) != 64 || lines[0] != "spec.type: ClusterIP -> NodePort" || lines[63] != "and 138 more" {
			t.Errorf("%d lines, first %q, last %q", len(lines), lines[0], lines[len(lines)-1])
		}
	})
	t.Run("long paths and commands keep a digest of the whole", func(t *testing.T) {
		deep := strings.Repeat(`{"averyveryverylongkeyofmorethanthirtycharacters":`, 10) + `1` + strings.Repeat(`}`, 10)
		for _, req := range []kube.Request{
			request(t, "CREATE acme.example/widgets", `{"spec":`+deep+`}`, ""),
			request(t, "CONNECT pods/exec", `{"command":["`+strings.Repeat("a", 1000)+`"]}`, ""),
		} {
			lines := linesOf(t, req)
			if len(lines) != 1 || len(lines[0]) > 512 || !strings.Contains(lines[0], "v1:#") {
				t.Errorf("%q", lines)
			}
		}
	})
}

func TestShortDigests(t *testing.T) {
	pair := func(what, value string) []string {
		return exact(t, request(t, what, `{"data":{"a":"`+value+`"}}`, "")).Lines
	}
	if a, b := pair("CREATE configmaps", "x"), pair("CREATE configmaps", "x"); a[0] != b[0] {
		t.Errorf("the same value in the same place looks different: %s, %s", a, b)
	}
	if a, b := pair("CREATE configmaps", "x"), pair("CREATE configmaps", "y"); a[0] == b[0] {
		t.Errorf("other values look the same: %s", a)
	}
	if a, b := pair("CREATE configmaps", "x"), pair("CREATE secrets", "x"); a[0] == b[0] {
		t.Errorf("a value can be compared across objects: %s", a)
	}
}

func TestKeyLength(t *testing.T) {
	if _, err := kube.NewKey(make([]byte, 32)); err != nil {
		t.Errorf("32 bytes: %v", err)
	}
	for _, n := range []int{0, 31, 33} {
		if _, err := kube.NewKey(make([]byte, n)); err == nil {
			t.Errorf("%d bytes: no error", n)
		}
	}
}

func TestFirstDifference(t *testing.T) {
	cases := []struct {
		name                              string
		approved, asked                   []string
		wantPath, wantApproved, wantAsked string
		wantOK                            bool
	}{
		{"another new value", []string{"spec.replicas: 3 -> 6"}, []string{"spec.replicas: 3 -> 12"}, "spec.replicas", "6", "12", true},
		{"another old value", []string{"spec.replicas: 3 -> 6"}, []string{"spec.replicas: 4 -> 6"}, "spec.replicas", "3 -> 6", "4 -> 6", true},
		{"a change beside it", []string{"a: 1"}, []string{"a: 1", "b: 2"}, "b", "(none)", "2", true},
		{"a change left out", []string{"a: 1", "b: 2 -> 3"}, []string{"a: 1"}, "b", "3", "(none)", true},
		{"the count of the rest is no path", []string{"a: 1", "and 3 more"}, []string{"a: 1", "and 4 more"}, "", "", "", false},
		{"alike", []string{"a: 1"}, []string{"a: 1"}, "", "", "", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path, approved, asked, ok := kube.FirstDifference(c.approved, c.asked)
			if path != c.wantPath || approved != c.wantApproved || asked != c.wantAsked || ok != c.wantOK {
				t.Errorf("got %q, %q, %q, %v", path, approved, asked, ok)
			}
		})
	}
}

func TestNames(t *testing.T) {
	cases := []struct {
		verb             policy.Verb
		target           policy.Target
		summary, display string
	}{
		{policy.VerbDelete, policy.Target{Resource: "persistentvolumeclaims", Namespace: "checkout", Name: "data-0"}, "delete persistentvolumeclaims checkout/data-0", "delete pvc/data-0"},
		{policy.VerbUpdate, policy.Target{Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "checkout", Name: "web"}, "update deployments/scale checkout/web", "update deploy/web (scale)"},
		{policy.VerbConnect, policy.Target{Resource: "pods", Subresource: "exec", Namespace: "checkout", Name: "web-0"}, "connect pods/exec checkout/web-0", "exec pod/web-0"},
		{policy.VerbCreate, policy.Target{Group: "acme.example", Resource: "services", Namespace: "checkout"}, "create services checkout/(unnamed)", "create services/(unnamed)"},
		{policy.VerbCreate, policy.Target{Resource: "nodes", Name: "a\nb"}, `create nodes a\nb`, `create node/a\nb`},
	}
	for _, c := range cases {
		if got := kube.Summary(c.verb, c.target); got != c.summary {
			t.Errorf("Summary %q, want %q", got, c.summary)
		}
		if got := kube.DisplayTarget(c.verb, c.target); got != c.display {
			t.Errorf("DisplayTarget %q, want %q", got, c.display)
		}
	}
}
