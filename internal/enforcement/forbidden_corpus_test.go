package enforcement

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
)

// forbid is a FORBIDDEN rule; selectors are written "VERBS GROUP RESOURCES [NAMES]", lists with commas, "-" for the core group.
func forbid(name, when string, selectors ...string) policy.Rule {
	r := policy.Rule{Name: name, Class: policy.ClassForbidden, Enforcement: policy.EnforcementEnforce, When: when}
	for _, text := range selectors {
		fields := strings.Fields(text)
		s := policy.KubernetesSelector{Groups: []string{strings.TrimPrefix(fields[1], "-")}, Resources: strings.Split(fields[2], ",")}
		for _, verb := range strings.Split(fields[0], ",") {
			s.Verbs = append(s.Verbs, policy.Verb(verb))
		}
		if len(fields) > 3 {
			s.Names = strings.Split(fields[3], ",")
		}
		r.Match.Kubernetes = append(r.Match.Kubernetes, s)
	}
	return r
}

// clusterPolicy has the rules of one ClusterAgentPolicy.
func clusterPolicy(name string, rules ...policy.Rule) policy.Policy {
	return policy.Policy{ID: policy.PolicyID{Kind: "ClusterAgentPolicy", Name: name, UID: "uid-" + name, Generation: 1}, Rules: rules}
}

const everyVerb = "create,update,delete,connect"

// selectorRules are about what selectors alone can say.
var selectorRules = []policy.Policy{
	clusterPolicy("shop",
		forbid("names", "", everyVerb+" - configmaps ledger,vault-*"),
		forbid("name-prefix", "", everyVerb+" * * ledger-*"),
		forbid("any-name", "", "create - configmaps *"),
		forbid("verbs", "", "delete * *"),
		forbid("main-resource-only", "", "update apps deployments"),
		forbid("subresource-only", "", "update apps deployments/scale"),
		forbid("any-subresource", "", everyVerb+" - pods/*"),
		forbid("wildcard-and-one-of-it", "", everyVerb+" - pods/*,pods/exec"),
		forbid("pods-with-any-subresource", "", "create,connect - pods,pods/*"),
		forbid("exec", "", "connect - pods/exec"),
		forbid("evictions-are-deletions", "", "delete - pods"),
		forbid("evictions-by-name", "", "delete - pods node-*"),
		forbid("deletions-everywhere-by-name", "", "delete * * node-agent,big"),
		forbid("of-several-selectors", "", "update apps deployments/scale monitor", "create - services", "delete acme.example widgets"),
		forbid("groups", "", "create,update acme.example *"),
		forbid("own-group", "", "create,update stepbeyond.dev *"),
		forbid("namespaces", "", everyVerb+" - namespaces,namespaces/status shop,lab"),
		forbid("a-group-with-one-resource", "", "create,update events.k8s.io events"),
		forbid("core-events", "", "create,update - events"),
	),
	clusterPolicy("team",
		forbid("generated", "", "create - configmaps,secrets ledger-*", "create acme.example widgets big-*"),
		forbid("scale-of-a-custom-resource", "", "update acme.example widgets/scale"),
		forbid("status", "", "update acme.example widgets/status", "update - pods/status"),
	),
}

