package integration_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
	"stepbeyond.dev/stepbeyond/policy"
)

// attempts of one round, all at the same moment.
const attempts = 50

// rounds of each family: RACE_ROUNDS, or 5.
func rounds(t *testing.T) int {
	t.Helper()
	text, set := os.LookupEnv("RACE_ROUNDS")
	if !set {
		return 5
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("RACE_ROUNDS=%q is not a positive number", text)
	}
	return n
}

// family is one kind of effect, and how somebody takes it back so that another one is possible.
type family struct {
	name string
	home string
	// object of one round; its kind is what is watched.
	object func(namespace, name string) client.Object
	// exists tells whether people make the object before the round.
	exists  bool
	attempt func(ctx context.Context, agent *actor, object client.Object) error
	// effect tells whether an event is one, after the event of the same object before it (nil for none).
	effect func(event watch.Event, before client.Object) bool
	undo   func(ctx context.Context, object client.Object) error
}

var families = []family{
	{
		name: "an update that is reverted", home: "race-update", exists: true,
		object: func(namespace, name string) client.Object { return service(namespace, name) },
		attempt: func(ctx context.Context, agent *actor, object client.Object) error {
			return agent.Patch(ctx, object, selectorPatch("canary"))
		},
		effect: func(event watch.Event, before client.Object) bool {
			return event.Type == watch.Modified && selects(event.Object, "canary") && !selects(before, "canary")
		},
		undo: func(ctx context.Context, object client.Object) error {
			return admin.Patch(ctx, object, selectorPatch("web"))
		},
	},
	{
		name: "a deletion of what is made anew", home: "race-delete", exists: true,
		object:  func(namespace, name string) client.Object { return configMap(namespace, name) },
		attempt: func(ctx context.Context, agent *actor, object client.Object) error { return agent.Delete(ctx, object) },
		effect:  func(event watch.Event, _ client.Object) bool { return event.Type == watch.Deleted },
		undo:    func(ctx context.Context, object client.Object) error { return admin.Create(ctx, object) },
	},
	{
		name: "a creation of what is deleted", home: "race-create",
		object:  func(namespace, name string) client.Object { return ingress(namespace, name) },
		attempt: func(ctx context.Context, agent *actor, object client.Object) error { return agent.Create(ctx, object) },
		effect:  func(event watch.Event, _ client.Object) bool { return event.Type == watch.Added },
		undo:    func(ctx context.Context, object client.Object) error { return admin.Delete(ctx, object) },
	},
}

// Effects are counted from the API server's watch, so that no answer of the webhook counts as one, and compared with
// its audit log.
//
// Proves G-5.
func TestRaceForTheOneUseOfAGrantHasOneEffect(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			h := at(t, f.home)
			wanted, seen, round := rounds(t), 0, 0
			// A machine under load refuses for lack of time; rounds without any effect prove little.
			for ; round < wanted || seen == 0 && round < 10*wanted; round++ {
				r := &race{family: f, home: h, name: fmt.Sprintf("target-%d", round)}
				seen += r.run(t)
			}
			if seen == 0 {
				t.Error("no attempt of any round had an effect, so nothing was proven")
			}
			t.Logf("%d effects in %d rounds of %d attempts", seen, round, attempts+1)
		})
	}
}

// race is one round.
type race struct {
	family
	home *home
	name string

	effects int
	undone  error
	passed  chan string // names of other objects of the kind that were seen
}

func (r *race) target() client.Object { return r.object(r.home.namespace, r.name) }

func (r *race) request(ctx context.Context, agent *actor) error {
	return r.attempt(ctx, agent, r.target())
}

