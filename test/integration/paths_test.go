package integration_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// call is one HTTP request, spelled out: what a path's verb is, a typed client would choose.
type call struct{ method, path, content, body string }

const (
	asJSON      = "application/json"
	asMerge     = "application/merge-patch+json"
	asStrategic = "application/strategic-merge-patch+json"
	asApply     = "application/apply-patch+yaml"
)

func (c call) send(dryRun bool) func(context.Context, *actor) error {
	return func(ctx context.Context, a *actor) error {
		request := a.core.Discovery().RESTClient().Verb(c.method).AbsPath(c.path)
		if c.content != "" {
			request = request.SetHeader("Content-Type", c.content).Body([]byte(c.body))
		}
		if c.content == asApply {
			request = request.Param("fieldManager", "agent").Param("force", "true")
		}
		if dryRun {
			request = request.Param("dryRun", "All")
		}
		return request.Do(ctx).Error()
	}
}

// resizable is a Pod whose resources may change in place.
func resizable(namespace, name string) *corev1.Pod {
	pod := agentPod(namespace, name, "default", nil)
	pod.Labels = map[string]string{"app": name}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	return pod
}

// path is one way to change something, and what comes of it and of its dry run.
type path struct {
	call
	want, dry outcome
}

var (
	autoPath      = allowed("AUTO", "Allowed")
	disclosedPath = allowed("AUTO_WITH_DISCLOSURE", "Disclosed")
	dryAsk        = allowed("ASK", "DryRun")
	outsidePath   = denied("FORBIDDEN", "Forbidden", "OutsideAuthority")
	forbiddenPath = denied("FORBIDDEN", "Forbidden", "Forbidden")
)

