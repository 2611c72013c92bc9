package protocol_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/policy"
)

// sent sends a request until its answer is no passing refusal.
func (h *home) sent(t *testing.T, server int, r request) (got answer) {
	t.Helper()
	eventually(t, func() error {
		if got = understand(r(t.Context(), h.agents[server])); got.passing() {
			return fmt.Errorf("%s %s", got.word, got.message)
		}
		return nil
	})
	return got
}

// An approval of one change is no approval of it on an object that the agent has changed before, at either API server,
// however little time lies between the two.
//
// Proves G-2.
func TestAChangeThatWasApprovedIsNotApprovedOnAnotherObject(t *testing.T) {
	h := at(t, "attacks")
	for _, alter := range []bool{false, true} {
		for round := range 6 {
			t.Run(fmt.Sprintf("altered %v, round %d", alter, round), func(t *testing.T) {
				target := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: fmt.Sprintf("own-%v-%d", alter, round)}}
				made := target.DeepCopy()
				made.Spec = corev1.ServiceSpec{Selector: map[string]string{"app": "harmless"}, Ports: []corev1.ServicePort{{Port: 80}}}
				if got := h.sent(t, 0, func(ctx context.Context, a *actor) error {
					return client.IgnoreAlreadyExists(a.Create(ctx, made.DeepCopy()))
				}); !got.succeeded() {
					t.Fatalf("the agent's own Service: %q %s", got.word, got.message)
				}
				expose := func(ctx context.Context, a *actor) error {
					return a.Patch(ctx, target.DeepCopy(), mergePatch(`{"spec":{"type":"NodePort"}}`))
				}
				g := h.approved(t, expose)
				if alter {
					if got := h.sent(t, round%2, func(ctx context.Context, a *actor) error {
						return a.Patch(ctx, target.DeepCopy(), mergePatch(`{"spec":{"selector":{"app":"database"}}}`))
					}); !got.succeeded() {
						t.Fatalf("the agent alters its own Service: %q %s", got.word, got.message)
					}
				}
				got := h.sent(t, (round+1)%2, expose)
				switch {
				case !alter && !got.succeeded():
					t.Errorf("the approved change: %q %s", got.word, got.message)
				case alter && got.word != string(policy.ReasonGrantDigestMismatch):
					t.Errorf("the approved change of what was altered: %q %s, want %s", got.word, got.message, policy.ReasonGrantDigestMismatch)
				}
				if uses := h.grant(t, g.Name).Status.Uses; (len(uses) > 0) == alter {
					t.Errorf("uses %+v", uses)
				}
				stored := &corev1.Service{}
				if err := admin.Get(t.Context(), client.ObjectKeyFromObject(target), stored); err != nil {
					t.Fatal(err)
				}
				if exposed := stored.Spec.Type == corev1.ServiceTypeNodePort; exposed == alter {
					t.Errorf("the Service is of type %s and selects %v", stored.Spec.Type, stored.Spec.Selector)
				}
			})
		}
	}
}

// Another controller reverts what was approved; doing it once more needs a new question, and the new answer is enough.
//
// Proves G-5, G-4.
func TestWhatIsRevertedNeedsANewQuestion(t *testing.T) {
	s := newScene(t, familyOf(t, "patch").in("attacks"))
	s.approve(t)
	first := s.grant
	s.persist(t)
	if n := s.count(t); n != 1 { // and it has been reverted
		t.Fatalf("%d effects, want one", n)
	}
	s.settled(t)
	for server := range s.home.agents {
		got := s.home.sent(t, server, s.request)
		if got.succeeded() || got.grant != first+"-2" {
			t.Errorf("API server %d: %q %s, want the question %s-2", server+1, got.word, got.message, first)
		}
	}
	s.home.approve(t, s.home.grant(t, first+"-2"))
	s.grant = first + "-2"
	s.persist(t)
	if n := s.count(t); n != 2 {
		t.Errorf("%d effects of two approvals", n)
	}
	s.clear(t)
}
