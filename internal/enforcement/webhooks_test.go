package enforcement

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const managerUsername = "system:serviceaccount:stepbeyond-system:stepbeyond-manager"

// reviewer is a webhook server that notes who is asked about. It knows no session, and allows all else.
type reviewer struct {
	*httptest.Server
	endpoint Endpoint

	mu    sync.Mutex
	calls []call
	// held keeps the enforcing entry's answers back until it is closed; nil for none.
	held chan struct{}
}

// call is one review.
type call struct{ Path, Username, Operation, Resource string }

func startReviewer(t *testing.T) *reviewer {
	t.Helper()
	r := &reviewer{}
	prefix := "/" + strings.Repeat("5e", 32)
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		path, found := strings.CutPrefix(req.URL.Path, prefix)
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil || !found {
			http.Error(w, "not a review", http.StatusBadRequest)
			return
		}
		in := review.Request
		r.mu.Lock()
		r.calls = append(r.calls, call{path, in.UserInfo.Username, string(in.Operation), strings.TrimSuffix(in.Resource.Resource+"/"+in.SubResource, "/")})
		held := r.held
		r.mu.Unlock()
		if held != nil && path == PathEnforce {
			<-held
		}
		review.Response = &admissionv1.AdmissionResponse{UID: in.UID, Allowed: path != PathEnforce}
		if path == PathEnforce {
			review.Response.Result = &metav1.Status{Code: http.StatusForbidden, Reason: "NoSession", Message: "Denied: no session."}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(r.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	r.endpoint = Endpoint{URL: r.URL, PathPrefix: prefix, CABundle: certificate}
	return r
}

// during is what the API server asked about one user while f ran.
func (r *reviewer) during(username string, f func()) []call {
	r.mu.Lock()
	r.calls = nil
	r.mu.Unlock()
	f()
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []call
	for _, c := range r.calls {
		if c.Username == username {
			calls = append(calls, c)
		}
	}
	return calls
}

// Proves K-2 and K-6.
func TestWebhooks(t *testing.T) {
	c, r := startCluster(t), startReviewer(t)
	cfg := Configuration{Scope: shopScope, Endpoint: r.endpoint, Manager: managerUsername, Catalogue: baselineCatalogue(t), Version: "v1"}
	if err := c.put(t, cfg); err != nil {
		t.Fatal(err)
	}
	canary, err := NewCanary(c.Admin())
	if err != nil {
		t.Fatal(err)
	}
	proof, err := canary.Await(t.Context(), 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Proof{WebhookProven: true, FloorProven: true, FloorPolicies: 3}, proof, cmpopts.IgnoreFields(Proof{}, "Time", "Servers")); diff != "" {
		t.Errorf("proof (-want +got):\n%s", diff)
	}
	t.Run("applying the same configuration again changes no object", func(t *testing.T) { applyIsStable(t, c, cfg) })
	t.Run("applying undoes what somebody else put into a part that we leave empty", func(t *testing.T) { foreignSelectorsGo(t, c, cfg) })
	t.Run("the API server's type checker has no complaint", func(t *testing.T) { typesCheck(t, c) })
	t.Run("the live configuration reads back as the scope that was applied", func(t *testing.T) { readsBack(t, c) })
	t.Run("each webhook entry is asked exactly when it is needed", func(t *testing.T) { entriesAreAsked(t, c, r) })
	t.Run("callers who are not governed never reach the webhook, and no condition errs", func(t *testing.T) { bystandersAreUnseen(t, c, r) })
	t.Run("the canary names a floor policy that lost its binding, and applying repairs it", func(t *testing.T) { lossIsNamed(t, c, canary, cfg) })
	t.Run("with the webhook dead", func(t *testing.T) { webhookDies(t, c, r, canary) })
}

func applyIsStable(t *testing.T, c *cluster, cfg Configuration) {
	before := generations(t, c)
	if len(before) != 10 {
		t.Errorf("want 10 objects labelled as ours, got %v", before)
	}
	if err := c.put(t, cfg); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, generations(t, c)); diff != "" {
		t.Errorf("generations (-before +after):\n%s", diff)
	}
}

// foreignSelectorsGo narrows every entry and every binding as another writer could, and wants the defaults back.
func foreignSelectorsGo(t *testing.T, c *cluster, cfg Configuration) {
	before := selectors(t, c)
	narrow := &metav1.LabelSelector{MatchLabels: map[string]string{"enforced": "no"}}
	edit := func(object client.Object, change func()) {
		t.Helper()
		if err := c.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		change()
		if err := c.admin.Update(t.Context(), object, client.FieldOwner("somebody-else")); err != nil {
			t.Fatal(err)
		}
	}
	name := metav1.ObjectMeta{Name: WebhookConfiguration}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: name}
	edit(validating, func() {
		for i := range validating.Webhooks {
			validating.Webhooks[i].NamespaceSelector, validating.Webhooks[i].ObjectSelector = narrow, narrow
		}
	})
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: name}
	edit(mutating, func() {
		for i := range mutating.Webhooks {
			mutating.Webhooks[i].NamespaceSelector, mutating.Webhooks[i].ObjectSelector = narrow, narrow
		}
	})
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: FloorPods}}
	edit(binding, func() {
		binding.Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: narrow, ObjectSelector: narrow}
	})
	if cmp.Equal(before, selectors(t, c)) {
		t.Fatal("the edits changed nothing")
	}
	if err := c.put(t, cfg); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, selectors(t, c)); diff != "" {
		t.Errorf("selectors (-before the edit +after applying):\n%s", diff)
	}
}

