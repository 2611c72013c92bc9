package approvals_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
)

// Proves G-2, G-5, G-7: of ten questions asked at once, each answer reaches its own operation, whatever becomes of the manager.
func TestTenQuestionsAtOnceHaveTheirOwnAnswersThroughARestart(t *testing.T) {
	h := home(t, "parallel", cluster.Profile)
	const questions = 10
	target := func(i int) client.Object { return configMap(h.Namespace, fmt.Sprintf("target-%d", i)) }
	var grants [questions]string
	var wait sync.WaitGroup
	for i := range questions {
		must(t, target(i))
		wait.Go(func() {
			err := remove(target(i))(t.Context(), h.Agent)
			for reason(err) == "Undecided" { // too busy to answer in time: the agent is told to try again
				err = remove(target(i))(t.Context(), h.Agent)
			}
			if grants[i] = grantOf(err); grants[i] == "" {
				t.Errorf("request %d asks nothing: %v", i, err)
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for i, name := range grants {
		if g := grant(t, h.Namespace, name); g.Spec.Request.Operation.Target.Name != target(i).GetName() {
			t.Fatalf("request %d about %s is told question %s about %s", i, target(i).GetName(), name, g.Spec.Request.Operation.Target.Name)
		}
	}
	verdict := func(i int) v1alpha1.Verdict {
		if i%2 == 0 {
			return v1alpha1.VerdictApprove
		}
		return v1alpha1.VerdictDeny
	}
	answerAll := func(from, to int) {
		for i := from; i < to; i++ {
			decide(t, carla, grant(t, h.Namespace, grants[i]), verdict(i))
		}
	}
	answerAll(0, questions/2)
	restart(t)
	answerAll(questions/2, questions)

	for i := range questions {
		wait.Go(func() {
			err := remove(target(i))(t.Context(), h.Agent)
			if denied := reason(err) == "GrantDenied"; (err == nil) == (verdict(i) == v1alpha1.VerdictDeny) || err != nil && !denied {
				t.Errorf("operation %d, answered %s: %v", i, verdict(i), err)
			}
		})
	}
	wait.Wait()
	for i := range questions {
		err := shared.Admin.Get(t.Context(), client.ObjectKeyFromObject(target(i)), target(i))
		if gone := apierrors.IsNotFound(err); gone != (verdict(i) == v1alpha1.VerdictApprove) {
			t.Errorf("object %d, answered %s, is gone: %v", i, verdict(i), gone)
		}
	}
}

// restart kills the manager as a node's death does, and starts it again.
func restart(t *testing.T) {
	t.Helper()
	if err := errors.Join(shared.Manager.Kill(), shared.Manager.Start(), shared.Manager.WaitReady(t.Context(), waitAtMost)); err != nil {
		t.Fatal(err)
	}
}

// reason is the word that kubectl prints of a refusal.
func reason(err error) string {
	var refused apierrors.APIStatus
	if errors.As(err, &refused) {
		return string(refused.Status().Reason)
	}
	return ""
}

// Proves G-2, G-8: what a policy ended stays ended, also when the policy is as it was; a question that nobody had answered
// stays open.
func TestAPolicyThatIsTightenedAndRelaxedRevivesNothing(t *testing.T) {
	h := home(t, "tightened", cluster.Profile)
	approved, open := configMap(h.Namespace, "approved"), configMap(h.Namespace, "open")
	must(t, approved, open)
	g := ask(t, h, remove(approved))
	decide(t, carla, g, v1alpha1.VerdictApprove)
	waiting := ask(t, h, remove(open))

	setRules := func(rules []v1alpha1.Rule) {
		if err := changePolicy(t.Context(), func(spec *v1alpha1.ClusterAgentPolicySpec) { spec.Rules = rules }); err != nil {
			t.Fatal(err)
		}
	}
	setRules([]v1alpha1.Rule{{
		Name: "ask-leases", Class: v1alpha1.RuleClassAsk, Enforcement: v1alpha1.EnforcementEnforce, Detail: "Leader election belongs to controllers.",
		Match: v1alpha1.OperationMatch{Kubernetes: []v1alpha1.KubernetesMatch{{
			Groups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []v1alpha1.Verb{v1alpha1.VerbCreate},
		}}},
	}})
	becomes(t, g, v1alpha1.GrantStale)
	setRules(nil)
	second := ask(t, h, remove(approved))
	if second.Name == g.Name || second.Spec.Request.Question != 2 {
		t.Errorf("asked again as %s, question %d; want a second question", second.Name, second.Spec.Request.Question)
	}
	if state := grant(t, g.Namespace, g.Name).Status.State; state != v1alpha1.GrantStale {
		t.Errorf("the first approval is %s, want Stale for good", state)
	}
	if state := grant(t, waiting.Namespace, waiting.Name).Status.State; state != v1alpha1.GrantPending {
		t.Errorf("the question that nobody had answered is %s, want Pending", state)
	}
	decide(t, carla, second, v1alpha1.VerdictApprove)
	eventually(t, func() error { return remove(approved)(context.WithoutCancel(t.Context()), h.Agent) })
}