// expressionRules read the request and its objects, or err in each way that there is.
var expressionRules = []policy.Policy{
	clusterPolicy("shop",
		forbid("verb", `request.verb in ["delete", "connect"] || request.verb == 'update' && oldObject != null`, everyVerb+" * *"),
		forbid("eviction-reads-as-delete", `request.verb == "delete" && request.resource.subresource == "" // as the engine has it`, everyVerb+" - pods"),
		forbid("resource", `request.resource.group == "apps" && request.resource.version == "v1" && request.resource.resource.startsWith("dep")`, everyVerb+" * *"),
		forbid("version", `request.resource.version == "v2"`, everyVerb+" * *"),
		forbid("namespace", `request.namespace == "search"`, everyVerb+" * *"),
		forbid("no-namespace", `request.namespace == ""`, everyVerb+" * *"),
		forbid("name", `request.name == "" || request.name.endsWith("a")`, everyVerb+" * *"),
		forbid("dry-run", `request.dryRun`, everyVerb+" * *"),
		forbid("type", `object.spec.type == "LoadBalancer"`, "create,update - services"),
		forbid("optional", `object.spec.?type.orValue("ClusterIP") in ["NodePort", "LoadBalancer"]`, "create,update - services"),
		forbid("missing-field-errs", `object.data.mode == "strict"`, "create,update - configmaps"),
		forbid("missing-field-absorbed", `object.data.mode == "strict" || object.kind == "ConfigMap"`, "create,update - configmaps"),
		forbid("old-object", `oldObject.?data.?mode.orValue("") == "strict"`, "update,delete - configmaps"),
		forbid("null-object-errs", `object.spec.replicas == 1`, "delete * *"),
		forbid("mixed-types-err", `object.spec.?mode.orValue(1) > 0`, "create,update acme.example widgets"),
		forbid("numbers", `object.spec.?size.orValue(0) == 2`, "create,update acme.example widgets"),
		forbid("order-of-numbers", `object.spec.?size.orValue(0) >= 2`, "create,update acme.example widgets"),
		forbid("not-a-bool", `object.spec.?mode.orValue(false)`, "create,update acme.example widgets"),
		forbid("list-of-strings", `object.spec.?tags.orValue([]).exists(t, t.startsWith("b"))`, "create,update acme.example widgets"),
		forbid("all-images", `!object.spec.template.spec.containers.all(c, c.image.startsWith("registry.example/"))`, "create,update apps deployments"),
		forbid("filtered", `object.spec.template.spec.containers.filter(c, has(c.securityContext)).map(c, c.name) == ["main"]`, "create,update apps deployments"),
		forbid("exactly-one", `object.spec.template.spec.containers.exists_one(c, c.image.matches("^registry[.]example/"))`, "create,update apps deployments"),
		forbid("scale-object", `object.spec.replicas > 2 && object.kind == "Scale"`, "update * deployments/scale,widgets/scale"),
		forbid("labels", `"tier" in object.metadata.?labels.orValue({}) && object.metadata.labels["tier"] == "gold"`, "create,update - configmaps"),
		forbid("finalizers", `size(object.metadata.?finalizers.orValue([])) < size(oldObject.metadata.?finalizers.orValue([]))`, "update - configmaps"),
		forbid("optional-chain", `object.?spec.?tags[?1].hasValue() && object.?spec.?mode.optMap(m, m == "on").orValue(false)`, "create,update acme.example widgets"),
		forbid("exec-command", `object.command[0] in ["sh", "bash"]`, "connect - pods/exec"),
		forbid("text", `request.name.upperAscii().contains("LEDGER") && !(request.name.trim() == "ledger")`, everyVerb+" - configmaps"),
		forbid("ternary", `request.verb == "create" ? object.metadata.name == "web" : false`, everyVerb+" - configmaps,services"),
		forbid("shadowed", `[1, 2].exists(request, request == 2) && object.kind == "ConfigMap"`, "create,update - configmaps"),
	),
}

