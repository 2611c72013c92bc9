package protocol_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/grant"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
	"stepbeyond.dev/stepbeyond/policy"
)

// in is the family in another home, where what people do to session and policy concerns nobody else.
func (f *family) in(home string) *family {
	moved := *f
	moved.home = home
	return &moved
}

// meanwhile is what somebody does while a use is reserved and its request not answered.
type meanwhile struct {
	name   string
	family *family
	do     func(t *testing.T, s *scene, try int)
	// words that the answer may be; empty for a request that goes through.
	words []policy.Reason
	// native words are the API server's own.
	native []metav1.StatusReason
	// final: it cannot be done twice.
	final bool
	// effects, by whoever.
	effects  int
	outcomes []v1alpha1.UseOutcome
}

func (m *meanwhile) expects(word string) bool {
	return slices.Contains(m.words, policy.Reason(word)) || slices.Contains(m.native, metav1.StatusReason(word)) ||
		len(m.words)+len(m.native) == 0 && word == ""
}

// A review reads session, policies and grant once more after its use is reserved, and the API server its target; a
// change in between is never overlooked.
//
// Proves G-5, G-6, G-8.
func TestWhatChangesWhileAUseIsReservedStopsIt(t *testing.T) {
	released := []v1alpha1.UseOutcome{v1alpha1.UseReleased}
	patch, create, remove := familyOf(t, "patch"), familyOf(t, "create"), familyOf(t, "delete")
	otherQuestion := []policy.Reason{policy.ReasonGrantDigestMismatch, policy.ReasonPermissionPending}
	raise := func(t *testing.T, s *scene, try int) {
		setSession(t, s, fmt.Sprintf(`{"status":{"epoch":%d}}`, try+2))
	}
	edit := func(t *testing.T, _ *scene, try int) {
		profile := &v1alpha1.AgentPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: env.SystemNamespace, Name: "changing"}}
		tier := []string{"small", "medium"}[try%2]
		if err := petra.Patch(t.Context(), profile, mergePatch(`{"spec":{"modelTier":"`+tier+`"}}`)); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range []*meanwhile{
		{name: "nothing", family: patch.in("steady"), do: func(*testing.T, *scene, int) {}, effects: 1, outcomes: []v1alpha1.UseOutcome{v1alpha1.UseConsumed}},
		{name: "the epoch is raised", family: patch.in("raised"), do: raise, words: []policy.Reason{policy.ReasonGrantSuperseded}, outcomes: released},
		{name: "the session is suspended", family: patch.in("suspended"), do: func(t *testing.T, s *scene, _ int) {
			setSession(t, s, `{"status":{"state":"Suspended"}}`)
		}, words: []policy.Reason{policy.ReasonSuspended}, outcomes: released},
		{name: "the session is ended", family: create.in("ended"), final: true, do: func(t *testing.T, s *scene, _ int) {
			session := &v1alpha1.AgentSession{ObjectMeta: metav1.ObjectMeta{Namespace: s.home.session.Namespace, Name: s.home.session.Name}}
			if err := petra.Patch(t.Context(), session, mergePatch(`{"spec":{"deadlineTime":"2020-01-01T00:00:00Z"}}`)); err != nil {
				t.Fatal(err)
			}
		}, words: []policy.Reason{policy.ReasonSessionEnded}, outcomes: released},
		{name: "a policy is changed", family: create.in("changing"), do: edit, words: []policy.Reason{policy.ReasonGrantStale}, outcomes: released},
		{name: "the approval of a patch is revoked", family: patch.in("steady"), do: revoke, words: []policy.Reason{policy.ReasonGrantRevoked}, outcomes: released},
		{name: "the approval of an eviction is revoked", family: familyOf(t, "evict").in("steady"), do: revoke, words: []policy.Reason{policy.ReasonGrantRevoked}, outcomes: released},
		{name: "a person changes the target of a patch", family: patch, do: changeTarget, words: otherQuestion, outcomes: released},
		{name: "a person changes the target of an apply", family: familyOf(t, "apply"), do: changeTarget, words: otherQuestion, outcomes: released},
		{name: "a person changes the target of a put", family: familyOf(t, "put"), do: changeTarget, native: []metav1.StatusReason{metav1.StatusReasonConflict}, outcomes: released},
		{name: "the target of a patch is another one", family: patch, do: func(t *testing.T, s *scene, _ int) {
			if err := admin.Delete(t.Context(), s.target()); err != nil {
				t.Fatal(err)
			}
			must(t, s.target())
		}, words: otherQuestion, native: []metav1.StatusReason{metav1.StatusReasonConflict, metav1.StatusReasonNotFound}, outcomes: released},
		// The person's deletion is the effect that was approved, and no second one follows it.
		{name: "the target of a deletion is another one", family: remove, do: func(t *testing.T, s *scene, _ int) {
			if err := admin.Delete(t.Context(), s.target()); err != nil {
				t.Fatal(err)
			}
			s.count(t)
		}, words: otherQuestion, native: []metav1.StatusReason{metav1.StatusReasonConflict, metav1.StatusReasonNotFound}, effects: 1, outcomes: []v1alpha1.UseOutcome{v1alpha1.UseConsumed}},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			// A machine under load answers Undecided after 2 s, which is a refusal too and shows less.
			for try := range 10 {
				if got := m.play(t, try); m.expects(got.word) || t.Failed() {
					return
				} else if !got.passing() {
					t.Fatalf("the answer is %q, want one of %v %v: %s", got.word, m.words, m.native, got.message)
				} else if m.final {
					return
				}
			}
			t.Error("the machine is too slow for an answer within the webhook's deadline")
		})
	}
}

