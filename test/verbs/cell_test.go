package verbs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/coverage"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
	"stepbeyond.dev/stepbeyond/policy"
)

// mostRedone bounds how often a kind meets a manager without time.
const mostRedone = 5

// trial is the work of one agent on one kind.
type trial struct {
	*subject
	agent *agent
	table *table
	// live is the object in ben's form; nil while there is none.
	live *unstructured.Unstructured
	// told tells that a question of this kind was answered with the printed command.
	told bool
	// questions by what was asked about which object.
	questions map[string]question
}

// question is the part of a grant's name that all questions about one digest share, and the verb that asked first.
type question struct {
	stem, verb string
	change     []string // that an approver is shown
}

// stem of pg-abc-2 is pg-abc.
func stem(grant string) string {
	parts := strings.SplitN(grant, "-", 3)
	return strings.Join(parts[:min(2, len(parts))], "-")
}

// try runs one verb, and once more for every approval that it needs.
func (w *trial) try(t *testing.T, v verb) {
	t.Helper()
	w.ready(t, v)
	was := w.live
	if v.before != nil {
		was = must(w.prepare(t.Context(), v.before))(t)
	}
	c := v.line(t, was)
	first := w.agent.kubectl(t, c)
	var grants []string
	last, unlucky := first, first.unlucky
	for last.pending() && len(grants) < len(v.operations) && !slices.Contains(grants, last.grant) {
		w.approve(t, w.open(t, last.grant))
		grants = append(grants, last.grant)
		last = w.agent.kubectl(t, c)
		unlucky += last.unlucky
	}
	if unlucky > 0 && inUse.MatchString(last.output) && w.redone < mostRedone {
		// The manager had no time after it had reserved the use: the answer is that of minutes later, or another object.
		w.redone++
		w.live = nil
		w.try(t, v)
		return
	}
	class := max(first.class, last.class)
	w.expectClass(t, v, class)
	switch {
	case class == policy.ClassForbidden:
		if !first.failed || len(grants) > 0 {
			t.Fatalf("a FORBIDDEN command was let through, or asked %v:\n%s", grants, first.output)
		}
		w.expectEffect(t, v, was, false)
	case last.failed:
		t.Fatalf("after %d approvals of %v:\n%s\nat first:\n%s", len(grants), grants, last.output, first.output)
	default:
		w.expectEffect(t, v, was, true)
	}
	if class == policy.ClassAsk && len(grants) == 0 {
		t.Fatalf("ASK, and nothing was asked:\n%s", first.output)
	}
	w.table.done(w.kind, v, class, len(grants), last.requests)
	if len(grants) == 0 {
		return
	}
	w.expectOneQuestion(t, v, was, grants[0])
	var spent []*v1alpha1.PermissionGrant
	for _, name := range grants {
		spent = append(spent, w.spent(t, name))
	}
	w.again(t, v, c, was, spent)
}

