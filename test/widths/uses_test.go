package widths_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
)

// consumed waits until every use of a grant is settled, and wants this many that had their effect.
func consumed(t *testing.T, g *v1alpha1.PermissionGrant, want int) *v1alpha1.PermissionGrant {
	t.Helper()
	var now *v1alpha1.PermissionGrant
	eventually(t, func() error {
		now = grant(t, g.Namespace, g.Name)
		got := 0
		for i := range now.Status.Uses {
			if now.Status.Uses[i].Outcome == v1alpha1.UseConsumed {
				got++
			}
		}
		if got != want || len(now.Status.Uses) != want {
			return fmt.Errorf("%d of %d uses had their effect, want %d: %+v", got, len(now.Status.Uses), want, now.Status.Uses)
		}
		return nil
	})
	return now
}

// Proves G-2, G-5: a time box covers the objects that its pattern matches, one use each, and nothing when they are spent.
func TestATimeBoxCoversWhatItsPatternMatchesUntilItsUsesAreSpent(t *testing.T) {
	h := home(t, "boxed")
	for _, name := range []string{"web-0", "web-1", "web-2", "web-3", "api-0"} {
		must(t, configMap(h.Namespace, name))
	}
	asked := ask(t, h, remove(configMap(h.Namespace, "web-0")))
	g := carla.approves(t, asked, fields{"type": "TimeBoxed", "durationSeconds": 300, "uses": 3, "match": fields{"name": "web-*"}})
	if g.Status.Target != "delete cm/web-* (3 uses)" || g.Status.Approvals != "1/1" || *g.Status.UsesLeft != 3 || g.Status.ExpirationTime == nil {
		t.Errorf("status %+v, want target, approvals, uses and end of the time box", g.Status)
	}
	if lasts := g.Status.ExpirationTime.Sub(g.Spec.Decisions[0].DecidedTime.Time).Seconds(); lasts != 300 {
		t.Errorf("it lasts %.0f s from the approval, want 300", lasts)
	}
	uses(t, h, remove(configMap(h.Namespace, "web-1")))
	asksAnew(t, h, g, remove(configMap(h.Namespace, "api-0")))
	uses(t, h, remove(configMap(h.Namespace, "web-0")))
	uses(t, h, remove(configMap(h.Namespace, "web-2")))
	spent := becomes(t, consumed(t, g, 3), v1alpha1.GrantExhausted)
	for i, name := range []string{"web-1", "", "web-2"} {
		if use := spent.Status.Uses[i]; use.Name != name || use.Digest == "" {
			t.Errorf("use %d is of %q with digest %q, want %q", use.Index, use.Name, use.Digest, name)
		}
	}
	asksAnew(t, h, g, remove(configMap(h.Namespace, "web-3")))
}

// Proves G-5: operations on several objects at once take a use each, and never more than there are.
func TestParallelOperationsTakeAUseEach(t *testing.T) {
	const objects = 8
	h := home(t, "parallel")
	for i := range objects {
		must(t, configMap(h.Namespace, fmt.Sprintf("web-%d", i)))
	}
	asked := ask(t, h, remove(configMap(h.Namespace, "web-0")))
	g := carla.approves(t, asked, fields{"type": "TimeBoxed", "durationSeconds": 300, "match": fields{"name": "web-*"}})
	var (
		all    sync.WaitGroup
		errs   [objects]error
		passed int
	)
	for i := range objects {
		all.Go(func() {
			// A replica that has no time refuses, and says to run the command again.
			for range 5 {
				errs[i] = remove(configMap(h.Namespace, fmt.Sprintf("web-%d", i)))(t.Context(), h.Agent)
				if causeOf(errs[i], "Reason") != "Undecided" {
					return
				}
			}
		})
	}
	all.Wait()
	for i, err := range errs {
		switch {
		case err == nil:
			passed++
		case grantOf(err) == "" || grantOf(err) == g.Name:
			t.Errorf("web-%d: %v, want its effect or a question of its own", i, err)
		}
	}
	if passed != maxUses {
		t.Errorf("%d of %d passed, want the %d that there are uses for", passed, objects, maxUses)
	}
	becomes(t, consumed(t, g, maxUses), v1alpha1.GrantExhausted)
	var left corev1.ConfigMapList
	if err := shared.Admin.List(t.Context(), &left, client.InNamespace(h.Namespace)); err != nil {
		t.Fatal(err)
	}
	still := slices.DeleteFunc(left.Items, func(c corev1.ConfigMap) bool { return !strings.HasPrefix(c.Name, "web-") })
	if len(still) != objects-maxUses {
		t.Errorf("%d objects are still there, want %d", len(still), objects-maxUses)
	}
}

