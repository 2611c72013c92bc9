package bench

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/baseline"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// KubeRequest is a decoded admission review and the origin of its target.
type KubeRequest struct {
	kube.Request
	Origin policy.Origin
}

// KubeRule tightens a Kubernetes write that it matches.
type KubeRule struct {
	Name            string
	Class           policy.Class // ASK or FORBIDDEN
	Group, Resource string
	Verbs           []string // create, update, delete
	NamePrefix      string
	// MoreReplicasThan and not labelled with the tier "development".
	MoreReplicasThan int64
}

// KubePolicy is the selector rules; the four fixed ones are the same in every policy.
type KubePolicy []KubeRule

// NewKubePolicy makes the Kubernetes policy of n rules, at least 10 with the fixed four. Four rules speak of each kind,
// and the last of them of Deployments. The last rule but one matches a Deployment of [Deployment] whose name begins
// with "production-", and then asks; a Deployment of another name matches none.
func NewKubePolicy(n int) KubePolicy {
	rules := make(KubePolicy, 0, n-4)
	for i := range n - 4 {
		kind := i / rulesPerTool
		rules = append(rules, KubeRule{
			Name: fmt.Sprintf("rule-%d", i), Class: []policy.Class{policy.ClassAsk, policy.ClassForbidden}[i%2],
			Group: fmt.Sprintf("group-%d.acme.example", kind), Resource: fmt.Sprintf("widgets%d", kind),
			Verbs: [][]string{{"create", "update"}, {"update", "delete"}}[i%2], NamePrefix: fmt.Sprintf("team-%d-", i%rulesPerTool),
			MoreReplicasThan: int64(1 + i%5),
		})
	}
	for i := range rulesPerTool {
		rules[len(rules)-1-i].Group, rules[len(rules)-1-i].Resource = "apps", "deployments"
	}
	asking := &rules[len(rules)-2]
	asking.Class, asking.NamePrefix, asking.Verbs, asking.MoreReplicasThan = policy.ClassAsk, "production-", []string{"create", "update"}, 2
	return rules
}

// ordinary kinds are those of the measured requests that an agent may create, and change where it made them.
var ordinary = []string{"deployments", "configmaps"}

// DeploymentName is the name with which [Deployment] takes the AUTO path or the ASK path.
func DeploymentName(path policy.Class) string {
	if path == policy.ClassAsk {
		return "production-cart"
	}
	return "cart"
}

