// Package cost_test proves what the manager costs in memory, on a real control plane and in a process of its own.
package cost_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

const (
	sessionsPerNamespace = 100
	leastPerGiB          = 200_000
	writers              = 16
	// workAtMost bounds what the manager does with all sessions.
	workAtMost = 15 * time.Minute
)

// SESSIONS says with how many; it is not among the tests of every day, because the control plane needs minutes to take
// them in. The sessions follow workloads of a kind whose end the manager cannot see, so they live until their deadline
// without any pod, and each has the status that the manager writes.
//
// Proves K-9.
func TestAGibibyteHoldsTwoHundredThousandSessions(t *testing.T) {
	sessions, err := strconv.Atoi(os.Getenv("SESSIONS"))
	if err != nil || sessions < sessionsPerNamespace {
		t.Skipf("SESSIONS is not set to a number from %d on: run make bench-memory", sessionsPerNamespace)
	}
	log.SetLogger(logr.Discard()) // what the clients would say is in their errors
	c := start(t)
	namespaces := make([]string, sessions/sessionsPerNamespace)
	for i := range namespaces {
		namespaces[i] = fmt.Sprintf("agents-of-team-%03d", i)
	}
	inParallel(t, len(namespaces), func(i int) error { return c.Admin.Create(t.Context(), namespace(namespaces[i])) })

	manager := asManager(t, c)
	restart(t, c)
	before := settled(t, c)
	began := time.Now()
	inParallel(t, sessions, func(i int) error { return manager.Create(t.Context(), session(namespaces[i%len(namespaces)], i)) })
	t.Logf("%d sessions created in %.0f s", sessions, time.Since(began).Seconds())
	idle(t, c)
	t.Logf("their status was written in %.0f s", time.Since(began).Seconds())
	allActive(t, c, sessions)

	synced := restart(t, c)
	began = time.Now()
	idle(t, c)
	t.Logf("synced in %.1f s after the start of the process, all sessions looked at %.1f s later", synced.Seconds(), time.Since(began).Seconds())
	after := settled(t, c)
	perGiB := float64(sessions) / (float64(after-before) / (1 << 30))
	t.Logf("RSS %d MiB without and %d MiB with %d sessions: %.0f sessions per GiB, %d bytes each",
		before>>20, after>>20, sessions, perGiB, (after-before)/int64(sessions))
	if perGiB < leastPerGiB {
		t.Errorf("a GiB holds %.0f sessions, want at least %d", perGiB, leastPerGiB)
	}
}

func start(t *testing.T) *cluster.Cluster {
	t.Helper()
	plane, err := env.Start(t.Context(), env.Options{ControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Govern(t.Context(), plane)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelProfile: cluster.Profile}}}
}

// session is as the session controller makes it from a template.
func session(namespace string, i int) *v1alpha1.AgentSession {
	uid := types.UID(fmt.Sprintf("%08d-1f2e-4d3c-8b4a-5c6d7e8f9a0b", i))
	name := fmt.Sprintf("ledger-migration-%05d", i)
	return &v1alpha1.AgentSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelTemplate: "agent"}},
		Spec: v1alpha1.AgentSessionSpec{
			Identity: v1alpha1.SessionIdentity{
				Type: v1alpha1.IdentityServiceAccount, ServiceAccountName: "agent",
				RootOwner: &v1alpha1.RootOwner{Kind: "Workflow", Name: name, UID: uid},
			},
			UserName: fmt.Sprintf("person-%03d@acme.example", i%500), ModelTier: v1alpha1.ModelTierMedium, InitiativeMode: v1alpha1.InitiativeModeStandard,
			Authority: v1alpha1.Authority{
				Stages:       []v1alpha1.Stage{v1alpha1.StageUnderstand, v1alpha1.StagePropose, v1alpha1.StageExecute},
				Capabilities: []v1alpha1.Capability{v1alpha1.CapabilityReadContext, v1alpha1.CapabilityExecuteLocal},
			},
			DeadlineTime: metav1.NewTime(time.Now().Add(24 * time.Hour).Truncate(time.Second)),
		},
	}
}

// asManager writes as the manager does, which makes the sessions of templates.
func asManager(t *testing.T, c *cluster.Cluster) client.Client {
	t.Helper()
	token, err := c.Env.ServiceAccountToken(t.Context(), env.SystemNamespace, env.ManagerServiceAccount, "")
	if err != nil {
		t.Fatal(err)
	}
	own, err := client.New(c.Env.Token(token), client.Options{Scheme: c.Admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// restart stops the manager, starts it anew and says how long it took until it was ready, which is when its caches are
// filled.
func restart(t *testing.T, c *cluster.Cluster) time.Duration {
	t.Helper()
	if err := c.Manager.Stop(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := c.Manager.Start(); err != nil {
		t.Fatal(err)
	}
	if err := c.Manager.WaitReady(t.Context(), workAtMost); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// idle waits until the controllers have nothing to do any more.
func idle(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), workAtMost)
	defer cancel()
	for still := 0; still < 3; still++ {
		for _, metric := range []string{"workqueue_depth", "controller_runtime_active_workers"} {
			left, err := c.Manager.Counter(ctx, metric, nil)
			if err != nil {
				t.Fatal(err)
			}
			if left > 0 {
				still = -1
			}
		}
		pause(ctx, t, time.Second)
	}
}

// collectedWithin is when Go collects garbage at the latest, also in a process that does nothing, with time to give the
// memory back.
const collectedWithin = 150 * time.Second

// settled is the resident memory of the manager in bytes, once it falls no more. What it is at once, with the garbage of
// the start, is printed.
func settled(t *testing.T, c *cluster.Cluster) int64 {
	t.Helper()
	least := rss(t, c)
	t.Logf("RSS %d MiB at once", least>>20)
	for fell := time.Now(); time.Since(fell) < collectedWithin; {
		pause(t.Context(), t, time.Second)
		if now := rss(t, c); now < least {
			if now < least-least/100 {
				fell = time.Now()
			}
			least = now
		}
	}
	return least
}

func rss(t *testing.T, c *cluster.Cluster) int64 {
	t.Helper()
	bytes, err := c.Env.RSS("manager")
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func pause(ctx context.Context, t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-ctx.Done():
		t.Fatal(context.Cause(ctx))
	case <-time.After(d):
	}
}

// allActive makes sure that what is measured is there.
func allActive(t *testing.T, c *cluster.Cluster, sessions int) {
	t.Helper()
	var list v1alpha1.AgentSessionList
	if err := c.Admin.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	active := 0
	for i := range list.Items {
		if s := &list.Items[i].Status; s.State == v1alpha1.SessionActive && len(s.Conditions) > 0 {
			active++
		}
	}
	if active != sessions {
		t.Fatalf("%d sessions are active with conditions, want %d", active, sessions)
	}
}

// inParallel does n things with several writers at once.
func inParallel(t *testing.T, n int, do func(i int) error) {
	t.Helper()
	next := make(chan int)
	failures := make([]error, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range next {
				if failures[w] == nil {
					failures[w] = do(i)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
}