// randomRules are conjunctions, disjunctions and comparisons that nobody chose.
func randomRules(seed uint64, n int) []policy.Policy {
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	values := []string{
		"object.spec.replicas", "object.spec.?replicas.orValue(0)", "object.?spec.?type.orValue('none')", "object.data.mode", "object.metadata.name",
		"oldObject.metadata.name", "object.spec.size", "object.spec.tags[0]", "request.name", "request.verb", "request.resource.version", "size(object.spec.tags)",
		"object.metadata.?labels.?tier.orValue('')", "oldObject.?data.?mode.orValue('')",
	}
	literals := []string{"1", "2", "2.0", "'web'", "'strict'", "'create'", "'v1'", "''", "null", "true", "['a']", "'LoadBalancer'"}
	var expression func(depth int) string
	expression = func(depth int) string {
		if depth == 0 || r.IntN(4) == 0 {
			switch r.IntN(6) {
			case 0:
				return "has(object." + pick([]string{"spec", "data", "metadata.labels", "spec.type", "data.mode"}) + ")"
			case 1:
				return pick(values) + " " + pick([]string{"<", "<=", ">", ">="}) + " " + pick(literals)
			case 2:
				return pick(values) + " in [" + pick(literals[3:8]) + ", " + pick(literals[3:8]) + "]"
			default:
				return pick(values) + " " + pick([]string{"==", "!="}) + " " + pick(literals)
			}
		}
		switch r.IntN(4) {
		case 0:
			return "!(" + expression(depth-1) + ")"
		case 1:
			return "(" + expression(depth-1) + " ? " + expression(depth-1) + " : " + expression(depth-1) + ")"
		default:
			return "(" + expression(depth-1) + pick([]string{" && ", " || "}) + expression(depth-1) + ")"
		}
	}
	var rules []policy.Rule
	for len(rules) < n {
		rule := forbid(fmt.Sprintf("random-%03d", len(rules)), expression(3), "create,update,delete * configmaps,services,widgets,widgets/scale")
		if _, problems := policy.Compile(policy.Set{Cluster: []policy.Policy{clusterPolicy("shop", rule)}}); len(problems) == 0 {
			rules = append(rules, rule)
		}
	}
	return []policy.Policy{clusterPolicy("shop", rules...)}
}

// shot is one request of the corpus.
type shot struct {
	name string
	request
	// live requests are no dry runs: connects have none.
	live bool
}

