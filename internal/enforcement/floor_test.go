package enforcement

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/baseline"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// cluster is a control plane with the fixtures and the callers of the tests.
type cluster struct {
	*env.Env
	admin                              client.Client
	guard                              *Guard
	agent, operator, exempt, bystander *rest.Config
}

var shopScope = Scope{
	Namespaces: []string{"shop"},
	Users:      []string{"oidc:release-notes-agent"},
	Exempt:     []ServiceAccount{{Namespace: "shop", Name: "exempt"}},
}

// put brings a configuration into force as the manager does.
func (c *cluster) put(t *testing.T, cfg Configuration) error {
	t.Helper()
	objects, err := cfg.Objects()
	if err != nil {
		return err
	}
	_, err = c.guard.Put(t.Context(), objects)
	return err
}

// startCluster takes further flags of kube-apiserver, each as --name=value.
func startCluster(t *testing.T, flags ...string) *cluster {
	t.Helper()
	ctx := t.Context()
	e, err := env.Start(ctx, env.Options{ControllerManager: true, CRDs: true, Audit: true, APIServerArgs: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	text, err := os.ReadFile("testdata/fixtures.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := env.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(ctx, objects...); err != nil {
		t.Fatal(err)
	}
	c := &cluster{Env: e}
	if c.admin, err = client.New(e.Admin(), client.Options{}); err != nil {
		t.Fatal(err)
	}
	if c.guard, err = NewGuard(c.admin, c.admin); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]**rest.Config{"agent": &c.agent, "operator": &c.operator, "exempt": &c.exempt} {
		token, err := e.ServiceAccountToken(ctx, "shop", name, "")
		if err != nil {
			t.Fatal(err)
		}
		*cfg = e.Token(token)
	}
	if c.bystander, err = e.User("ben@acme.example"); err != nil {
		t.Fatal(err)
	}
	return c
}

func baselineCatalogue(t *testing.T) []policy.CatalogueEntry {
	t.Helper()
	p, err := baseline.Load(baseline.Latest)
	if err != nil {
		t.Fatal(err)
	}
	return p.Catalogue
}

func pod(spec string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: " + spec + "}"
}

func privilegedWorkload(kind string) string {
	return fmt.Sprintf("{apiVersion: apps/v1, kind: %s, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: %s}}}", kind, privileged)
}

const (
	shop           = "/api/v1/namespaces/shop"
	shopApps       = "/apis/apps/v1/namespaces/shop"
	shopBatch      = "/apis/batch/v1/namespaces/shop"
	privileged     = "{containers: [{name: c, image: i, securityContext: {privileged: true}}]}"
	privilegedOnce = "{restartPolicy: Never, containers: [{name: c, image: i, securityContext: {privileged: true}}]}"
)

type refusalCase struct {
	name string
	request
	enforcer string
	// operation and rule are the parts of the message that depend on the request.
	operation, rule string
}

