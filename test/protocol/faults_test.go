package protocol_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/grant"
	"stepbeyond.dev/stepbeyond/policy"
)

// orders that a replica follows at a step.
const (
	exit = "exit" // die
	wait = "wait" // hold the request until the order is taken back
)

func orderFile(step grant.Step, target string) string {
	return filepath.Join(faults, string(step)+"."+target)
}

// order makes the next replica that comes to a step with a grant on the target fail there.
func order(t *testing.T, step grant.Step, target, what string) {
	t.Helper()
	// By rename: a replica must not read half an order.
	draft := orderFile(step, target) + ".draft"
	if err := os.WriteFile(draft, []byte(what), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(draft, orderFile(step, target)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { takeBack(t, step, target) })
}

func takeBack(t *testing.T, step grant.Step, target string) {
	t.Helper()
	if err := os.Remove(orderFile(step, target)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// hits counts what happened at a step: "passed", "exited" or "waited"; an empty target means all.
func hits(t *testing.T, step grant.Step, what, target string) (n int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(faults, string(step)+".hits"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		did, at, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if did == what && (target == "" || at == target) {
			n++
		}
	}
	return n
}

// A replica dies at each step of the protocol under each family of effects. The agent goes on until it has its effect or
// a final answer; the other replica and the API servers go on as they can.
//
// Proves G-5, F-1.
func TestAReplicaThatDiesAtAnyStepLeavesAtMostOneEffect(t *testing.T) {
	t.Run("steps", func(t *testing.T) {
		for _, step := range grant.Steps() {
			for _, f := range families {
				t.Run(fmt.Sprintf("%s/%s", step, f.name), func(t *testing.T) {
					t.Parallel()
					newScene(t, f).survive(t, step)
				})
			}
		}
	})
	for _, step := range grant.Steps() {
		passed, died := hits(t, step, "passed", ""), hits(t, step, "exited", "")
		t.Logf("%-9s passed %d times, a replica died there %d times", step, passed, died)
		if passed == 0 || died < len(families) {
			t.Errorf("step %s was passed %d times and a replica died there %d times, want once for each of %d families", step, passed, died, len(families))
		}
	}
}

// survive has a replica die at a step, and checks that the agent gets its one effect all the same.
func (s *scene) survive(t *testing.T, step grant.Step) {
	t.Helper()
	s.dieAt(t, step)
	effects := s.count(t)
	if effects == 0 {
		s.persist(t)
	}
	end := s.verify(t)
	if end.effects != 1 && !strings.Contains(end.outcomes, string(v1alpha1.UseUnknown)) {
		t.Errorf("%d effects, want the approved one: %s", end.effects, describe(s.home.grant(t, s.grant)))
	}
	t.Logf("%-9s %-7s effects before the next try %d, in all %d; uses: %s", step, s.family.name, effects, end.effects, end.outcomes)
	s.clear(t)
}

// A connection leaves nothing that could be looked for later: its use is spent when it is reserved, and shown as such.
//
// Proves G-5.
func TestAReplicaThatDiesLeavesAConnectionAtMostOneAttempt(t *testing.T) {
	h := at(t, "attacks")
	for step, want := range map[grant.Step]string{
		grant.StepReserving: "", grant.StepReserved: string(policy.ReasonGrantUsed), grant.StepChecked: string(policy.ReasonGrantUsed),
	} {
		t.Run(string(step), func(t *testing.T) {
			name := "people-" + string(step)
			must(t, pod(h.namespace, name))
			connect := func(ctx context.Context, a *actor) error {
				options := &corev1.PodExecOptions{Command: []string{"date"}, Stdout: true}
				err := a.core.CoreV1().RESTClient().Post().Namespace(h.namespace).Resource("pods").Name(name).SubResource("exec").
					VersionedParams(options, clientgoscheme.ParameterCodec).Do(ctx).Error()
				if apierrors.IsBadRequest(err) {
					return nil // past admission; then there is no kubelet
				}
				return err
			}
			g := h.approved(t, connect)
			order(t, step, name, exit)
			eventually(t, func() error {
				if hits(t, step, "exited", name) > 0 {
					return nil
				}
				if got := understand(connect(t.Context(), h.agents[0])); got.succeeded() {
					t.Fatal("the connection passed the step")
				}
				return fmt.Errorf("no replica has died at %s", step)
			})
			if got := h.sent(t, 1, connect); got.word != want {
				t.Errorf("once more: %q %s, want %q", got.word, got.message, want)
			}
			if diff := cmp.Diff([]v1alpha1.UseOutcome{v1alpha1.UseConsumed}, outcomesOf(h.grant(t, g.Name))); diff != "" {
				t.Errorf("uses (-want +got):\n%s", diff)
			}
		})
	}
}

// dieAt has a replica die at a step of the scene's grant. After it the grant is approved.
func (s *scene) dieAt(t *testing.T, step grant.Step) {
	t.Helper()
	asking := step == grant.StepAsking || step == grant.StepAsked
	if !asking {
		s.approve(t)
	}
	order(t, step, s.name, exit)
	eventually(t, func() error {
		if hits(t, step, "exited", s.name) > 0 {
			return nil
		}
		if asking {
			// A question that was written without an answer in time is not asked again.
			for _, g := range grantsOn(t, s.home.namespace, s.name) {
				if err := client.IgnoreNotFound(admin.Delete(t.Context(), &g)); err != nil {
					return err
				}
			}
		}
		// Settling comes by itself after the effect, in the replica that leads.
		if settles := step == grant.StepSettling || step == grant.StepSettled; !settles || s.count(t) == 0 {
			// The replica that died for another scene may have had this scene's use in its hands.
			if s.try(t, 0).word == string(policy.ReasonGrantInUse) {
				s.settleLater(t)
			}
		}
		return fmt.Errorf("no replica has died at %s", step)
	})
	if asking {
		s.approve(t)
	}
}