// ready brings the object into ben's form, or away for a verb that makes it. Uses on a kind that the manager may not
// read stay in use for a while, so each verb gets an object of its own.
func (w *trial) ready(t *testing.T, v verb) {
	t.Helper()
	var err error
	switch {
	case v.effect == effectMade:
		err, w.live = w.remove(t.Context()), nil
	case w.live == nil || !w.readable:
		if err = w.remove(t.Context()); err == nil {
			w.live, err = w.make(t.Context())
		}
	default:
		w.live, err = w.restore(t.Context(), w.live)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// again lets ben undo the effect and the agent run its command a third time: no used approval opens it.
func (w *trial) again(t *testing.T, v verb, c command, was *unstructured.Unstructured, spent []*v1alpha1.PermissionGrant) {
	t.Helper()
	if v.effect == effectMade {
		if err := w.remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	} else {
		was = must(w.restore(t.Context(), was))(t)
		if v.before == nil {
			w.live = was
		}
	}
	third := w.agent.kubectl(t, c)
	if !third.failed || !webhookSpoke.MatchString(third.output) {
		t.Fatalf("a third run was not refused:\n%s", third.output)
	}
	if w.readable && !third.pending() {
		t.Errorf("a third run asks nothing:\n%s", third.output)
	}
	w.expectEffect(t, v, was, false)
	for _, before := range spent {
		after := w.grant(t, before.Name)
		if third.pending() && third.grant == before.Name || len(after.Status.Uses) != 1 ||
			len(after.Status.Uses[0].Attempts) != len(before.Status.Uses[0].Attempts) {
			t.Errorf("a third run took %s, uses %+v:\n%s", before.Name, after.Status.Uses, third.output)
		}
	}
}

// expectClass compares with the matrix, which has the plainest request: content can only raise a class.
func (w *trial) expectClass(t *testing.T, v verb, got policy.Class) {
	t.Helper()
	var least policy.Class
	for _, operation := range v.operations {
		row, err := rowOf(w.kind.resource.GroupResource(), v.subresource, operation)
		if err != nil {
			t.Fatal(err)
		}
		class := row.Foreign
		if row.Gate == coverage.GateNone && got != 0 {
			t.Errorf("class %s of what is not gated", got)
		}
		least = max(least, class)
	}
	if got < least {
		t.Errorf("class %s, want at least %s", got, least)
	}
}

// expectEffect looks whether what a verb does has been done to the object that was there.
func (w *trial) expectEffect(t *testing.T, v verb, was *unstructured.Unstructured, want bool) {
	t.Helper()
	live := must(w.get(t.Context()))(t)
	got := false
	switch v.effect {
	case effectMade:
		got = live != nil
	case effectChanged:
		if len(v.change) == 0 {
			return // it shows nowhere
		}
		got = live != nil && contains(live.Object, v.change)
	case effectAnew:
		got = live != nil && live.GetUID() != was.GetUID() && contains(live.Object, v.change)
	case effectGone:
		got = live == nil || live.GetUID() != was.GetUID()
	}
	if got != want {
		t.Fatalf("the effect is there: %t, want %t; the object:\n%v", got, want, live)
	}
}

// expectOneQuestion: every way to do the same to the same object asks the same.
func (w *trial) expectOneQuestion(t *testing.T, v verb, was *unstructured.Unstructured, grant string) {
	t.Helper()
	about := v.same
	if was == nil && (!w.readable || w.redone > 0) {
		return // each of them makes another object
	}
	if was != nil {
		about += " " + string(was.GetUID())
	}
	asked := question{stem(grant), v.name, w.grant(t, grant).Spec.Request.Change}
	before, ok := w.questions[about]
	if !ok {
		w.questions[about] = asked
		return
	}
	w.table.ways(w.kind, v.same, before.verb, v.name)
	if before.stem != asked.stem {
		t.Errorf("%s asks %s %q, and %s asks %s %q about %s", v.name, asked.stem, asked.change, before.verb, before.stem, before.change, about)
	}
}

// alike has every verb that makes the same change ask about one object, and approves none.
func (w *trial) alike(t *testing.T, verbs []verb) {
	t.Helper()
	for _, v := range verbs {
		if v.effect != effectChanged || v.same != encoded(t, w.kind.Change) {
			continue
		}
		if w.live == nil {
			w.ready(t, v)
		}
		asked := w.agent.kubectl(t, v.line(t, w.live))
		if asked.class != policy.ClassAsk {
			return // it is tried below
		}
		if asked.pending() {
			w.expectOneQuestion(t, v, w.live, asked.grant)
		} else {
			t.Errorf("%s does not ask:\n%s", v.name, asked.output)
		}
	}
}

func (w *trial) grant(t *testing.T, name string) *v1alpha1.PermissionGrant {
	t.Helper()
	g := &v1alpha1.PermissionGrant{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: w.agent.namespace, Name: name}, g); err != nil {
		t.Fatal(err)
	}
	return g
}

// open returns the one question that is open about an operation: a newer one closes the older.
func (w *trial) open(t *testing.T, name string) *v1alpha1.PermissionGrant {
	t.Helper()
	g := w.grant(t, name)
	at := &g.Spec.Request.Operation
	if err := eventually(t.Context(), func() error {
		var all v1alpha1.PermissionGrantList
		if err := admin.List(t.Context(), &all, client.InNamespace(w.agent.namespace)); err != nil {
			return err
		}
		var open []string
		for i := range all.Items {
			other := &all.Items[i]
			state, target := other.Status.State, &other.Spec.Request.Operation.Target
			usable := state == v1alpha1.GrantApproved && len(other.Status.Uses) == 0
			if (state == "" || state == v1alpha1.GrantPending || usable) && other.Spec.Request.Operation.Verb == at.Verb &&
				target.Group == at.Target.Group && target.Resource == at.Target.Resource &&
				target.Subresource == at.Target.Subresource && target.Name == at.Target.Name {
				open = append(open, other.Name)
			}
		}
		if len(open) != 1 || open[0] != name {
			return fmt.Errorf("open questions %v, want %s", open, name)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	return g
}

// approve answers as carla, the first time of a kind with the command that the grant prints.
func (w *trial) approve(t *testing.T, g *v1alpha1.PermissionGrant) {
	t.Helper()
	if w.told {
		patch := encoded(t, []operation{{"add", "/spec/decisions/-", map[string]any{"verdict": v1alpha1.VerdictApprove, "shownDigest": g.Spec.Request.Digest}}})
		if err := carla.Patch(t.Context(), g.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
			t.Fatalf("carla approves %s: %v", g.Name, err)
		}
		return
	}
	w.told = true
	if err := eventually(t.Context(), func() error {
		if g = w.grant(t, g.Name); g.Status.ApproveCommand == "" {
			return fmt.Errorf("%s prints no command to approve it", g.Name)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	kubectl, err := env.Asset("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", g.Status.ApproveCommand)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+carlaKubeconfig, "PATH="+filepath.Dir(kubectl)+":"+os.Getenv("PATH"), "KUBECACHEDIR="+filepath.Join(plane.Dir(), "kubectl-cache"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", g.Status.ApproveCommand, err, out)
	}
	w.table.told()
}

// spent waits until the use of a grant has its outcome. What the manager may not read it cannot know.
func (w *trial) spent(t *testing.T, name string) (g *v1alpha1.PermissionGrant) {
	t.Helper()
	if err := eventually(t.Context(), func() error {
		g = w.grant(t, name)
		text, err := json.Marshal(g.Status.Uses)
		if err != nil {
			return err
		}
		if len(g.Status.Uses) != 1 {
			return fmt.Errorf("%s is %s (%s) with uses %s, want one", name, g.Status.State, g.Status.Reason, text)
		}
		outcome := g.Status.Uses[0].Outcome
		if w.readable && (g.Status.State != v1alpha1.GrantExhausted || outcome != v1alpha1.UseConsumed) ||
			!w.readable && outcome != v1alpha1.UseReserved && outcome != v1alpha1.UseUnknown {
			return fmt.Errorf("%s is %s (%s) with uses %s", name, g.Status.State, g.Status.Reason, text)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	w.table.spent(w.agent.namespace, g)
	return g
}

// must fails the test on the error of a call.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// furnish makes what a kind needs beside its object.
func (w *trial) furnish(ctx context.Context) error {
	for _, also := range w.kind.Also {
		object := &unstructured.Unstructured{Object: filled(also, w.agent.namespace).(map[string]any)}
		if err := client.IgnoreAlreadyExists(admin.Create(ctx, object)); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