// corpus crosses kinds, verbs, names and contents.
func corpus() []shot {
	var shots []shot
	add := func(r request) {
		shots = append(shots, shot{name: strings.TrimSpace(r.method + " " + r.path + " " + r.patch + " " + r.body), request: r})
	}
	object := func(apiVersion, kind, name, rest string) string {
		identity := "name: " + name
		if prefix, generated := strings.CutSuffix(name, "+"); generated {
			identity = "generateName: " + prefix
		}
		return "{apiVersion: " + apiVersion + ", kind: " + kind + ", metadata: {" + identity + rest
	}
	names := []string{"x", "web", "ledger-b", "ledger-bcdfg", "vault-1", "ledger-+", "big-+", strings.Repeat("ledger-", 9) + "+", "data"}
	for _, name := range names {
		for _, content := range []string{"}}", "}, data: {mode: strict}}", "}, data: {mode: lax}}", ", labels: {tier: gold}}}", ", labels: {tier: base}, finalizers: [a.example/b]}}"} {
			add(post(shop+"/configmaps", object("v1", "ConfigMap", name, content)))
		}
		for _, content := range []string{
			"}}", "}, spec: {}}", "}, spec: {size: 2}}", "}, spec: {size: 2.0, mode: 'on'}}", "}, spec: {size: 2.5, replicas: 1, mode: 'on', tags: [a, b]}}",
			"}, spec: {size: '2', mode: true, tags: []}}", "}, spec: {mode: null, tags: [1, b]}}", "}, spec: {mode: false, size: -1}}",
		} {
			add(post("/apis/acme.example/v1/namespaces/shop/widgets", object("acme.example/v1", "Widget", name, content)))
			add(post("/apis/acme.example/v2/namespaces/search/widgets", object("acme.example/v2", "Widget", name, content)))
		}
		for _, spec := range []string{"type: LoadBalancer", "type: NodePort", "type: ClusterIP", "clusterIP: None"} {
			if strings.Count(name, "ledger-") < 3 {
				add(post(shop+"/services", object("v1", "Service", strings.Replace(name, "web", "web-2", 1), "}, spec: {ports: [{port: 80}], "+spec+"}}")))
			}
		}
		add(post(shop+"/secrets", object("v1", "Secret", name, "}}")))
		for _, image := range []string{"registry.example/a", "docker.example/a"} {
			add(post(shopApps+"/deployments", object("apps/v1", "Deployment", name, "}, spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: "+
				"{metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "+image+", securityContext: {}}, {name: b, image: registry.example/b}]}}}}")))
		}
	}
	for _, name := range []string{"plain", "stamped", "ledger", "ledger-a"} {
		for _, patch := range []string{"{data: {mode: strict}}", "{data: {mode: null}}", "{metadata: {labels: {tier: gold}}}", "{metadata: {finalizers: null}}", "{data: {other: x}}"} {
			add(merge(shop+"/configmaps/"+name, patch))
		}
		add(remove(shop + "/configmaps/" + name))
	}
	for path, patches := range map[string][]string{
		shop + "/services/web":                                                {"{spec: {type: LoadBalancer}}", "{spec: {type: NodePort}}", "{metadata: {labels: {a: b}}}"},
		shopApps + "/deployments/monitor":                                     {"{metadata: {labels: {a: b}}}", "{spec: {replicas: 3}}"},
		shopApps + "/deployments/monitor/scale":                               {"{spec: {replicas: 3}}", "{spec: {replicas: 1}}"},
		shopApps + "/deployments/monitor/status":                              {"{metadata: {labels: {a: b}}}"},
		"/apis/acme.example/v1/namespaces/shop/widgets/big":                   {"{spec: {size: 1}}", "{spec: {size: 2.0, mode: 'on'}}", "{spec: {tags: null}}", "{spec: {tags: [b]}}"},
		"/apis/acme.example/v2/namespaces/shop/widgets/big":                   {"{spec: {size: 1}}", "{spec: {mode: 'off'}}"},
		"/apis/acme.example/v1/namespaces/shop/widgets/big/scale":             {"{spec: {replicas: 5}}", "{spec: {replicas: 1}}"},
		"/apis/acme.example/v2/namespaces/shop/widgets/big/scale":             {"{spec: {replicas: 5}}"},
		"/apis/acme.example/v1/namespaces/shop/widgets/big/status":            {"{status: {replicas: 5}}"},
		shop + "/pods/node-agent":                                             {"{metadata: {labels: {a: b}}}"},
		shop + "/pods/node-agent/status":                                      {"{metadata: {labels: {a: b}}}"},
		"/api/v1/namespaces/shop":                                             {"{metadata: {labels: {a: b}}}"},
		"/api/v1/namespaces/shop/status":                                      {"{metadata: {annotations: {a: b}}}"},
		"/api/v1/namespaces/search":                                           {"{metadata: {labels: {a: b}}}"},
		"/apis/autoscaling/v1/namespaces/shop/horizontalpodautoscalers/web":   {"{spec: {maxReplicas: 4}}"},
		"/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/web":   {"{spec: {maxReplicas: 4}}"},
		"/apis/stepbeyond.dev/v1alpha1/namespaces/shop/agentpolicies/default": {"{metadata: {labels: {a: b}}}"},
	} {
		for _, patch := range patches {
			add(merge(path, patch))
		}
		if strings.Count(path, "/") < 8 && !strings.HasSuffix(path, "status") {
			add(remove(path))
		}
	}
	add(remove("/apis/acme.example/v1/namespaces/shop/widgets/big"))
	add(remove("/apis/acme.example/v2/namespaces/shop/widgets/big"))
	add(remove("/apis/acme.example/v1/namespaces/search/widgets")) // a collection of one
	add(remove(shop + "/secrets/vault"))
	add(post("/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: lab}}"))
	add(post("/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: other}}"))
	add(post(shop+"/pods/node-agent/eviction", "{apiVersion: policy/v1, kind: Eviction, metadata: {name: node-agent}}"))
	add(post(shop+"/pods", pod("{containers: [{name: c, image: i}]}")))
	add(post(shop+"/events", "{apiVersion: v1, kind: Event, metadata: {name: e}, involvedObject: {namespace: shop}}"))
	add(post("/apis/events.k8s.io/v1/namespaces/shop/events", "{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: e}, "+
		"eventTime: '2026-01-01T00:00:00.000000Z', action: a, reason: r, type: Normal, reportingController: a.example/b, reportingInstance: c, regarding: {namespace: shop}}"))
	for _, command := range []string{"?command=sh", "?command=ls", ""} {
		shots = append(shots, shot{name: "exec " + command, live: true, request: request{method: http.MethodPost, path: shop + "/pods/node-agent/exec" + command}})
	}
	shots = append(shots, shot{name: "attach", live: true, request: request{method: http.MethodPost, path: shop + "/pods/node-agent/attach"}})
	return shots
}