// run plays the round and returns the number of effects.
func (r *race) run(t *testing.T) int {
	t.Helper()
	if r.exists {
		must(t, r.target())
	}
	g := r.home.approved(t, r.request)
	mark, err := plane.AuditMark()
	if err != nil {
		t.Fatal(err)
	}
	stop := r.watch(t)
	tally := r.contend(t)
	r.drain(t, "sentinel-1")
	// What had an effect is undone by now: without the bound of one use, this one would have a second effect for certain.
	tally[r.home.agent.try(t, r.request).outcome]++
	r.drain(t, "sentinel-2")
	stop()
	if r.undone != nil {
		t.Fatalf("%s: undo: %v", r.name, r.undone)
	}
	if r.effects > 1 {
		t.Errorf("%s: %d effects under permissiongrant %s, want at most one", r.name, r.effects, g.Name)
	}
	if granted := r.granted(t, mark); granted != r.effects {
		t.Errorf("%s: the audit log has %d granted requests that succeeded, the watch %d effects", r.name, granted, r.effects)
	}
	eventually(t, func() error {
		if g = r.home.grant(t, g.Name); g.Status.State != v1alpha1.GrantExhausted || len(g.Status.Uses) != 1 {
			return fmt.Errorf("permissiongrant %s is %s with %d uses, want %s with one", g.Name, g.Status.State, len(g.Status.Uses), v1alpha1.GrantExhausted)
		}
		return nil
	})
	t.Logf("%s: %d effects, %s, use %s; answers: %s", r.name, r.effects, g.Name, g.Status.Uses[0].Outcome, summary(tally))
	// Many rounds leave many open questions, and a session may not have too many.
	if err := admin.DeleteAllOf(t.Context(), &v1alpha1.PermissionGrant{}, client.InNamespace(r.home.namespace)); err != nil {
		t.Fatal(err)
	}
	return r.effects
}

// contend sends all attempts at the same moment and counts their outcomes; the zero outcome is a success.
func (r *race) contend(t *testing.T) map[outcome]int {
	t.Helper()
	tally := map[outcome]int{}
	var (
		start = make(chan struct{})
		mu    sync.Mutex
		all   sync.WaitGroup
	)
	for range attempts {
		all.Go(func() {
			<-start
			got := understand(r.request(t.Context(), r.home.agent), nil)
			mu.Lock()
			defer mu.Unlock()
			tally[got.outcome]++
		})
	}
	close(start)
	all.Wait()
	return tally
}

// watch counts effects and undoes each at once. stop ends it and waits for its end.
func (r *race) watch(t *testing.T) (stop func()) {
	t.Helper()
	list, ok := listOf(r.target())
	if !ok {
		t.Fatalf("no list of %T", r.target())
	}
	if err := admin.List(t.Context(), list, client.InNamespace(r.home.namespace)); err != nil {
		t.Fatal(err)
	}
	events, err := admin.Watch(t.Context(), list, client.InNamespace(r.home.namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	if err != nil {
		t.Fatal(err)
	}
	var before client.Object
	if r.exists {
		before = r.target()
	}
	r.passed = make(chan string, 1)
	var ended sync.WaitGroup
	ended.Go(func() {
		for event := range events.ResultChan() {
			object, ok := event.Object.(client.Object)
			if !ok {
				return // the watch was cut; what it did not show is missed by drain
			}
			if object.GetName() != r.name {
				r.passed <- object.GetName()
				continue
			}
			if r.effect(event, before) {
				r.effects++
				if err := r.undo(t.Context(), r.target()); err != nil {
					r.undone = err
				}
			}
			before = object
		}
	})
	return func() { events.Stop(); ended.Wait() }
}

// drain returns when every event before now has been counted: the watch has passed an object that was made just now.
func (r *race) drain(t *testing.T, name string) {
	t.Helper()
	name = r.name + "-" + name
	must(t, r.object(r.home.namespace, name))
	for {
		select {
		case seen := <-r.passed:
			if seen == name {
				return
			}
		case <-time.After(waitAtMost):
			t.Fatalf("the watch does not show %s", name)
		}
	}
}

// granted counts the requests of the agent that succeeded under a grant, by the API server's audit log.
func (r *race) granted(t *testing.T, since env.AuditMark) int {
	t.Helper()
	events, err := plane.AuditSince(since, r.home.agent.username)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, event := range events {
		if event.ResponseStatus.Code < 300 && event.Annotations[enforcer+"/reason"] == string(policy.ReasonGranted) {
			n++
		}
	}
	return n
}

func summary(tally map[outcome]int) string {
	var parts []string
	for got, n := range tally {
		word := got.Reason
		if got == (outcome{}) {
			word = "success"
		} else if word == "" {
			word = got.Status
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, word))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func listOf(object client.Object) (client.ObjectList, bool) {
	switch object.(type) {
	case *corev1.Service:
		return &corev1.ServiceList{}, true
	case *corev1.ConfigMap:
		return &corev1.ConfigMapList{}, true
	case *networkingv1.Ingress:
		return &networkingv1.IngressList{}, true
	default:
		return nil, false
	}
}

func selects(object any, app string) bool {
	s, ok := object.(*corev1.Service)
	return ok && s.Spec.Selector["app"] == app
}

func selectorPatch(app string) client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"selector":{"app":%q}}}`, app))
}