// selectors of every entry and of one binding.
func selectors(t *testing.T, c *cluster) map[string][]*metav1.LabelSelector {
	t.Helper()
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for object, name := range map[client.Object]string{&validating: WebhookConfiguration, &mutating: WebhookConfiguration, &binding: FloorPods} {
		if err := c.admin.Get(t.Context(), client.ObjectKey{Name: name}, object); err != nil {
			t.Fatal(err)
		}
	}
	found := map[string][]*metav1.LabelSelector{}
	for _, w := range validating.Webhooks {
		found["validating "+w.Name] = []*metav1.LabelSelector{w.NamespaceSelector, w.ObjectSelector}
	}
	for _, w := range mutating.Webhooks {
		found["mutating "+w.Name] = []*metav1.LabelSelector{w.NamespaceSelector, w.ObjectSelector}
	}
	if resources := binding.Spec.MatchResources; resources != nil {
		found["binding"] = []*metav1.LabelSelector{resources.NamespaceSelector, resources.ObjectSelector}
	}
	return found
}

// generations of all objects with our label; none has an owner.
func generations(t *testing.T, c *cluster) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := c.admin.List(t.Context(), &list, client.MatchingLabels(labels())); err != nil {
			t.Fatal(err)
		}
		for _, object := range list.Items {
			found[kind+"/"+object.Name] = object.Generation
			if len(object.OwnerReferences) > 0 {
				t.Errorf("%s %s has an owner and would go with it", kind, object.Name)
			}
		}
	}
	return found
}

func typesCheck(t *testing.T, c *cluster) {
	for _, name := range []string{FloorAuthority, FloorPods, FloorSelf} {
		var live admissionregistrationv1.ValidatingAdmissionPolicy
		for deadline := time.Now().Add(30 * time.Second); live.Status.ObservedGeneration == 0 && time.Now().Before(deadline); time.Sleep(awaitInterval) {
			if err := c.admin.Get(t.Context(), client.ObjectKey{Name: name}, &live); err != nil {
				t.Fatal(err)
			}
		}
		if live.Status.TypeChecking == nil || len(live.Status.TypeChecking.ExpressionWarnings) > 0 {
			t.Errorf("%s: %+v", name, live.Status.TypeChecking)
		}
	}
}

