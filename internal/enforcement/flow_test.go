package enforcement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// flowObjects are the exempt and the governed FlowSchema of a scope, as the API server would store them.
func flowObjects(t *testing.T, s Scope) (exempt, governed flowcontrolv1.FlowSchema) {
	t.Helper()
	objects, err := FlowControl(s)
	if err != nil {
		t.Fatal(err)
	}
	for i, into := range []*flowcontrolv1.FlowSchema{&exempt, &governed} {
		text, err := json.Marshal(objects[1+i])
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return exempt, governed
}

func subjectsOf(f flowcontrolv1.FlowSchema) []string {
	var subjects []string
	for _, r := range f.Spec.Rules {
		for _, s := range r.Subjects {
			switch {
			case s.User != nil:
				subjects = append(subjects, s.User.Name)
			default:
				subjects = append(subjects, s.ServiceAccount.Namespace+"/"+s.ServiceAccount.Name)
			}
		}
	}
	return subjects
}

// Proves K-2.
func TestFlowSchemasListWhoIsGoverned(t *testing.T) {
	for _, tc := range []struct {
		name             string
		scope            Scope
		exempt, governed []string
	}{
		{"the empty scope leads nobody, the canary neither", Scope{}, nil, nil},
		{"users and namespaces, sorted", Scope{Namespaces: []string{"shop", "billing", "shop", CanaryNamespace}, Users: []string{"b", "a"}},
			nil, []string{"a", "b", "billing/*", "shop/*"}},
		{"a user whose name would stand for everybody is left out", Scope{Users: []string{"*", "a"}}, nil, []string{"a"}},
		{"exempt accounts come first, unless their namespace is not governed", Scope{Namespaces: []string{"shop"},
			Exempt: []ServiceAccount{{"shop", "z"}, {"shop", "a"}, {"shop", "z"}, {"other", "b"}}}, []string{"shop/a", "shop/z"}, []string{"shop/*"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			exempt, governed := flowObjects(t, tc.scope)
			if diff := cmp.Diff([][]string{tc.exempt, tc.governed}, [][]string{subjectsOf(exempt), subjectsOf(governed)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if exempt.Spec.MatchingPrecedence >= governed.Spec.MatchingPrecedence {
				t.Error("the exempt must be led away before")
			}
		})
	}
	if _, err := FlowControl(Scope{Namespaces: manyNamespaces(MaxEntries)}); !errors.Is(err, ErrScopeTooLarge) {
		t.Errorf("want ErrScopeTooLarge, got %v", err)
	}
}

// The API server takes requests of 3 MiB and etcd objects of 1.5 MiB.
// Proves K-9.
func TestTheLargestFlowSchemaKeepsTheLimits(t *testing.T) {
	for name, s := range map[string]Scope{"entries": {Namespaces: manyNamespaces(MaxEntries - 1)}, "bytes": {Namespaces: longNamespaces(9500)}} {
		_, governed := flowObjects(t, s)
		text, err := json.Marshal(governed)
		if err != nil {
			t.Fatal(err)
		}
		if stored := governed.Size(); len(text) > 2<<20 || stored > 1<<20 {
			t.Errorf("as many %s as possible: %d bytes of JSON, %d stored", name, len(text), stored)
		}
	}
}

// flowOf is the FlowSchema that the API server led the caller's request to.
func flowOf(t *testing.T, c *cluster, caller *rest.Config, r request) string {
	t.Helper()
	var seen atomic.Value
	cfg := rest.CopyConfig(caller)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(req)
			if err == nil {
				seen.Store(response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID))
			}
			return response, err
		})
	})
	_ = r.send(t.Context(), t, cfg)
	var list flowcontrolv1.FlowSchemaList
	if err := c.admin.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list.Items, func(f flowcontrolv1.FlowSchema) bool { return string(f.UID) == seen.Load() })
	if i < 0 {
		t.Fatalf("no FlowSchema has UID %v", seen.Load())
	}
	return list.Items[i].Name
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// The API server has few seats here, so that the governed writes of this test would take all those of ordinary accounts.
// Proves K-2.
func TestASlowWebhookStarvesOnlyAgents(t *testing.T) {
	c, r := startCluster(t, "--max-requests-inflight=40", "--max-mutating-requests-inflight=20"), startReviewer(t)
	cfg := Configuration{Scope: shopScope, Endpoint: r.endpoint, Manager: managerUsername, Catalogue: baselineCatalogue(t), Version: "v1"}
	if err := errors.Join(c.put(t, cfg), Limit(t.Context(), c.admin, shopScope)); err != nil {
		t.Fatal(err)
	}
	patient(t, c) // well before it is needed
	canary, err := NewCanary(c.Admin())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := canary.Await(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	t.Run("each caller has the flow that is meant for it", func(t *testing.T) { flowsAreApart(t, c) })
	t.Run("with hundreds of governed writes waiting for the webhook", func(t *testing.T) { othersGoOn(t, c, r) })
	t.Run("without a scope nobody is led anywhere", func(t *testing.T) {
		if err := Limit(t.Context(), c.admin, Scope{}); err != nil {
			t.Fatal(err)
		}
		if diff := settles(t, []string{"service-accounts", "service-accounts"}, func() []string {
			return []string{flowOf(t, c, c.agent, newConfigMap("shop")), flowOf(t, c, c.exempt, newConfigMap("shop"))}
		}); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func flowsAreApart(t *testing.T, c *cluster) {
	user := func(name string) *rest.Config {
		cfg, err := c.User(name)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	read := request{method: http.MethodGet, path: shop + "/configmaps/plain"}
	settles(t, []string{FlowAgents, FlowExempt}, func() []string { return []string{flowOf(t, c, c.agent, read), flowOf(t, c, c.exempt, read)} })
	for _, tc := range []struct {
		name   string
		caller *rest.Config
		want   string
	}{
		{"a governed ServiceAccount", c.agent, FlowAgents},
		{"a governed user", user("oidc:release-notes-agent"), FlowAgents},
		{"an exempt ServiceAccount", c.exempt, FlowExempt},
		{"the canary", account(t, c, CanaryNamespace, "canary"), "service-accounts"},
		{"a ServiceAccount of another namespace", account(t, c, "search", "agent"), "service-accounts"},
		{"a controller", account(t, c, "kube-system", "some-controller"), "kube-system-service-accounts"},
		{"the scheduler", user("system:kube-scheduler"), "kube-scheduler"},
		{"a person", c.bystander, "global-default"},
	} {
		for kind, r := range map[string]request{"write": newConfigMap("shop"), "read": read, "discovery": {method: http.MethodGet, path: "/apis"}} {
			if got := flowOf(t, c, tc.caller, r); got != tc.want {
				t.Errorf("%s, %s: want %s, got %s", tc.name, kind, tc.want, got)
			}
		}
	}
}

// othersGoOn holds every answer of the webhook back while people, other ServiceAccounts and a leader election work: none
// of them can be done before the answers come if agents hold the seats that they need.
func othersGoOn(t *testing.T, c *cluster, r *reviewer) {
	held := make(chan struct{})
	r.mu.Lock()
	r.held = held
	r.mu.Unlock()
	const writes = 300
	var answered atomic.Int64
	var agents sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		close(held)
		agents.Wait()
		r.mu.Lock()
		r.held = nil
		r.mu.Unlock()
	})
	for i := range writes {
		caller := []*rest.Config{c.agent, c.operator}[i%2]
		agents.Go(func() {
			_ = newConfigMap("shop").send(ctx, t, caller)
			answered.Add(1)
		})
	}
	queued := func() float64 {
		return metric(t, c, fmt.Sprintf(`apiserver_flowcontrol_current_inqueue_requests{flow_schema=%q,`, FlowAgents))
	}
	for deadline := time.Now().Add(time.Minute); queued() < 200; time.Sleep(awaitInterval) {
		if time.Now().After(deadline) {
			t.Fatalf("only %v governed writes wait", queued())
		}
	}
	scheduler, err := c.User("system:kube-scheduler")
	if err != nil {
		t.Fatal(err)
	}
	work, stop := context.WithTimeout(t.Context(), 25*time.Second) // shorter than the webhook is waited for
	defer stop()
	const times = 30
	for name, do := range map[string]func() error{
		"a person writes":               func() error { return newConfigMap("shop").send(work, t, c.bystander) },
		"another ServiceAccount writes": writesAs(work, t, account(t, c, "search", "agent")),
		"an exempt ServiceAccount reads": func() error {
			return request{method: http.MethodGet, path: shop + "/configmaps"}.send(work, t, c.exempt)
		},
		"the scheduler renews its Lease": renews(work, t, scheduler),
	} {
		for range times {
			if err := do(); err != nil {
				t.Fatalf("%s while %d governed writes wait: %v", name, writes, err)
			}
		}
	}
	if n := answered.Load(); n > 0 {
		t.Errorf("%d governed writes were answered meanwhile", n)
	}
}

func writesAs(ctx context.Context, t *testing.T, caller *rest.Config) func() error {
	return func() error { return newConfigMap("search").send(ctx, t, caller) }
}

// renews is one renewal of a Lease in kube-system, which is really written.
func renews(ctx context.Context, t *testing.T, cfg *rest.Config) func() error {
	t.Helper()
	k8s, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"}}
	if err := k8s.Create(ctx, lease); err != nil {
		t.Fatal(err)
	}
	return func() error {
		lease.Spec.RenewTime = new(metav1.NowMicro())
		return k8s.Update(ctx, lease)
	}
}

// patient makes the API server wait for the webhook as long as it can.
func patient(t *testing.T, c *cluster) {
	t.Helper()
	live := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: WebhookConfiguration}}
	if err := c.admin.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	live.Webhooks[0].TimeoutSeconds = new(int32(30))
	if err := c.admin.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
}
