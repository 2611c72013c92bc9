package protocol_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/grant"
	"stepbeyond.dev/stepbeyond/policy"
)

// scene is one target of a family, and the one grant for one effect on it.
type scene struct {
	*family
	home     *home
	observer *observer
	name     string
	grant    string // empty until it is approved

	// The observer's lock covers what it counts. Effects count while the scene is live: what people do before and after
	// is none.
	live    bool
	effects int
	before  client.Object
	undoing sync.WaitGroup
}

var scenes atomic.Int64

// newScene makes a target of the family.
func newScene(t *testing.T, f *family) *scene {
	t.Helper()
	s := &scene{family: f, home: at(t, f.home), observer: observe(t, f), name: fmt.Sprintf("target-%d", scenes.Add(1))}
	s.observer.mu.Lock()
	s.observer.scenes[s.name] = s
	s.observer.mu.Unlock()
	if s.exists {
		must(t, s.target())
		s.observer.drain(t)
	}
	s.setLive(true)
	return s
}

func (s *scene) setLive(live bool) {
	s.observer.mu.Lock()
	defer s.observer.mu.Unlock()
	s.live = live
}

func (s *scene) target() client.Object { return s.object(s.home.namespace, s.name) }

func (s *scene) request(ctx context.Context, agent *actor) error {
	return s.attempt(ctx, agent, s.target())
}

// approve has the request asked about and approved.
func (s *scene) approve(t *testing.T) {
	t.Helper()
	s.grant = s.home.approved(t, s.request).Name
}

// try sends the request once, at one of the API servers.
func (s *scene) try(t *testing.T, server int) answer {
	t.Helper()
	return understand(s.request(t.Context(), s.home.agents[server]))
}

// persist sends the request again, as an agent does, until it succeeds or its answer is final.
func (s *scene) persist(t *testing.T) {
	t.Helper()
	var got answer
	for try := range maxTries {
		got = s.try(t, try%2)
		switch {
		case got.word == string(policy.ReasonGrantInUse):
			s.settleLater(t)
		case !got.passing():
			return
		}
		time.Sleep(pause)
	}
	t.Fatalf("%s %s: after %d tries: %s %s", s.family.name, s.name, maxTries, got.word, got.message)
}

// count of the effects until now, each of which has been undone when it returns.
func (s *scene) count(t *testing.T) int {
	t.Helper()
	s.observer.drain(t)
	s.undoing.Wait()
	s.observer.drain(t)
	s.observer.mu.Lock()
	defer s.observer.mu.Unlock()
	return s.effects
}

// settleLater looks at a reserved use as a replica would after the time in which an effect can appear. Nothing of the
// scene may be under way.
func (s *scene) settleLater(t *testing.T) {
	t.Helper()
	settleLater(t, s.home.grant(t, s.grant))
}

func settleLater(t *testing.T, g *v1alpha1.PermissionGrant) {
	t.Helper()
	for _, use := range g.Status.Uses {
		if use.Outcome != v1alpha1.UseReserved {
			continue
		}
		later := use.Attempts[len(use.Attempts)-1].Time.Add(grant.EffectDeadline)
		p := &grant.Protocol{Client: admin, Live: admin, Mapper: admin.RESTMapper(), Key: digestKey, Now: func() time.Time { return later }}
		if _, err := p.Settle(t.Context(), g); err != nil && !apierrors.IsConflict(err) {
			t.Errorf("settle %s: %v", g.Name, err)
		}
	}
}

// leaderSettlesWithin is how long the replica that leads gets before a test settles in its place: it looks every second.
const leaderSettlesWithin = 3 * time.Second

// settled waits until no use is reserved, and returns the grant.
func (s *scene) settled(t *testing.T) *v1alpha1.PermissionGrant {
	t.Helper()
	var g *v1alpha1.PermissionGrant
	began := time.Now()
	eventually(t, func() error {
		if g = s.home.grant(t, s.grant); !slices.Contains(outcomesOf(g), v1alpha1.UseReserved) {
			return nil
		}
		if time.Since(began) > leaderSettlesWithin {
			settleLater(t, g)
		}
		return fmt.Errorf("permissiongrant %s/%s still has a reserved use", g.Namespace, g.Name)
	})
	return g
}

func outcomesOf(g *v1alpha1.PermissionGrant) []v1alpha1.UseOutcome {
	var outcomes []v1alpha1.UseOutcome
	for _, use := range g.Status.Uses {
		outcomes = append(outcomes, use.Outcome)
	}
	return outcomes
}

// result is how a scene ended.
type result struct {
	effects  int
	outcomes string // of the uses, in order
}

// verify tries once more at both API servers, where without the bound of one use an effect would be certain, and checks
// that effects and uses agree (requirement G-5).
func (s *scene) verify(t *testing.T) result {
	t.Helper()
	s.count(t)
	for server := range s.home.agents {
		s.try(t, server)
	}
	effects := s.count(t)
	g := s.settled(t)
	words, spent, unknown := []string{}, 0, 0
	for _, outcome := range outcomesOf(g) {
		words = append(words, string(outcome))
		switch outcome {
		case v1alpha1.UseConsumed:
			spent++
		case v1alpha1.UseUnknown:
			unknown++
		}
	}
	r := result{effects: effects, outcomes: strings.Join(words, "+")}
	switch {
	case effects > 1:
		t.Errorf("%s %s: %d effects under permissiongrant %s, want at most one: %s", s.family.name, s.name, effects, s.grant, describe(g))
	case spent > effects:
		t.Errorf("%s %s: permissiongrant %s is spent without an effect: %s", s.family.name, s.name, s.grant, describe(g))
	case effects == 1 && spent+unknown != 1:
		t.Errorf("%s %s: one effect under permissiongrant %s, whose uses are %q: %s", s.family.name, s.name, s.grant, r.outcomes, describe(g))
	case unknown > 0 && g.Status.Reason != v1alpha1.ReasonEffectUnknown:
		t.Errorf("%s %s: permissiongrant %s does not show that its use is unknown: %s", s.family.name, s.name, s.grant, describe(g))
	}
	return r
}

func describe(g *v1alpha1.PermissionGrant) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)", g.Status.State, g.Status.Reason)
	for _, use := range g.Status.Uses {
		fmt.Fprintf(&b, "\n  use %d %s, %q", use.Index, use.Outcome, use.Effect)
		for _, a := range use.Attempts {
			fmt.Fprintf(&b, "\n    %s on %s of %s at %s", a.ReviewUID, a.OldResourceVersion, a.TargetUID, a.Time.Format(time.TimeOnly))
		}
	}
	return b.String()
}

// clear removes the target and the grants about it, so that many scenes leave no many questions.
func (s *scene) clear(t *testing.T) {
	t.Helper()
	s.setLive(false)
	s.undoing.Wait()
	if err := client.IgnoreNotFound(admin.Delete(t.Context(), s.target())); err != nil {
		t.Error(err)
	}
	for _, g := range grantsOn(t, s.home.namespace, s.name) {
		if err := client.IgnoreNotFound(admin.Delete(t.Context(), &g)); err != nil {
			t.Error(err)
		}
	}
	s.observer.mu.Lock()
	defer s.observer.mu.Unlock()
	delete(s.observer.scenes, s.name)
}

// grantsOn lists the grants about one name.
func grantsOn(t *testing.T, namespace, name string) []v1alpha1.PermissionGrant {
	t.Helper()
	var list v1alpha1.PermissionGrantList
	if err := admin.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(g v1alpha1.PermissionGrant) bool { return g.Spec.Request.Operation.Target.Name != name })
}