// Proves G-2: an answer for the session covers other changes of the same object, and nothing else: no other object, verb,
// manner or reason.
func TestAnAnswerForTheSessionCoversTheSameVerbOnTheSameObject(t *testing.T) {
	h := home(t, "session-wide")
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "web"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}},
	}}
	other := web.DeepCopy()
	other.Name = "api"
	must(t, web.DeepCopy(), other.DeepCopy())
	selects := func(s *corev1.Service, app string) request {
		return merge(s, `{"spec":{"selector":{"app":"`+app+`"}}}`)
	}
	asked := ask(t, h, selects(web, "canary"))
	g := carla.approves(t, asked, fields{"type": "Session", "uses": 4})
	uses(t, h, selects(web, "canary"))
	uses(t, h, selects(web, "green"))
	uses(t, h, selects(web, "blue"))
	consumed(t, g, 3)
	t.Run("another object", func(t *testing.T) { asksAnew(t, h, g, selects(other, "green")) })
	t.Run("another verb", func(t *testing.T) { asksAnew(t, h, g, remove(web)) })
	t.Run("another reason", func(t *testing.T) {
		asksAnew(t, h, g, merge(web, `{"spec":{"type":"NodePort","selector":{"app":"red"}}}`))
	})
	if now := grant(t, g.Namespace, g.Name); *now.Status.UsesLeft != 1 {
		t.Errorf("%d uses left, want 1: what is not covered takes none", *now.Status.UsesLeft)
	}
}