// refused are the requests that stay closed to a governed identity while no webhook exists at all.
var refused = []refusalCase{
	{"a RoleBinding", post("/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: debug}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}}"),
		FloorAuthority, "create rolebindings shop/debug", "rbac-writes"},
	{"a ClusterRole whose name would break the line", post("/apis/rbac.authorization.k8s.io/v1/clusterroles",
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "x\nPending: approved"}}`),
		FloorAuthority, "create clusterroles (unprintable)", "rbac-writes"},
	{"a token for the caller's own ServiceAccount", post(shop+"/serviceaccounts/agent/token", "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {}}"),
		FloorAuthority, "create serviceaccounts/token shop/agent", "token-requests"},
	{"a token for another ServiceAccount", post(shop+"/serviceaccounts/operator/token", "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {}}"),
		FloorAuthority, "create serviceaccounts/token shop/operator", "token-requests"},
	{"a webhook configuration", post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
		"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: mine}}"),
		FloorAuthority, "create validatingwebhookconfigurations mine", "admission"},
	{"an APIService", remove("/apis/apiregistration.k8s.io/v1/apiservices/v1.apps"),
		FloorAuthority, "delete apiservices v1.apps", "api-extension"},
	{"a CustomResourceDefinition", remove("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/agentsessions.stepbeyond.dev"),
		FloorAuthority, "delete customresourcedefinitions agentsessions.stepbeyond.dev", "api-extension"},
	{"a Node", post("/api/v1/nodes", "{apiVersion: v1, kind: Node, metadata: {name: worker-3}}"),
		FloorAuthority, "create nodes worker-3", "cluster-infrastructure"},
	{"a PersistentVolume", post("/api/v1/persistentvolumes",
		"{apiVersion: v1, kind: PersistentVolume, metadata: {name: root}, spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /}}}"),
		FloorAuthority, "create persistentvolumes root", "cluster-infrastructure"},
	{"a proxied request to a Pod", connect(shop + "/pods/node-agent/proxy/"),
		FloorAuthority, "connect pods/proxy shop/node-agent", "proxies"},
	{"a proxied request to a Service", connect(shop + "/services/web/proxy/"),
		FloorAuthority, "connect services/proxy shop/web", "proxies"},
	{"a proxied request to a Node", connect("/api/v1/nodes/worker-3/proxy/"),
		FloorAuthority, "connect nodes/proxy worker-3", "cluster-infrastructure"},
	{"a Secret that is filled with a token", post(shop+"/secrets",
		"{apiVersion: v1, kind: Secret, metadata: {name: t, annotations: {kubernetes.io/service-account.name: operator}}, type: kubernetes.io/service-account-token}"),
		FloorAuthority, "create secrets shop/t", "token-secrets"},
	{"a label on a Secret that holds a token", merge(shop+"/secrets/legacy-token", "{metadata: {labels: {a: b}}}"),
		FloorAuthority, "update secrets shop/legacy-token", "token-secrets"},

	{"a privileged Pod", post(shop+"/pods", pod(privileged)), FloorPods, "create pods shop/web", "pod-privileged"},
	{"a privileged init container", post(shop+"/pods", pod("{initContainers: [{name: c, image: i, securityContext: {privileged: true}}], containers: [{name: d, image: i}]}")),
		FloorPods, "create pods shop/web", "pod-privileged"},
	{"hostNetwork", post(shop+"/pods", pod("{hostNetwork: true, containers: [{name: c, image: i}]}")), FloorPods, "create pods shop/web", "pod-host-namespaces"},
	{"hostPID", post(shop+"/pods", pod("{hostPID: true, containers: [{name: c, image: i}]}")), FloorPods, "create pods shop/web", "pod-host-namespaces"},
	{"hostIPC", post(shop+"/pods", pod("{hostIPC: true, containers: [{name: c, image: i}]}")), FloorPods, "create pods shop/web", "pod-host-namespaces"},
	{"hostPath", post(shop+"/pods", pod("{volumes: [{name: v, hostPath: {path: /}}], containers: [{name: c, image: i}]}")), FloorPods, "create pods shop/web", "pod-host-path"},
	{"an added capability", post(shop+"/pods", pod("{containers: [{name: c, image: i, securityContext: {capabilities: {add: [CHOWN, SYS_ADMIN]}}}]}")),
		FloorPods, "create pods shop/web", "pod-capabilities"},
	{"a Windows host process", post(shop+"/pods", pod("{hostNetwork: true, os: {name: windows}, securityContext: {windowsOptions: {hostProcess: true}}, containers: [{name: c, image: i}]}")),
		FloorPods, "create pods shop/web", "pod-host-namespaces"},
	{"a Pod under another ServiceAccount", post(shop+"/pods", pod("{serviceAccountName: operator, containers: [{name: c, image: i}]}")),
		FloorPods, "create pods shop/web", "pod-foreign-identity"},
	{"a Pod under a ServiceAccount of another namespace that has the caller's name", post("/api/v1/namespaces/search/pods", pod("{serviceAccountName: agent, containers: [{name: c, image: i}]}")),
		FloorPods, "create pods search/web", "pod-foreign-identity"},
	{"a privileged PodTemplate", post(shop+"/podtemplates", "{apiVersion: v1, kind: PodTemplate, metadata: {name: web}, template: {metadata: {labels: {app: web}}, spec: "+privileged+"}}"),
		FloorPods, "create podtemplates shop/web", "pod-privileged"},
	{"a privileged ReplicationController", post(shop+"/replicationcontrollers",
		"{apiVersion: v1, kind: ReplicationController, metadata: {name: web}, spec: {selector: {app: web}, template: {metadata: {labels: {app: web}}, spec: "+privileged+"}}}"),
		FloorPods, "create replicationcontrollers shop/web", "pod-privileged"},
	{"a privileged Deployment", post(shopApps+"/deployments", privilegedWorkload("Deployment")), FloorPods, "create deployments shop/web", "pod-privileged"},
	{"a privileged ReplicaSet", post(shopApps+"/replicasets", privilegedWorkload("ReplicaSet")), FloorPods, "create replicasets shop/web", "pod-privileged"},
	{"a privileged StatefulSet", post(shopApps+"/statefulsets", privilegedWorkload("StatefulSet")), FloorPods, "create statefulsets shop/web", "pod-privileged"},
	{"a privileged DaemonSet", post(shopApps+"/daemonsets", privilegedWorkload("DaemonSet")), FloorPods, "create daemonsets shop/web", "pod-privileged"},
	{"a privileged Job", post(shopBatch+"/jobs", "{apiVersion: batch/v1, kind: Job, metadata: {name: web}, spec: {template: {spec: "+privilegedOnce+"}}}"),
		FloorPods, "create jobs shop/web", "pod-privileged"},
	{"a privileged CronJob", post(shopBatch+"/cronjobs",
		"{apiVersion: batch/v1, kind: CronJob, metadata: {name: web}, spec: {schedule: '@daily', jobTemplate: {spec: {template: {spec: "+privilegedOnce+"}}}}}"),
		FloorPods, "create cronjobs shop/web", "pod-privileged"},
	{"a privileged ephemeral container", strategic(shop+"/pods/node-agent/ephemeralcontainers",
		"{spec: {ephemeralContainers: [{name: debug, image: i, securityContext: {privileged: true}}]}}"),
		FloorPods, "update pods/ephemeralcontainers shop/node-agent", "pod-privileged"},
	{"another image in a person's privileged Deployment", strategic(shopApps+"/deployments/monitor",
		"{spec: {template: {spec: {containers: [{name: main, image: registry.example/mine}]}}}}"),
		FloorPods, "update deployments shop/monitor", "pod-privileged"},

	{"a policy", post("/apis/stepbeyond.dev/v1alpha1/namespaces/default/agentpolicies", "{apiVersion: stepbeyond.dev/v1alpha1, kind: AgentPolicy, metadata: {name: default}, spec: {}}"),
		FloorSelf, "create agentpolicies default/default", "own-objects"},
	{"the deletion of a policy", remove("/apis/stepbeyond.dev/v1alpha1/namespaces/shop/agentpolicies/default"),
		FloorSelf, "delete agentpolicies shop/default", "own-objects"},
	{"the status of a policy", merge("/apis/stepbeyond.dev/v1alpha1/namespaces/shop/agentpolicies/default/status", "{metadata: {labels: {a: b}}}"),
		FloorSelf, "update agentpolicies/status shop/default", "own-objects"},
	{"the profile label of a Namespace", merge("/api/v1/namespaces/shop", "{metadata: {labels: {stepbeyond.dev/profile: sandbox}}}"),
		FloorSelf, "update namespaces shop", "namespace-keys"},
	{"a Namespace under a profile of the agent's choice", post("/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: lab, labels: {stepbeyond.dev/profile: sandbox}}}"),
		FloorSelf, "create namespaces lab", "namespace-keys"},
	{"an annotation of ours on a Namespace through its status", merge("/api/v1/namespaces/shop/status", "{metadata: {annotations: {stepbeyond.dev/x: a}}}"),
		FloorSelf, "update namespaces/status shop", "namespace-keys"},
	{"a ConfigMap in the system namespace", post("/api/v1/namespaces/stepbeyond-system/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"),
		FloorSelf, "create configmaps stepbeyond-system/x", "own-namespaces"},
	{"a ConfigMap in the canary's namespace", post("/api/v1/namespaces/stepbeyond-canary/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: probe}}"),
		FloorSelf, "create configmaps stepbeyond-canary/probe", "own-namespaces"},
	{"the deletion of the system namespace", remove("/api/v1/namespaces/stepbeyond-system"),
		FloorSelf, "delete namespaces stepbeyond-system", "own-namespaces"},

	{"a stamp that is added", merge(shop+"/configmaps/plain", "{metadata: {annotations: {stepbeyond.dev/created-by: forged}}}"),
		FloorSelf, "update configmaps shop/plain", "origin-stamp"},
	{"a stamp that is changed", merge(shop+"/configmaps/stamped", "{metadata: {annotations: {stepbeyond.dev/created-by: forged}}}"),
		FloorSelf, "update configmaps shop/stamped", "origin-stamp"},
	{"a stamp that is lost", replace(shop+"/configmaps/stamped", "{apiVersion: v1, kind: ConfigMap, metadata: {name: stamped}}"),
		FloorSelf, "update configmaps shop/stamped", "origin-stamp"},
	{"a stamp that is changed through a subresource", merge(shop+"/pods/node-agent/status", "{metadata: {annotations: {stepbeyond.dev/created-by: forged}}}"),
		FloorSelf, "update pods/status shop/node-agent", "origin-stamp"},
}

// harmless are requests of the same kinds that the floor leaves to the webhook.
var harmless = []struct {
	name string
	request
}{
	{"a ConfigMap", post(shop+"/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")},
	{"a change of a stamped object that keeps the stamp", merge(shop+"/configmaps/stamped", "{data: {a: b}}")},
	{"a deletion", remove(shop + "/configmaps/stamped")},
	{"a deletion of a collection", remove(shop + "/configmaps")},
	{"an Opaque Secret", post(shop+"/secrets", "{apiVersion: v1, kind: Secret, metadata: {name: x}}")},
	{"a Pod under the caller's own ServiceAccount", post(shop+"/pods", pod("{serviceAccountName: agent, containers: [{name: c, image: i}]}"))},
	{"a Pod under default, with a capability that containers have anyway", post(shop+"/pods",
		pod("{serviceAccountName: default, containers: [{name: c, image: i, securityContext: {privileged: false, capabilities: {add: [NET_BIND_SERVICE], drop: [ALL]}}}]}"))},
	{"a CronJob", post(shopBatch+"/cronjobs",
		"{apiVersion: batch/v1, kind: CronJob, metadata: {name: web}, spec: {schedule: '@daily', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}")},
	{"a label on a person's privileged Deployment", merge(shopApps+"/deployments/monitor", "{metadata: {labels: {a: b}}}")},
	{"a restart of a person's privileged Deployment", merge(shopApps+"/deployments/monitor", "{spec: {template: {metadata: {annotations: {a: b}}}}}")},
	{"more memory for a person's privileged Deployment", strategic(shopApps+"/deployments/monitor",
		"{spec: {template: {spec: {containers: [{name: main, resources: {limits: {memory: 1Gi}}}]}}}}")},
	{"a scale", merge(shopApps+"/deployments/monitor/scale", "{spec: {replicas: 2}}")},
	{"a plain ephemeral container in a person's Pod on the host network", strategic(shop+"/pods/node-agent/ephemeralcontainers",
		"{spec: {ephemeralContainers: [{name: debug, image: i}]}}")},
	{"a label on a Namespace", merge("/api/v1/namespaces/shop", "{metadata: {labels: {team: shop}}}")},
	{"a Namespace", post("/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: lab}}")},
	{"a review of the caller's own rights", post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		"{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, spec: {resourceAttributes: {verb: get, resource: pods}}}")},
	{"a Lease", post("/apis/coordination.k8s.io/v1/namespaces/shop/leases", "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: x}}")},
}

// The floor alone, with no webhook configuration and no manager at all.
// Proves K-2 and K-6.
func TestFloor(t *testing.T) {
	c := startCluster(t)
	floor, err := Floor(shopScope, baselineCatalogue(t), "v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.guard.Put(t.Context(), floor); err != nil {
		t.Fatal(err)
	}
	canary := awaitFloor(t, c)

	for _, tc := range refused {
		t.Run("a governed identity is refused: "+tc.name, func(t *testing.T) {
			got := answerOf(tc.send(t.Context(), t, c.agent))
			if got.Code != http.StatusForbidden || got.Enforcer != tc.enforcer ||
				!strings.HasPrefix(got.Message, "Forbidden: "+tc.operation+" ") ||
				!strings.Contains(got.Message, "(EscalatesAuthority; rule baseline/"+tc.rule+"). Next: ") ||
				!strings.HasSuffix(got.Message, ". [floor v1]") {
				t.Errorf("want 403 by %s for %q under rule %s, got %+v", tc.enforcer, tc.operation, tc.rule, got)
			}
		})
	}
	for _, tc := range harmless {
		t.Run("a governed identity passes: "+tc.name, func(t *testing.T) {
			if err := tc.send(t.Context(), t, c.agent); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("the engine forbids the same pods", func(t *testing.T) { engineAgrees(t, c) })
	t.Run("callers who are not governed are never refused", func(t *testing.T) { bystandersPass(t, c) })
	t.Run("a governed identity without a credential ID is refused", func(t *testing.T) { unboundIsRefused(t, c) })
	t.Run("the canary names the webhook that does not exist, and nothing else", func(t *testing.T) {
		want := []Failure{{Enforcer: EntryEnforce, Answer: AnswerAllowed}}
		if diff := cmp.Diff(want, failures(canary.Prove(t.Context())), cmpopts.IgnoreFields(Failure{}, "Err", "Address")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a governed user with a credential of its own is refused what is closed", func(t *testing.T) {
		user, err := c.User("oidc:release-notes-agent")
		if err != nil {
			t.Fatal(err)
		}
		if got := answerOf(refused[0].send(t.Context(), t, user)); got.Enforcer != FloorAuthority {
			t.Errorf("got %+v", got)
		}
	})
	// The residual that the package comment names. When this fails, Kubernetes has closed it and the comment is wrong.
	t.Run("Kubernetes shows writes of admission policies to no admission policy", func(t *testing.T) {
		if err := remove("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/"+FloorSelf).send(t.Context(), t, c.agent); err != nil {
			t.Error(err)
		}
	})
	t.Run("a message has one line of a bounded length and the same words each time", func(t *testing.T) { messageIsBounded(t, c) })
}

// awaitFloor waits until the API server acts on the floor.
func awaitFloor(t *testing.T, c *cluster) *Canary {
	t.Helper()
	canary, err := NewCanary(c.Admin())
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		proof, err := canary.Prove(t.Context())
		if proof.FloorProven {
			return canary
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(awaitInterval)
	}
}

// failures lists what an error of Prove joins.
func failures(_ Proof, err error) []Failure {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return nil
	}
	var list []Failure
	for _, each := range joined.Unwrap() {
		if failure := (*Failure)(nil); errors.As(each, &failure) {
			list = append(list, *failure)
		}
	}
	return list
}

// engineAgrees puts what the API server would have stored before the parser of the engine: it finds an escalation
// exactly where the floor refuses.
func engineAgrees(t *testing.T, c *cluster) {
	want := map[request]policy.Presence{}
	for _, tc := range refused {
		if tc.enforcer == FloorPods {
			want[tc.request] = policy.Present
		}
	}
	for _, tc := range harmless {
		want[tc.request] = policy.Unknown
	}
	judged := 0
	for r, presence := range want {
		review, ok := r.review(t, c)
		if !ok {
			continue
		}
		judged++
		op, err := kube.Operation(review, kube.Known{SessionNamespaces: []string{"shop"}})
		if err != nil {
			t.Errorf("%s %s: %v", r.method, r.path, err)
			continue
		}
		if got := op.Facts[policy.EscalatesAuthority].Presence; got != presence {
			t.Errorf("%s %s %s: the engine says EscalatesAuthority is %s, want %s", r.method, r.path, r.body, got, presence)
		}
	}
	if judged < 20 {
		t.Errorf("only %d requests with pods were compared", judged)
	}
}

func bystandersPass(t *testing.T, c *cluster) {
	callers := map[string]*rest.Config{"a person": c.bystander, "an exempt ServiceAccount with its own token": c.exempt}
	for _, username := range []string{
		"system:node:worker-3", "system:kube-scheduler", "system:kube-controller-manager", "system:apiserver", "system:anonymous",
		"system:serviceaccount:kube-system:replicaset-controller", "system:serviceaccount:stepbeyond-system:stepbeyond-manager",
		"system:serviceaccount:", "system:serviceaccount::", "shop", ":shop:shop", "system:serviceaccounts:shop:agent",
	} {
		cfg := c.Admin()
		cfg.Impersonate = rest.ImpersonationConfig{UserName: username, Groups: []string{"system:masters"}}
		callers[username] = cfg
	}
	for name, cfg := range callers {
		for _, tc := range refused {
			if got := answerOf(tc.send(t.Context(), t, cfg)); got != (answer{}) {
				t.Errorf("%s: %s: got %+v", name, tc.name, got)
			}
		}
	}
}

func unboundIsRefused(t *testing.T, c *cluster) {
	impersonated := func(username string) *rest.Config {
		cfg := c.Admin()
		cfg.Impersonate = rest.ImpersonationConfig{UserName: username, Groups: []string{"system:masters"}}
		return cfg
	}
	var secret corev1.Secret
	if err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "legacy-token"}, &secret); err != nil {
		t.Fatal(err)
	}
	if len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
		t.Fatal("the controller manager has not filled the legacy token")
	}
	for name, cfg := range map[string]*rest.Config{
		"an impersonated agent":                 impersonated("system:serviceaccount:shop:agent"),
		"an impersonated exempt ServiceAccount": impersonated("system:serviceaccount:shop:exempt"),
		"an impersonated governed user":         impersonated("oidc:release-notes-agent"),
		"an agent with a legacy token":          c.Token(string(secret.Data[corev1.ServiceAccountTokenKey])),
	} {
		got := answerOf(post(shop+"/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}").send(t.Context(), t, cfg))
		want := answer{http.StatusForbidden, FloorSelf, "Denied: create configmaps shop/x is refused: the request carries no credential-id, " +
			"as impersonated identities and legacy tokens do not (CredentialUnbound; rule baseline/credential-bound). " +
			"Next: use the token that is mounted in the agent's own pod. [floor v1]"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func messageIsBounded(t *testing.T, c *cluster) {
	name := strings.Repeat("a", 253)
	got := answerOf(post("/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: "+name+"}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}}").
		send(t.Context(), t, c.agent))
	shown := "create rolebindings shop/" + name
	want := "Forbidden: " + shown[:maxOperation-3] + "... is closed to agents and no approval opens it (EscalatesAuthority; rule baseline/rbac-writes). " +
		"Next: hand the manifest to a person who manages RBAC here. [floor v1]"
	if diff := cmp.Diff(want, got.Message); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// conditionErrors are the series of the API server that count match conditions which erred.
func conditionErrors(t *testing.T, c *cluster) []string {
	t.Helper()
	text, err := kubernetes.NewForConfigOrDie(c.Admin()).Discovery().RESTClient().Get().AbsPath("/metrics").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "apiserver_admission_match_condition_evaluation_seconds_count") {
		t.Fatal("the API server reports no match conditions at all")
	}
	var errs []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "apiserver_admission_match_condition_evaluation_errors_total") {
			errs = append(errs, line)
		}
	}
	return errs
}
