package enforcement

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// recorder is a webhook that keeps what admission shows of a bystander's requests and allows everything.
type recorder struct {
	mu      sync.Mutex
	reviews []*admissionv1.AdmissionRequest
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.reviews = append(r.reviews, review.Request)
	r.mu.Unlock()
	review.Response, review.Request = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}, nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

func (r *recorder) take() []*admissionv1.AdmissionRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.reviews
	r.reviews = nil
	return taken
}

// record registers a recorder for the bystander, with the rules of the enforcing entry.
func record(t *testing.T, c *cluster) *recorder {
	t.Helper()
	r := &recorder{}
	server := httptest.NewTLSServer(r)
	t.Cleanup(server.Close)
	entry := admissionregistrationv1.ValidatingWebhook{
		Name: "recorder.acme.example", FailurePolicy: new(admissionregistrationv1.Fail), MatchPolicy: new(admissionregistrationv1.Exact),
		SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "bystander", Expression: `request.userInfo.username == "ben@acme.example"`}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: anything.operations,
			Rule:       admissionregistrationv1.Rule{APIGroups: anything.groups, APIVersions: anything.versions, Resources: anything.resources},
		}},
	}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "recorder"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{entry},
	}
	if err := c.admin.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool {
		_ = merge(shop+"/configmaps/plain", "{data: {a: b}}").send(t.Context(), t, c.bystander)
		return len(r.take()) > 0
	})
	return r
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(awaitInterval) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come")
		}
	}
}

func (s shot) fire(t *testing.T, cfg *rest.Config) error {
	t.Helper()
	if !s.live {
		return s.send(t.Context(), t, cfg)
	}
	return kubernetes.NewForConfigOrDie(cfg).Discovery().RESTClient().Verb(s.method).RequestURI(s.path).Do(t.Context()).Error()
}

// engineFinds are the rules that match by the engine, for what the recorder saw of one request.
func engineFinds(t *testing.T, engine *policy.Engine, reviews []*admissionv1.AdmissionRequest) []string {
	t.Helper()
	found := []string{}
	for _, review := range reviews {
		request := kube.Request{
			Operation: string(review.Operation), Group: review.Resource.Group, Version: review.Resource.Version, Resource: review.Resource.Resource,
			Subresource: review.SubResource, Kind: review.Kind.Kind, Namespace: review.Namespace, Name: review.Name,
			DryRun: review.DryRun != nil && *review.DryRun, ServiceAccount: kube.ServiceAccount{Namespace: "shop", Name: "agent"},
		}
		for raw, to := range map[*[]byte]*map[string]any{
			&review.Object.Raw: &request.Object, &review.OldObject.Raw: &request.OldObject, &review.Options.Raw: &request.Options,
		} {
			if len(*raw) > 0 {
				if err := utiljson.Unmarshal(*raw, to); err != nil {
					t.Fatal(err)
				}
			}
		}
		op, err := kube.Operation(request, kube.Known{SessionNamespaces: []string{"shop", "search"}})
		if err != nil {
			t.Fatal(err)
		}
		session := policy.SessionView{
			State: policy.SessionActive, Namespace: "shop", Name: "agent", UID: "u", Username: "system:serviceaccount:shop:agent",
			Authority: policy.Authority{Capabilities: []policy.Capability{policy.CapabilityExecuteLocal}, Stages: []policy.Stage{policy.StageExecute, policy.StagePropose}},
		}
		decision := engine.Decide(op, session, time.Now())
		for _, detail := range decision.Details {
			if detail.Code == policy.CodeRule && detail.Class == policy.ClassForbidden && !slices.Contains(found, detail.Rule) {
				found = append(found, detail.Rule)
			}
		}
		if len(found) > 0 && decision.Verdict != policy.VerdictDeny {
			t.Errorf("the engine answers %s", decision.Verdict)
		}
	}
	slices.Sort(found)
	return found
}

// floorFinds are the rules that the floor denied the agent's request for, by the API server's audit log.
func floorFinds(t *testing.T, c *cluster, s shot) ([]string, answer) {
	t.Helper()
	mark, err := c.AuditMark()
	if err != nil {
		t.Fatal(err)
	}
	refusal := s.fire(t, c.agent)
	events, err := c.AuditSince(mark, "system:serviceaccount:shop:agent")
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, event := range events {
		var failures []struct {
			Policy, Message string
		}
		if text := event.Annotations["validation.policy.admission.k8s.io/validation_failure"]; text != "" {
			if err := json.Unmarshal([]byte(text), &failures); err != nil {
				t.Fatal(err)
			}
		}
		for _, failure := range failures {
			if failure.Policy == FloorForbidden {
				found = append(found, ruleOf(failure.Message))
			}
		}
	}
	slices.Sort(found)
	return found, answerOf(refusal)
}

// ruleOf finds the rule in a refusal, or in the API server's own words about an expression that erred.
func ruleOf(message string) string {
	if _, rest, found := strings.Cut(message, "(rule "); found {
		name, _, _ := strings.Cut(rest, ")")
		return name
	}
	_, rest, _ := strings.Cut(message, "expression '"+ruleMark)
	name, _, _ := strings.Cut(rest, "\n")
	return name
}

// sentinel tells that the API server acts on the newest rules.
func sentinel(i int) policy.Rule {
	return forbid(fmt.Sprintf("zz-sentinel-%d", i), "", fmt.Sprintf("create - configmaps sentinel-%d", i))
}