// pathsIn are the ways that a rule about create, update and delete of kinds would miss. What the floor refuses it refuses
// as a dry run as well.
func pathsIn(t *testing.T, ns string) map[string]path {
	t.Helper()
	const authority, self, pods = "stepbeyond-floor-authority", "stepbeyond-floor-self", "stepbeyond-floor-pods"
	core, apps := "/api/v1/namespaces/"+ns, "/apis/apps/v1/namespaces/"+ns
	ask := func(c call) path { return path{c, pending("PermissionPending"), dryAsk} }
	// Of what nobody catalogued nobody knows whether a dry run shows credentials.
	unknown := func(c call) path { return path{c, pending("PermissionPending"), pending("PermissionPending")} }
	both := func(want outcome, c call) path { return path{c, want, want} }
	csr := "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	const resize = `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"20m"}}}]}}`
	const secretText, mapText = `{"apiVersion":"v1","kind":"Secret","metadata":{%s}}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{%s}}`
	binding := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":%q},"target":{"kind":"Node","name":"node-1"}}`, name)
	}
	return map[string]path{
		// Subresources.
		"a resize of a foreign Pod":                            unknown(call{"PATCH", core + "/pods/people-0/resize", asStrategic, resize}),
		"a resize of an own Pod":                               unknown(call{"PATCH", core + "/pods/own-0/resize", asStrategic, resize}),
		"the status of a foreign Pod":                          unknown(call{"PATCH", core + "/pods/people-0/status", asMerge, `{"status":{"phase":"Succeeded"}}`}),
		"the labels of a foreign Pod through its status":       unknown(call{"PATCH", core + "/pods/people-0/status", asMerge, `{"metadata":{"labels":{"app":"mine"}}}`}),
		"the lineage of an own Pod through its status":         both(forbiddenPath, call{"PATCH", core + "/pods/own-0/status", asMerge, `{"metadata":{"annotations":{"stepbeyond.dev/template-writer":"a/b"}}}`}),
		"the status of a foreign Deployment":                   unknown(call{"PATCH", apps + "/deployments/people/status", asMerge, `{"status":{"collisionCount":7}}`}),
		"a binding of a foreign Pod":                           unknown(call{"POST", core + "/pods/people-0/binding", asJSON, binding("people-0")}),
		"a binding of a foreign Pod by the older path":         unknown(call{"POST", core + "/bindings", asJSON, binding("people-0")}),
		"a scale of a foreign Deployment to 0 by apply":        ask(call{"PATCH", apps + "/deployments/people/scale", asApply, fmt.Sprintf("apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {name: people, namespace: %s}\nspec: {replicas: 0}\n", ns)}),
		"a scale of a foreign StatefulSet down":                both(disclosedPath, call{"PATCH", apps + "/statefulsets/people/scale", asMerge, `{"spec":{"replicas":1}}`}),
		"a token of its own ServiceAccount":                    both(byFloor(authority), call{"POST", core + "/serviceaccounts/agent/token", asJSON, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`}),
		"a request for a certificate":                          both(byFloor(authority), call{"POST", csr, asJSON, string(rawOf(t, signingRequest(t, "mine")).Raw)}),
		"the approval of somebody's certificate":               both(byFloor(authority), call{"PATCH", csr + "/people/approval", asMerge, `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"Mine"}]}}`}),
		"the status of somebody's certificate":                 both(byFloor(authority), call{"PATCH", csr + "/people/status", asMerge, `{"status":{"conditions":[{"type":"Failed","status":"True"}]}}`}),
		"the finalizers of a Namespace through their own path": unknown(call{"PUT", core + "/finalize", asJSON, fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q,"labels":{"stepbeyond.dev/profile":"standard"}},"spec":{"finalizers":[]}}`, ns)}),
		"the deletion of its own Namespace":                    ask(call{method: "DELETE", path: core}),
		"the deletion of somebody's Namespace":                 both(outsidePath, call{method: "DELETE", path: "/api/v1/namespaces/free"}),
		"the deletion of the system's namespace":               both(byFloor(self), call{method: "DELETE", path: "/api/v1/namespaces/stepbeyond-system"}),
		"the status of a Namespace with a label":               unknown(call{"PATCH", core + "/status", asMerge, `{"metadata":{"labels":{"team":"mine"}}}`}),
		"the label that governs it through the status":         both(byFloor(self), call{"PATCH", core + "/status", asMerge, `{"metadata":{"labels":{"stepbeyond.dev/profile":"none"}}}`}),
		// What creates although it says update.
		"an apply to a missing ConfigMap":                        both(autoPath, call{"PATCH", core + "/configmaps/applied", asApply, fmt.Sprintf(mapText, `"name":"applied"`)}),
		"an apply to a missing Secret":                           {call{"PATCH", core + "/secrets/applied", asApply, fmt.Sprintf(secretText, `"name":"applied"`)}, pending("PermissionPending"), pending("PermissionPending")},
		"an apply to a missing privileged Pod":                   both(byFloor(pods), call{"PATCH", core + "/pods/applied", asApply, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"applied"},"spec":{"containers":[{"name":"main","image":"a:1","securityContext":{"privileged":true}}]}}`}),
		"a PUT to a missing LimitRange":                          unknown(call{"PUT", core + "/limitranges/put", asJSON, `{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"put"},"spec":{"limits":[]}}`}),
		"a PUT to a missing Role":                                both(byFloor(authority), call{"PUT", "/apis/rbac.authorization.k8s.io/v1/namespaces/" + ns + "/roles/put", asJSON, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"put"}}`}),
		"a ConfigMap with a generated name":                      both(autoPath, call{"POST", core + "/configmaps", asJSON, fmt.Sprintf(mapText, `"generateName":"mine-"`)}),
		"an own object with an owner, for the garbage collector": ask(call{"POST", core + "/configmaps", asJSON, fmt.Sprintf(mapText, `"name":"owned","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"11111111-2222-3333-4444-555555555555"}]`)}),
		"a foreign ConfigMap by strategic patch":                 both(disclosedPath, call{"PATCH", core + "/configmaps/people", asStrategic, `{"data":{"text":"bye"}}`}),
		// What is proxied.
		"a proxied request to a Node":              {call{method: "GET", path: "/api/v1/nodes/node-1/proxy/pods"}, byFloor(authority), outcome{}},
		"a proxied write to a Node":                {call{method: "POST", path: "/api/v1/nodes/node-1/proxy/run/a/b/c"}, byFloor(authority), outcome{}},
		"a proxied request to a port of a Pod":     {call{method: "GET", path: core + "/pods/people-0:8080/proxy/"}, byFloor(authority), outcome{}},
		"a proxied request to a port of a Service": {call{method: "DELETE", path: core + "/services/https:people:443/proxy/"}, byFloor(authority), outcome{}},
	}
}