const deploymentJSON = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"NAME","namespace":"checkout",
"labels":{"app.kubernetes.io/name":"cart","app.kubernetes.io/part-of":"checkout","tier":"standard"},
"annotations":{"acme.example/owner":"team-checkout","acme.example/runbook":"https://runbooks.acme.example/cart"}},
"spec":{"replicas":3,"revisionHistoryLimit":10,"progressDeadlineSeconds":600,
"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%","maxUnavailable":0}},
"selector":{"matchLabels":{"app.kubernetes.io/name":"cart"}},
"template":{"metadata":{"labels":{"app.kubernetes.io/name":"cart","app.kubernetes.io/part-of":"checkout"}},
"spec":{"serviceAccountName":"agent","automountServiceAccountToken":false,"restartPolicy":"Always","dnsPolicy":"ClusterFirst",
"terminationGracePeriodSeconds":30,"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},
"containers":[{"name":"cart","image":"registry.acme.example/cart:1.4.2","imagePullPolicy":"IfNotPresent",
"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"},{"name":"metrics","containerPort":9090,"protocol":"TCP"}],
"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"REDIS_URL","value":"redis://cart-redis:6379/0"},{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}],
"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}},
"readinessProbe":{"httpGet":{"path":"/ready","port":8080,"scheme":"HTTP"},"periodSeconds":10,"timeoutSeconds":1},
"securityContext":{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,"capabilities":{"drop":["ALL"]}},
"volumeMounts":[{"name":"config","mountPath":"/etc/cart","readOnly":true},{"name":"tmp","mountPath":"/tmp"}]},
{"name":"proxy","image":"registry.acme.example/proxy:2.0.0","ports":[{"name":"proxy","containerPort":15001,"protocol":"TCP"}],
"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}],
"volumes":[{"name":"config","configMap":{"name":"cart-config","defaultMode":420}},{"name":"tmp","emptyDir":{"sizeLimit":"64Mi"}}]}}}}`

// Deployment is the creation of an object of about 2 KB by the session itself. The error is that of a broken constant.
func Deployment(name string) (KubeRequest, error) {
	decoder := json.NewDecoder(strings.NewReader(strings.Replace(deploymentJSON, "NAME", name, 1)))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return KubeRequest{}, fmt.Errorf("decode deployment: %w", err)
	}
	return KubeRequest{Origin: policy.OriginThisSession, Request: kube.Request{
		Operation: "CREATE", Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespace: namespace,
		Name: name, Object: integers(object).(map[string]any), ServiceAccount: kube.ServiceAccount{Namespace: namespace, Name: "agent"},
	}}, nil
}

// integers makes int64 of the numbers, as the API machinery's decoder does.
func integers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			v[key] = integers(child)
		}
	case []any:
		for i, child := range v {
			v[i] = integers(child)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
	}
	return value
}

// KubeEngine is one of those that are compared; New makes it from a policy, and class answers a request.
type KubeEngine struct {
	Name string
	New  func(KubePolicy) (class func(*KubeRequest) (policy.Class, error), err error)
}

// KubeEngines are all that are compared. Step Beyond is the first.
func KubeEngines() []KubeEngine {
	return []KubeEngine{{StepBeyond, newKubeStepBeyond}, {OPA, newKubeOPA}, {Cedar, newKubeCedar}, {"cedar-go-scoped", newKubeCedarScoped}}
}

// newKubeStepBeyond is the product: facts by its parsers, the embedded baseline, the rules as a cluster policy.
func newKubeStepBeyond(p KubePolicy) (func(*KubeRequest) (policy.Class, error), error) {
	floor, err := baseline.Load(baseline.Latest)
	if err != nil {
		return nil, fmt.Errorf("load baseline: %w", err)
	}
	var cluster policy.Policy
	for i := range p {
		rule := &p[i]
		selector := policy.KubernetesSelector{Groups: []string{rule.Group}, Resources: []string{rule.Resource}, Names: []string{rule.NamePrefix + "*"}}
		for _, verb := range rule.Verbs {
			selector.Verbs = append(selector.Verbs, policy.Verb(verb))
		}
		cluster.Rules = append(cluster.Rules, policy.Rule{
			Name: rule.Name, Class: rule.Class, Enforcement: policy.EnforcementEnforce, Detail: "The Kubernetes policy says so.",
			Match: policy.Match{Kubernetes: []policy.KubernetesSelector{selector}},
			When:  fmt.Sprintf("object.spec.replicas > %d && object.metadata.?labels.?tier.orValue('') != 'development'", rule.MoreReplicasThan),
		})
	}
	engine, err := compile(floor, cluster)
	if err != nil {
		return nil, err
	}
	view := session()
	return func(r *KubeRequest) (policy.Class, error) {
		op, err := kube.Operation(r.Request, kube.Known{Origin: r.Origin, SessionNamespaces: view.Authority.Namespaces})
		if err != nil {
			return 0, fmt.Errorf("read request: %w", err)
		}
		return engine.Decide(op, view, now).Class, nil
	}, nil
}

// Matches tells whether the rule matches the request.
func (rule *KubeRule) Matches(r *KubeRequest) bool {
	replicas, _ := at(r.Object, "spec")["replicas"].(int64)
	return r.Group == rule.Group && r.Resource == rule.Resource && slices.Contains(rule.Verbs, strings.ToLower(r.Operation)) &&
		strings.HasPrefix(r.Name, rule.NamePrefix) && replicas > rule.MoreReplicasThan && at(r.Object, "metadata", "labels")["tier"] != "development"
}

// at is the object at the end of the path; nil when there is none.
func at(object map[string]any, path ...string) map[string]any {
	for _, key := range path {
		object, _ = object[key].(map[string]any)
	}
	return object
}