// The same requests through the API server's own admission policy and through the engine: the same rules match.
// Proves K-6, and C-3 for the floor: what is compiled forbids what the engine forbids, no more and no less.
func TestTheFloorForbidsWhatTheEngineForbids(t *testing.T) {
	c := startCluster(t)
	for _, file := range []string{"testdata/forbidden.yaml", "testdata/widgets.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := env.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		await(t, func() bool { err = c.Apply(t.Context(), objects...); return err == nil })
	}
	seen := record(t, c)
	shots := corpus()
	reviews := make([][]*admissionv1.AdmissionRequest, len(shots))
	unseen := 0
	for i, s := range shots {
		_ = s.fire(t, c.bystander)
		if reviews[i] = seen.take(); len(reviews[i]) == 0 {
			unseen++
			t.Logf("admission is not shown %s", s.name)
		}
	}
	if unseen > len(shots)/20 {
		t.Fatalf("of %d requests %d never reach admission", len(shots), unseen)
	}
	for i, set := range []struct {
		name     string
		policies []policy.Policy
		// both tells that each rule must be seen to deny and not to deny.
		both bool
	}{
		{"selectors", selectorRules, true}, {"expressions", expressionRules, true},
		// The audit log names 50 failures of one request at most.
		{"random expressions", randomRules(1, 40), false}, {"more random expressions", randomRules(2, 40), false},
		{"still more random expressions", randomRules(3, 40), false},
	} {
		t.Run(set.name, func(t *testing.T) {
			policies := append(slices.Clone(set.policies), clusterPolicy("zz", sentinel(i)))
			engine, f := arm(t, c, policies, i)
			denied := map[string]int{}
			refusals := 0
			for j, s := range shots {
				if len(reviews[j]) == 0 {
					continue
				}
				want := slices.DeleteFunc(engineFinds(t, engine, reviews[j]), func(name string) bool { return !slices.Contains(f.Rules(), name) })
				got, answer := floorFinds(t, c, s)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-engine +floor):\n%s", s.name, diff)
				}
				if (answer.Enforcer == FloorForbidden || answer.Enforcer == "") && (answer.Enforcer != "") != (len(want) > 0) {
					t.Errorf("%s: %+v, by the engine %v", s.name, answer, want)
				}
				for _, name := range got {
					denied[name]++
				}
				refusals += min(len(got), 1)
			}
			report(t, f, denied, len(shots)-unseen, refusals, set.both)
		})
	}
	t.Run("the namespaces of the product are gone", func(t *testing.T) { uninstalled(t, c) })
}

// uninstalled deletes the namespaces of the product with all that is in them. Nothing of the floor goes with them.
func uninstalled(t *testing.T, c *cluster) {
	arm(t, c, append(slices.Clone(selectorRules), clusterPolicy("zz", sentinel(99))), 99)
	for _, name := range []string{SystemNamespace, CanaryNamespace} {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := c.admin.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		await(t, func() bool {
			return apierrors.IsNotFound(c.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		})
	}
	request := post(shop+"/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: ledger-x}}")
	got := answerOf(request.send(t.Context(), t, c.agent))
	if got.Code != http.StatusForbidden || got.Enforcer != FloorForbidden || !strings.Contains(got.Message, "(rule shop/any-name)") {
		t.Errorf("a governed identity gets %+v", got)
	}
	if err := request.send(t.Context(), t, c.bystander); err != nil {
		t.Errorf("a bystander gets %v", err)
	}
}

// arm puts the rules into force in a fresh engine and in the API server.
func arm(t *testing.T, c *cluster, policies []policy.Policy, i int) (*policy.Engine, *Forbidden) {
	t.Helper()
	engine, problems := policy.Compile(policy.Set{
		Cluster: policies, Profiles: map[string]policy.Policy{"p": {}}, Namespaces: map[string]policy.Namespace{"shop": {Profile: "p"}, "search": {Profile: "p"}},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	f := CompileForbidden(policies)
	for _, left := range f.InProcess() {
		if strings.Contains(left.Name, "/random-") {
			continue // lists of mixed types, which admission refuses
		}
		t.Errorf("%s stays in process: %s %s", left.Name, left.Reason, left.Message)
	}
	floor, err := Floor(shopScope, baselineCatalogue(t), "v1", f.floorPolicy())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.guard.Put(t.Context(), floor); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool {
		probe := shot{request: post(shop+"/configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: sentinel-%d}}", i))}
		found, _ := floorFinds(t, c, probe)
		return slices.Contains(found, "zz/"+sentinel(i).Name)
	})
	return engine, &f
}

func report(t *testing.T, f *Forbidden, denied map[string]int, requests, refusals int, both bool) {
	t.Helper()
	oneSided := 0
	for _, name := range f.Rules() {
		if strings.HasPrefix(name, "zz/") {
			continue
		}
		n := denied[name]
		if n == 0 || n == requests {
			oneSided++
			if both && !strings.HasSuffix(name, "/dry-run") {
				t.Errorf("%s denies %d of %d requests: it is not seen both ways", name, n, requests)
			}
		}
		t.Logf("%-40s denied %4d, not denied %4d", name, n, requests-n)
	}
	t.Logf("%d rules, %d seen both ways; %d requests, %d refused", len(f.Rules())-1, len(f.Rules())-1-oneSided, requests, refusals)
}