// signingRequest asks for a certificate of a client.
func signingRequest(t *testing.T, name string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
}

func statefulSet(namespace, name string, replicas int32) *appsv1.StatefulSet {
	d := deployment(namespace, name)
	return &appsv1.StatefulSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.StatefulSetSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"set": name}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"set": name}}, Spec: d.Spec.Template.Spec},
	}}
}

// Proves C-2, C-7, K-7.
func TestPathsThatARuleAboutKindsWouldMiss(t *testing.T) {
	const ns = "paths"
	h := at(t, ns)
	people := statefulSet(ns, "people", 2)
	must(t, resizable(ns, "people-0"), deployment(ns, "people"), people, service(ns, "people"), configMap(ns, "people"), signingRequest(t, "people"))
	awaitRollout(t, ns, "people")
	if got := h.agent.try(t, create(resizable(ns, "own-0"))); got.outcome != autoPath {
		t.Fatalf("an own Pod: %+v %s", got.outcome, got.message)
	}
	paths := pathsIn(t, ns)
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		tt := paths[name]
		if tt.dry != (outcome{}) {
			t.Run(name+", as a dry run", func(t *testing.T) {
				asked := len(questionsIn(t, ns))
				got := h.agent.try(t, tt.send(true))
				if diff := cmp.Diff(tt.dry, got.outcome); diff != "" {
					t.Errorf("outcome (-want +got):\n%s%s", diff, got.message)
				}
				if n := len(questionsIn(t, ns)) - asked; n != 0 {
					t.Errorf("the dry run asked %d questions", n)
				}
			})
		}
		t.Run(name, func(t *testing.T) {
			got := h.agent.try(t, tt.send(false))
			if diff := cmp.Diff(tt.want, got.outcome); diff != "" {
				t.Errorf("outcome (-want +got):\n%s%s", diff, got.message)
			}
			if (got.grant != "") != (got.Verdict == "Pending") {
				t.Errorf("the answer names grant %q", got.grant)
			}
		})
	}
	t.Run("a person may all that is a person's to do", func(t *testing.T) {
		for _, name := range []string{"a resize of a foreign Pod", "the labels of a foreign Pod through its status", "an apply to a missing Secret", "a PUT to a missing LimitRange", "a token of its own ServiceAccount", "the approval of somebody's certificate"} {
			if err := paths[name].send(true)(t.Context(), admin); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// upgrade opens a stream to a Pod or a proxy as kubectl does: SPDY before 1.31, WebSocket since.
func upgrade(protocol, path string) func(context.Context, *actor) error {
	return func(ctx context.Context, a *actor) error {
		cfg := rest.CopyConfig(a.config)
		cfg.NextProtos = []string{"http/1.1"}
		https, err := rest.HTTPClientFor(cfg)
		if err != nil {
			return err
		}
		defer https.CloseIdleConnections()
		method := http.MethodGet
		headers := map[string]string{"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "c3RlcCBiZXlvbmQgdGVzdA==", "Sec-WebSocket-Protocol": "v5.channel.k8s.io"}
		if strings.Contains(path, "portforward") {
			headers["Sec-WebSocket-Protocol"] = "SPDY/3.1+portforward.k8s.io"
		}
		if protocol == "SPDY/3.1" {
			method, headers = http.MethodPost, map[string]string{"X-Stream-Protocol-Version": "v4.channel.k8s.io"}
		}
		request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(cfg.Host, "/")+path, nil)
		if err != nil {
			return err
		}
		request.Header.Set("Connection", "Upgrade")
		request.Header.Set("Upgrade", protocol)
		for name, value := range headers {
			request.Header.Set(name, value)
		}
		response, err := https.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode == http.StatusSwitchingProtocols {
			return nil
		}
		return statusOf(response)
	}
}

func statusOf(response *http.Response) error {
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var status metav1.Status
	if err := yaml.Unmarshal(text, &status); err != nil || status.Kind != "Status" {
		return fmt.Errorf("HTTP %s: %s", response.Status, text)
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// Proves C-2, G-2.
func TestStreamsOfEveryProtocolAreJudgedBeforeTheyOpen(t *testing.T) {
	const ns = "upgrades"
	h := at(t, ns)
	must(t, agentPod(ns, "people-0", "default", nil), service(ns, "people"))
	if got := h.agent.try(t, create(agentPod(ns, "own-0", "default", nil))); got.outcome != autoPath {
		t.Fatalf("an own Pod: %+v %s", got.outcome, got.message)
	}
	pod := func(name, rest string) string { return "/api/v1/namespaces/" + ns + "/pods/" + name + "/" + rest }
	const literal, shell = "exec?command=date&stdout=true&stderr=true", "exec?command=sh&stdin=true&stdout=true&tty=true"
	asks, floor := pending("PermissionPending"), byFloor("stepbeyond-floor-authority")
	// opened passes admission; then there is no kubelet.
	opened := outcome{Code: 400, Status: "BadRequest", Class: "AUTO", Verdict: "Allow", Reason: "Allowed"}
	grants := map[string]string{}
	for name, tt := range map[string]struct {
		path string
		want outcome
	}{
		"a command in an own Pod":          {pod("own-0", literal), opened},
		"a shell in an own Pod":            {pod("own-0", shell), asks},
		"a command in a foreign Pod":       {pod("people-0", literal), asks},
		"an attach to an own Pod":          {pod("own-0", "attach?stdout=true"), asks},
		"a port-forward to an own Pod":     {pod("own-0", "portforward?ports=8080"), asks},
		"a port-forward to a foreign Pod":  {pod("people-0", "portforward"), asks},
		"a stream through a Pod's proxy":   {pod("people-0", "proxy/stream"), floor},
		"a stream through a Service":       {"/api/v1/namespaces/" + ns + "/services/people/proxy/stream", floor},
		"a stream through a Node's proxy":  {"/api/v1/nodes/node-1/proxy/exec/" + ns + "/people-0/main?command=sh", floor},
		"a command in a Pod of a stranger": {strings.Replace(pod("people-0", literal), ns, "free", 1), outsidePath},
	} {
		for _, protocol := range []string{"websocket", "SPDY/3.1"} {
			t.Run(name+" by "+protocol, func(t *testing.T) {
				got, want := h.agent.try(t, upgrade(protocol, tt.path)), tt.want
				if protocol == "websocket" && want == opened {
					want = outcome{Code: opened.Code, Status: opened.Status} // a GET, of which the tests' audit log keeps nothing
				}
				if diff := cmp.Diff(want, got.outcome); diff != "" {
					t.Errorf("outcome (-want +got):\n%s%s", diff, got.message)
				}
				if first, asked := grants[name]; asked && first != got.grant {
					t.Errorf("grant %q, want %q as by the other protocol", got.grant, first)
				}
				grants[name] = got.grant
			})
		}
	}
	t.Run("an approved stream opens once", func(t *testing.T) {
		request := upgrade("SPDY/3.1", pod("people-0", literal))
		h.decide(t, carla, h.grant(t, grants["a command in a foreign Pod"]), v1alpha1.VerdictApprove, nil)
		want := opened
		want.Class, want.Reason = "ASK", "Granted"
		if got := h.agent.try(t, request); got.outcome != want {
			t.Errorf("the approved stream: %+v %s", got.outcome, got.message)
		}
		if got := h.agent.try(t, upgrade("websocket", pod("people-0", literal))); got.outcome != pending("GrantUsed") {
			t.Errorf("the second stream: %+v %s", got.outcome, got.message)
		}
	})
}

// gone tells whether an object is not there any more.
func gone(ctx context.Context, object client.Object) (bool, error) {
	err := admin.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

var errStillThere = errors.New("it is still there")

func awaitGone(t *testing.T, object client.Object) {
	t.Helper()
	eventually(t, func() error {
		if is, err := gone(t.Context(), object); err != nil || is {
			return err
		}
		return fmt.Errorf("%s: %w", object.GetName(), errStillThere)
	})
}

// The garbage collector and the API server delete by themselves what has lost its owner or its last finalizer. An object
// that a person treats so shows when they have done their work.
//
// Proves C-2, G-5, K-1.
func TestWhatDeletesWithoutADeletionIsAskedAndHappensOnce(t *testing.T) {
	const ns = "owners"
	h := at(t, ns)
	const orphan = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"nobody","uid":"11111111-2222-3333-4444-555555555555"}]}}`
	collected, asOfPeople := configMap(ns, "collected"), configMap(ns, "of-people")
	held, freed := configMap(ns, "held"), configMap(ns, "freed")
	for _, object := range []*corev1.ConfigMap{held, freed} {
		object.Finalizers = []string{"acme.example/keep"}
	}
	must(t, collected, asOfPeople, held, freed)
	for _, object := range []client.Object{held, freed} {
		if err := admin.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	const release = `{"metadata":{"finalizers":null}}`
	for name, tt := range map[string]struct {
		target, twin *corev1.ConfigMap
		patch        string
	}{
		"an owner that is gone":                      {collected, asOfPeople, orphan},
		"the last finalizer of a terminating object": {held, freed, release},
	} {
		t.Run(name, func(t *testing.T) {
			g := h.ask(t, merge(tt.target, tt.patch))
			if err := merge(tt.twin, tt.patch)(t.Context(), admin); err != nil {
				t.Fatal(err)
			}
			awaitGone(t, tt.twin)
			if is, err := gone(t.Context(), tt.target); is || err != nil {
				t.Fatalf("without approval: gone %v, error %v", is, err)
			}
			h.decide(t, carla, g, v1alpha1.VerdictApprove, nil)
			if got := h.agent.try(t, merge(tt.target, tt.patch)); got.outcome != allowed("ASK", "Granted") {
				t.Fatalf("the approved change: %+v %s", got.outcome, got.message)
			}
			awaitGone(t, tt.target)
			if uses := h.grant(t, g.Name).Status.Uses; len(uses) != 1 || len(uses[0].Attempts) != 1 {
				t.Errorf("uses %+v, want one with one attempt", uses)
			}
		})
	}
}

// Proves G-2, G-8.
func TestADeletionOfACollectionNeitherUsesNorAsksForAnApproval(t *testing.T) {
	const ns = "owners"
	h := at(t, ns)
	target := configMap(ns, "one-of-many")
	must(t, target)
	g := h.approved(t, remove(target))
	asked := len(questionsIn(t, ns))
	for _, path := range []string{"?fieldSelector=metadata.name%3Done-of-many", ""} {
		got := h.agent.try(t, func(ctx context.Context, a *actor) error {
			return a.core.Discovery().RESTClient().Delete().RequestURI("/api/v1/namespaces/" + ns + "/configmaps" + path).Do(ctx).Error()
		})
		if diff := cmp.Diff(denied("ASK", "Unnamed", "Unnamed"), got.outcome); diff != "" || got.grant != "" {
			t.Errorf("selected by %q (-want +got):\n%s%s", path, diff, got.message)
		}
	}
	if n := len(questionsIn(t, ns)) - asked; n != 0 {
		t.Errorf("%d questions were asked", n)
	}
	if uses := h.grant(t, g.Name).Status.Uses; len(uses) != 0 {
		t.Errorf("uses %+v, want none", uses)
	}
	if got := h.agent.try(t, remove(target)); got.outcome != allowed("ASK", "Granted") {
		t.Errorf("the deletion that was approved: %+v %s", got.outcome, got.message)
	}
}

// Proves G-2, G-5.
func TestAnApprovedGeneratedNameMakesOneObject(t *testing.T) {
	const ns = "owners"
	h := at(t, ns)
	generated := secret(ns, "")
	generated.GenerateName = "made-"
	g := h.approved(t, create(generated))
	if got := h.agent.try(t, create(generated)); got.outcome != allowed("ASK", "Granted") {
		t.Fatalf("the approved creation: %+v %s", got.outcome, got.message)
	}
	if got := h.agent.try(t, create(generated)); got.err == nil || got.Verdict == "Allow" {
		t.Errorf("the second creation: %+v %s", got.outcome, got.message)
	}
	var made corev1.SecretList
	if err := admin.List(t.Context(), &made, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, s := range made.Items {
		if strings.HasPrefix(s.Name, "made-") {
			names[s.Name] = true
		}
	}
	if len(names) != 1 {
		t.Errorf("Secrets %v, want one", names)
	}
	if uses := h.grant(t, g.Name).Status.Uses; len(uses) != 1 || len(uses[0].Attempts) != 1 {
		t.Errorf("uses %+v, want one with one attempt", uses)
	}
}