// Proves G-2.
func TestAnotherMannerOfDeletingIsNotCovered(t *testing.T) {
	h := home(t, "manners")
	must(t, configMap(h.Namespace, "web-0"), configMap(h.Namespace, "web-1"))
	g := carla.approves(t, ask(t, h, remove(configMap(h.Namespace, "web-0"))), fields{"type": "TimeBoxed", "durationSeconds": 300, "match": fields{"name": "web-*"}})
	asksAnew(t, h, g, remove(configMap(h.Namespace, "web-1"), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	uses(t, h, remove(configMap(h.Namespace, "web-1")))
}

// Proves G-2: a collection names no object, so no approval covers its deletion.
func TestADeletionOfACollectionUsesNoApproval(t *testing.T) {
	h := home(t, "collections")
	must(t, configMap(h.Namespace, "web-0"), configMap(h.Namespace, "web-1"))
	g := carla.approves(t, ask(t, h, remove(configMap(h.Namespace, "web-0"))), fields{"type": "TimeBoxed", "durationSeconds": 300, "match": fields{"name": "web-*"}})
	err := h.Agent.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(h.Namespace))
	if err == nil {
		t.Fatal("the collection was deleted")
	}
	if now := grant(t, g.Namespace, g.Name); len(now.Status.Uses) != 0 {
		t.Errorf("uses %+v, want none", now.Status.Uses)
	}
}

// Proves G-2: patterns of pods and of commands hold together.
func TestATimeBoxOfCommandsCoversNoOtherCommand(t *testing.T) {
	h := home(t, "execs")
	for _, name := range []string{"web-0", "web-1", "api-0"} {
		must(t, pod(h.Namespace, name))
	}
	exec := func(pod string, command ...string) request { return execute(h.Namespace, pod, command...) }
	asked := ask(t, h, exec("web-0", "cat", "/etc/nginx/nginx.conf"))
	g := carla.approves(t, asked, fields{"type": "TimeBoxed", "durationSeconds": 300, "match": fields{"name": "web-*", "commands": []string{"ss", "cat /etc/nginx/*"}}})
	if g.Status.Target != "exec pod/web-* (5 uses)" {
		t.Errorf("target %q", g.Status.Target)
	}
	uses(t, h, exec("web-1", "ss"))
	uses(t, h, exec("web-1", "cat", "/etc/nginx/mime.types"))
	for name, send := range map[string]request{
		"another pod":       exec("api-0", "ss"),
		"another command":   exec("web-1", "sh"),
		"an argument more":  exec("web-1", "ss", "-K"),
		"the folder above":  exec("web-1", "cat", "/etc/nginx/../shadow"),
		"words of one word": exec("web-1", "cat /etc/nginx/a"),
	} {
		t.Run(name, func(t *testing.T) { asksAnew(t, h, g, send) })
	}
	consumed(t, g, 2)
}

// Proves G-7: one answer answers the questions that it covers, and their agent goes on under it.
func TestAWiderAnswerAnswersItsTwins(t *testing.T) {
	h := home(t, "twins")
	for _, name := range []string{"web-0", "web-1", "api-0"} {
		must(t, configMap(h.Namespace, name))
	}
	asked := ask(t, h, remove(configMap(h.Namespace, "web-0")))
	twin := ask(t, h, remove(configMap(h.Namespace, "web-1")))
	stranger := ask(t, h, remove(configMap(h.Namespace, "api-0")))
	g := carla.approves(t, asked, fields{"type": "TimeBoxed", "durationSeconds": 300, "match": fields{"name": "web-*"}})
	closed := becomes(t, twin, v1alpha1.GrantSuperseded)
	if closed.Status.Reason != v1alpha1.ReasonCoveredByWiderAnswer || closed.Status.CoveredBy != g.Name {
		t.Errorf("closed for %s by %q, want by %s", closed.Status.Reason, closed.Status.CoveredBy, g.Name)
	}
	if out, err := carla.kubectl(t, "-n", h.Namespace, "describe", "permissiongrant", twin.Name); err != nil || !strings.Contains(out, "Covered by the wider approval of permissiongrant/"+g.Name) {
		t.Errorf("%v: %s", err, out)
	}
	uses(t, h, remove(configMap(h.Namespace, "web-1")))
	consumed(t, g, 1)
	if now := grant(t, h.Namespace, stranger.Name); now.Status.State != v1alpha1.GrantPending {
		t.Errorf("the question about another object is %s", now.Status.State)
	}
}

// Proves G-9: of several approvers' widths what all of them gave counts.
func TestOfSeveralApproversTheNarrowestCounts(t *testing.T) {
	h := homeUnder(t, "several", pair)
	must(t, configMap(h.Namespace, "web-0"), configMap(h.Namespace, "web-1"))
	asked := ask(t, h, remove(configMap(h.Namespace, "web-0")))
	wide := fields{"type": "TimeBoxed", "durationSeconds": 300, "match": fields{"name": "web-*"}}
	if out, err := carla.patches(t, asked, answerPatch(asked, v1alpha1.VerdictApprove, wide)); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	g := ben.approves(t, asked, nil)
	if *g.Status.UsesLeft != 1 || g.Status.Target != "delete cm/web-0" {
		t.Errorf("%d uses of %q, want the one exact operation", *g.Status.UsesLeft, g.Status.Target)
	}
	asksAnew(t, h, g, remove(configMap(h.Namespace, "web-1")))
	uses(t, h, remove(configMap(h.Namespace, "web-0")))
}

// childOf is a session that the agent's own workload works in.
func childOf(t *testing.T, h *cluster.Home) client.Client {
	t.Helper()
	template := agentDeployment(h.Namespace, "child")
	if err := h.Agent.Create(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	podName := ""
	eventually(t, func() error {
		var sessions v1alpha1.AgentSessionList
		if err := shared.Admin.List(t.Context(), &sessions, client.InNamespace(h.Namespace)); err != nil {
			t.Fatal(err)
		}
		for i := range sessions.Items {
			if s := &sessions.Items[i]; s.Spec.Parent != nil && s.Status.State == v1alpha1.SessionActive && len(s.Status.LivePods) == 1 {
				podName = s.Status.LivePods[0].Name
				return nil
			}
		}
		return fmt.Errorf("no child among %d sessions", len(sessions.Items))
	})
	token, err := shared.Env.ServiceAccountToken(t.Context(), h.Namespace, "agent", podName)
	if err != nil {
		t.Fatal(err)
	}
	child, err := client.New(shared.Env.Token(token), client.Options{Scheme: shared.Admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return child
}

// Proves G-2, G-3: what was given to a session is not its child's.
func TestAChildDoesNotInheritAWiderAnswer(t *testing.T) {
	h := home(t, "families")
	must(t, configMap(h.Namespace, "web-0"), configMap(h.Namespace, "web-1"))
	child := childOf(t, h)
	g := carla.approves(t, ask(t, h, remove(configMap(h.Namespace, "web-0"))), fields{"type": "TimeBoxed", "durationSeconds": 300, "match": fields{"name": "web-*"}})
	err := child.Delete(t.Context(), configMap(h.Namespace, "web-1"), client.PropagationPolicy(metav1.DeletePropagationBackground))
	if name := grantOf(err); name == "" || name == g.Name {
		t.Errorf("the child: %v, want a question of its own", err)
	}
	uses(t, h, func(ctx context.Context, a *cluster.Actor) error {
		return remove(configMap(h.Namespace, "web-1"))(ctx, a)
	})
}
