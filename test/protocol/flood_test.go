package protocol_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

const (
	// floodRate of denied requests, in each second, for floodFor.
	floodRate = 100
	floodFor  = 3 * time.Second
)

// An agent in a loop asks the same, something else, and another change of the same object, each at 100 requests a
// second and past the cap of its open questions.
//
// Proves G-7.
func TestALoopOfDenialsLeavesNothingThatGrows(t *testing.T) {
	const ns = "flood"
	h := at(t, ns)
	must(t, service(ns, "front"))
	requests := map[string]func(n int) request{
		"equal": func(int) request {
			return func(ctx context.Context, a *actor) error { return a.Create(ctx, ingress(ns, "same")) }
		},
		"distinct": func(n int) request {
			return func(ctx context.Context, a *actor) error {
				return a.Create(ctx, ingress(ns, fmt.Sprintf("other-%d", n)))
			}
		},
		"changing": func(n int) request {
			return func(ctx context.Context, a *actor) error {
				return a.Patch(ctx, service(ns, "front"), selectorPatch(fmt.Sprintf("app-%d", n)))
			}
		},
	}
	for name, bound := range map[string]int{"equal": 1, "distinct": narrowCap, "changing": 1} {
		t.Run(name, func(t *testing.T) {
			if err := admin.DeleteAllOf(t.Context(), &v1alpha1.PermissionGrant{}, client.InNamespace(ns)); err != nil {
				t.Fatal(err)
			}
			before := keys(t)
			answers, sent := h.flood(t, requests[name])
			var list v1alpha1.PermissionGrantList
			eventually(t, func() error { // a replica may still count for a request that the API server has given up on
				if err := admin.List(t.Context(), &list, client.InNamespace(ns)); err != nil {
					return err
				}
				if n := len(list.Items); n > bound {
					return fmt.Errorf("%d grants, want at most %d", n, bound)
				}
				return nil
			})
			grown := keys(t) - before
			t.Logf("%s: %d requests; %d grants; etcd has %.0f keys more; answers: %s", name, sent, len(list.Items), grown, tally(answers))
			if answers["success"] > 0 {
				t.Errorf("%d requests had an effect", answers["success"])
			}
			if grown > keysAllowed {
				t.Errorf("etcd has %.0f keys more after %d requests, want at most %d", grown, sent, keysAllowed)
			}
		})
	}
}

// keysAllowed are the grants of the cap, an event about each, and what the rest of the cluster writes meanwhile.
const keysAllowed = 60

// keys of etcd.
func keys(t *testing.T) float64 {
	t.Helper()
	n, err := plane.EtcdMetric(t.Context(), "etcd_debugging_mvcc_keys_total")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// flood sends requests at the rate, to both API servers, and counts the answers.
func (h *home) flood(t *testing.T, request func(n int) request) (map[string]int, int) {
	t.Helper()
	var (
		mu      sync.Mutex
		all     sync.WaitGroup
		answers = map[string]int{}
		tick    = time.NewTicker(time.Second / floodRate)
		sent    = 0
	)
	defer tick.Stop()
	for ; sent < floodRate*int(floodFor/time.Second); sent++ {
		<-tick.C
		n := sent
		all.Go(func() {
			got := understand(request(n)(t.Context(), h.agents[n%2]))
			if got.succeeded() {
				got.word = "success"
			}
			mu.Lock()
			defer mu.Unlock()
			answers[got.word]++
		})
	}
	all.Wait()
	return answers, sent
}