// play holds one request while it happens, and gives the answer.
func (m *meanwhile) play(t *testing.T, try int) answer {
	s := newScene(t, m.family)
	s.approve(t)
	order(t, grant.StepReserved, s.name, wait)
	sent := s.send(t, try%2)
	eventually(t, func() error {
		if hits(t, grant.StepReserved, "waited", s.name) > 0 {
			return nil
		}
		select {
		case <-sent: // it did not come so far
			sent = s.send(t, try%2)
		default:
		}
		return fmt.Errorf("no request waits at %s", grant.StepReserved)
	})
	m.do(t, s, try)
	takeBack(t, grant.StepReserved, s.name)
	got := <-sent
	effects := s.count(t)
	g := s.settled(t)
	if m.expects(got.word) && (effects != m.effects || !slices.Equal(outcomesOf(g), m.outcomes)) {
		t.Errorf("%d effects, want %d; uses %v, want %v: %s", effects, m.effects, outcomesOf(g), m.outcomes, describe(g))
	}
	if !m.expects(got.word) && effects > m.effects {
		t.Errorf("%d effects of a request that was refused (%s)", effects, got.word)
	}
	m.restore(t, s)
	if end := s.verify(t); end.effects > 1 {
		t.Errorf("%d effects in all", end.effects)
	}
	s.clear(t)
	return got
}

// send tries without waiting for the answer.
func (s *scene) send(t *testing.T, server int) <-chan answer {
	t.Helper()
	sent := make(chan answer, 1)
	go func() { sent <- s.try(t, server) }()
	return sent
}

// restore makes the session work again where it was suspended.
func (m *meanwhile) restore(t *testing.T, s *scene) {
	t.Helper()
	session := &v1alpha1.AgentSession{}
	if err := admin.Get(t.Context(), s.home.session, session); err != nil {
		t.Fatal(err)
	}
	if session.Status.State == v1alpha1.SessionSuspended {
		setSession(t, s, `{"status":{"state":"Active"}}`)
	}
}

// setSession writes what steering will write.
func setSession(t *testing.T, s *scene, status string) {
	t.Helper()
	session := &v1alpha1.AgentSession{ObjectMeta: metav1.ObjectMeta{Namespace: s.home.session.Namespace, Name: s.home.session.Name}}
	if err := admin.Status().Patch(t.Context(), session, mergePatch(status)); err != nil {
		t.Fatal(err)
	}
}

func revoke(t *testing.T, s *scene, _ int) {
	patch := patchOf(map[string]any{"op": "add", "path": "/spec/revocation", "value": map[string]any{"reason": "changed my mind"}})
	if err := carla.Patch(t.Context(), s.home.grant(t, s.grant), patch); err != nil {
		t.Fatal(err)
	}
}

func changeTarget(t *testing.T, s *scene, _ int) {
	target := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.home.namespace, Name: s.name}}
	if err := admin.Patch(t.Context(), target, mergePatch(`{"spec":{"selector":{"tier":"front"}}}`)); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}