func readsBack(t *testing.T, c *cluster) {
	var live admissionregistrationv1.ValidatingWebhookConfiguration
	if err := c.admin.Get(t.Context(), client.ObjectKey{Name: WebhookConfiguration}, &live); err != nil {
		t.Fatal(err)
	}
	if live.Webhooks[0].Name != EntryEnforce || live.Webhooks[0].MatchConditions[0].Name != Governed {
		t.Fatalf("the first condition of the first entry is not the scope: %+v", live.Webhooks[0])
	}
	got, err := ReadBack(GovernedExpressions(live.Webhooks[0].MatchConditions)...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shopScope, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func entriesAreAsked(t *testing.T, c *cluster, r *reviewer) {
	const agent = "system:serviceaccount:shop:agent"
	manager := c.Admin()
	manager.Impersonate = rest.ImpersonationConfig{UserName: managerUsername, Groups: []string{"system:masters"}}
	ownPolicies := "/apis/stepbeyond.dev/v1alpha1/namespaces/search/agentpolicies"
	newPolicy := "{apiVersion: stepbeyond.dev/v1alpha1, kind: AgentPolicy, metadata: {name: default}, spec: {}}"
	asked := func(operation, resource string, paths ...string) (calls []call) {
		for _, path := range paths {
			calls = append(calls, call{path, agent, operation, resource})
		}
		return calls
	}
	for _, tc := range []struct {
		name string
		request
		caller   *rest.Config
		username string
		want     []call
	}{
		{"a create is stamped and decided", post(shop+"/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"),
			c.agent, agent, asked("CREATE", "configmaps", PathOrigin, PathEnforce)},
		{"an update that keeps the stamp is decided only", merge(shop+"/configmaps/stamped", "{data: {a: b}}"),
			c.agent, agent, asked("UPDATE", "configmaps", PathEnforce)},
		{"a lost stamp is offered to the stamping entry", replace(shop+"/configmaps/stamped", "{apiVersion: v1, kind: ConfigMap, metadata: {name: stamped}}"),
			c.agent, agent, asked("UPDATE", "configmaps", PathOrigin)}, // which leaves it here, so the floor ends the request
		{"a changed pod template is stamped and decided", merge(shopApps+"/deployments/monitor", "{spec: {template: {metadata: {labels: {a: b}}}}}"),
			c.agent, agent, asked("UPDATE", "deployments", PathOrigin, PathEnforce)},
		{"a scaled Deployment is decided only", merge(shopApps+"/deployments/monitor", "{spec: {replicas: 3}}"),
			c.agent, agent, asked("UPDATE", "deployments", PathEnforce)},
		{"a subresource is decided", merge(shopApps+"/deployments/monitor/scale", "{spec: {replicas: 3}}"),
			c.agent, agent, asked("UPDATE", "deployments/scale", PathEnforce)},
		{"a deletion is decided", remove(shop + "/configmaps/plain"), c.agent, agent, asked("DELETE", "configmaps", PathEnforce)},
		{"a connection is decided", connect(shop + "/pods/node-agent/exec?command=true&stdout=true"), c.agent, agent, asked("CONNECT", "pods/exec", PathEnforce)},
		{"an exempt ServiceAccount is not decided", post(shop+"/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"),
			c.exempt, "system:serviceaccount:shop:exempt", nil},
		{"a policy of a person is validated", post(ownPolicies, newPolicy), c.bystander, "ben@acme.example",
			[]call{{PathObjects, "ben@acme.example", "CREATE", "agentpolicies"}}},
		{"a policy of the manager is not", post(ownPolicies, newPolicy), manager, managerUsername, nil},
		{"a change of a policy's spec is validated", merge("/apis/stepbeyond.dev/v1alpha1/namespaces/shop/agentpolicies/default", "{spec: {modelTier: small}}"),
			c.bystander, "ben@acme.example", []call{{PathObjects, "ben@acme.example", "UPDATE", "agentpolicies"}}},
		{"a label on a policy is not", merge("/apis/stepbeyond.dev/v1alpha1/namespaces/shop/agentpolicies/default", "{metadata: {labels: {a: b}}}"),
			c.bystander, "ben@acme.example", nil},
		{"a label on a session is stamped and validated", merge("/apis/stepbeyond.dev/v1alpha1/namespaces/shop/agentsessions/by-hand", "{metadata: {labels: {a: b}}}"),
			c.bystander, "ben@acme.example", []call{
				{PathObjectsStamp, "ben@acme.example", "UPDATE", "agentsessions"}, {PathObjects, "ben@acme.example", "UPDATE", "agentsessions"}}},
		{"an annotation on a session is not", merge("/apis/stepbeyond.dev/v1alpha1/namespaces/shop/agentsessions/by-hand", "{metadata: {annotations: {a: b}}}"),
			c.bystander, "ben@acme.example", nil},
		{"a deletion of a policy is not", remove("/apis/stepbeyond.dev/v1alpha1/namespaces/shop/agentpolicies/default"), c.bystander, "ben@acme.example", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var err error
			got := r.during(tc.username, func() { err = tc.send(t.Context(), t, tc.caller) })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reviews (-want +got):\n%s\nanswer: %v", diff, err)
			}
		})
	}
}

func bystandersAreUnseen(t *testing.T, c *cluster, r *reviewer) {
	r.during("", func() { bystandersPass(t, c) })
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, call := range r.calls {
		if call.Path != PathObjects && call.Path != PathObjectsStamp {
			t.Errorf("reviewed: %+v", call)
		}
	}
	if errs := conditionErrors(t, c); len(errs) > 0 {
		t.Errorf("match conditions erred:\n%s", strings.Join(errs, ""))
	}
}

func lossIsNamed(t *testing.T, c *cluster, canary *Canary, cfg Configuration) {
	lost := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: FloorPods}}
	if err := c.admin.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	want := []Failure{{Enforcer: FloorPods, Answer: AnswerRefusedOtherwise}} // by the webhook behind it
	var got []Failure
	var proof Proof
	for deadline := time.Now().Add(30 * time.Second); len(got) == 0 && time.Now().Before(deadline); time.Sleep(awaitInterval) {
		var err error
		proof, err = canary.Prove(t.Context())
		got = failures(proof, err)
	}
	if proof.FloorProven || proof.FloorPolicies != 2 {
		t.Errorf("want two of the three probed policies proven, got %+v", proof)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Failure{}, "Err", "Address")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := c.put(t, cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := canary.Await(t.Context(), 30*time.Second); err != nil {
		t.Error(err)
	}
}

func webhookDies(t *testing.T, c *cluster, r *reviewer, canary *Canary) {
	r.Close()
	create := post(shop+"/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")
	t.Run("a governed write fails closed and names the webhook", func(t *testing.T) {
		err := create.send(t.Context(), t, c.agent)
		if err == nil || !strings.Contains(err.Error(), `failed calling webhook "enforce.stepbeyond.dev"`) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a bystander writes as ever", func(t *testing.T) {
		if err := create.send(t.Context(), t, c.bystander); err != nil {
			t.Error(err)
		}
	})
	for _, tc := range refused {
		if got := answerOf(tc.send(t.Context(), t, c.agent)); got.Code != http.StatusForbidden || got.Enforcer != tc.enforcer {
			t.Errorf("%s: want 403 by %s, got %+v", tc.name, tc.enforcer, got)
		}
	}
	t.Run("the canary says that the webhook failed and the floor holds", func(t *testing.T) {
		want := []Failure{{Enforcer: EntryEnforce, Answer: AnswerFailed}}
		if diff := cmp.Diff(want, failures(canary.Prove(t.Context())), cmpopts.IgnoreFields(Failure{}, "Err", "Address")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
