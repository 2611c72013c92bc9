package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// Proves G-2.
func TestOneChangeHasOneDigestHoweverItIsSent(t *testing.T) {
	const ns = "forms"
	h := at(t, ns)
	s := service(ns, "web")
	applied := s.DeepCopy()
	applied.TypeMeta.APIVersion, applied.TypeMeta.Kind = "v1", "Service"
	manifest, err := yaml.Marshal(applied)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := ben.kubectl(t.Context(), t, string(manifest), "apply", "-f", "-"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wanted := strings.Replace(string(manifest), "app: web", "app: canary", 1)
	var stored corev1.Service
	replaced := func(ctx context.Context, a *actor) error {
		if err := a.Get(ctx, client.ObjectKeyFromObject(s), &stored); err != nil {
			return err
		}
		stored.Spec.Selector = map[string]string{"app": "canary"}
		return a.Update(ctx, &stored)
	}
	raw := func(kind types.PatchType, text string, options ...client.PatchOption) func(context.Context, *actor) error {
		return func(ctx context.Context, a *actor) error {
			return a.Patch(ctx, s.DeepCopy(), client.RawPatch(kind, []byte(text)), options...)
		}
	}
	// Before the first, the object was kubectl's, with its annotation; nothing below changes it, because nothing is approved.
	first := h.ask(t, raw(types.MergePatchType, `{"spec":{"selector":{"app":"canary"}}}`))
	for name, request := range map[string]func(context.Context, *actor) error{
		"a strategic merge patch": raw(types.StrategicMergePatchType, `{"spec":{"selector":{"app":"canary"}}}`),
		"a JSON patch":            raw(types.JSONPatchType, `[{"op":"replace","path":"/spec/selector/app","value":"canary"}]`),
		"a server-side apply":     raw(types.ApplyPatchType, wanted, client.FieldOwner("agent"), client.ForceOwnership),
		"a replace":               replaced,
	} {
		t.Run(name, func(t *testing.T) {
			got := h.agent.try(t, request)
			if diff := cmp.Diff(attempt{outcome: pending("PermissionPending"), grant: first.Name}, attempt{outcome: got.outcome, grant: got.grant}, cmp.AllowUnexported(attempt{})); diff != "" {
				t.Errorf("answer (-want +got):\n%s%s", diff, got.message)
			}
		})
	}
	t.Run("kubectl apply", func(t *testing.T) {
		out, err := h.agent.kubectl(t.Context(), t, wanted, "apply", "-f", "-")
		if err == nil || !strings.Contains(out, "still waits in permissiongrant/"+first.Name+" ") {
			t.Errorf("%v: %s", err, out)
		}
	})
	if n := len(questionsIn(t, ns)); n != 1 {
		t.Fatalf("%d questions, want one", n)
	}
	h.decide(t, carla, first, v1alpha1.VerdictApprove, nil)
	t.Run("and any of them uses the approval", func(t *testing.T) {
		if out, err := h.agent.kubectl(t.Context(), t, wanted, "apply", "-f", "-"); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		g := h.becomes(t, first.Name, v1alpha1.GrantExhausted, v1alpha1.ReasonEffectSeen)
		expectUse(t, g, v1alpha1.UseConsumed, "carries the change")
	})
}

// Proves G-2.
func TestAScaleAndAChangeOfReplicasAreOneQuestion(t *testing.T) {
	const ns = "forms"
	h := at(t, ns)
	must(t, deployment(ns, "shop"))
	awaitRollout(t, ns, "shop")
	first := h.ask(t, merge(&appsv1.Deployment{ObjectMeta: configMap(ns, "shop").ObjectMeta}, `{"spec":{"replicas":0}}`))
	out, err := h.agent.kubectl(t.Context(), t, "", "-n", ns, "scale", "deployment", "shop", "--replicas=0")
	if err == nil || !strings.Contains(out, "still waits in permissiongrant/"+first.Name+" ") {
		t.Errorf("kubectl scale: %v: %s", err, out)
	}
}

func expectUse(t *testing.T, g *v1alpha1.PermissionGrant, outcome v1alpha1.UseOutcome, effect string) {
	t.Helper()
	if len(g.Status.Uses) != 1 || g.Status.Uses[0].Outcome != outcome || !strings.Contains(g.Status.Uses[0].Effect, effect) {
		t.Errorf("uses %+v, want one that is %s: %s", g.Status.Uses, outcome, effect)
	}
}

// effectTest is one approved operation, and how its effect shows.
type effectTest struct {
	name    string
	request func(context.Context, *actor) error
	effect  string
}

// Proves G-5, K-1.
func TestAUseIsConsumedWhenItsEffectIsSeen(t *testing.T) {
	const ns = "effects"
	h := at(t, ns)
	foreign := configMap(ns, "foreign")
	guarded := configMap(ns, "guarded")
	guarded.Finalizers = []string{"acme.example/keep"}
	pod := agentPod(ns, "foreign-0", "default", nil)
	must(t, foreign, guarded, service(ns, "web"), pod)
	tests := []effectTest{
		{"an update", merge(service(ns, "web"), `{"spec":{"selector":{"app":"canary"}}}`), "carries the change"},
		{"a deletion", remove(foreign), "is gone"},
		{"a deletion that a finalizer holds", remove(guarded), "is deleting"},
		{"a creation", create(ingress(ns, "route")), "was made"},
		// Without a kubelet the connection fails after admission; what a command did nobody could tell anyway.
		{"a connection", execute(ns, "foreign-0", "date"), "connection opened"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := h.approved(t, tt.request)
			got := h.agent.try(t, tt.request)
			if want := allowed("ASK", "Granted"); (outcome{Class: got.Class, Verdict: got.Verdict, Reason: got.Reason}) != want {
				t.Fatalf("the approved request: %+v %s", got.outcome, got.message)
			}
			g = h.becomes(t, g.Name, v1alpha1.GrantExhausted, v1alpha1.ReasonEffectSeen)
			expectUse(t, g, v1alpha1.UseConsumed, tt.effect)
			if used := *g.Status.UsesLeft; used != 0 {
				t.Errorf("%d uses left", used)
			}
		})
	}
	t.Run("an eviction is a deletion of its pod", func(t *testing.T) {
		g := h.approved(t, evict(ns, "foreign-0"))
		if got := h.agent.try(t, evict(ns, "foreign-0")); got.outcome != allowed("ASK", "Granted") {
			t.Errorf("the approved eviction: %+v %s", got.outcome, got.message)
		}
		h.becomes(t, g.Name, v1alpha1.GrantExhausted, v1alpha1.ReasonEffectSeen)
	})
}

// Proves G-6, G-7.
func TestADeniedOperationIsNotAskedAgainForAWhile(t *testing.T) {
	const ns = "hasty" // askAgainAfterSeconds: 5
	h := at(t, ns)
	target := configMap(ns, "denied")
	must(t, target)
	g := h.ask(t, remove(target))
	h.decide(t, carla, g, v1alpha1.VerdictDeny, map[string]any{"reason": "That one is mine."})
	h.becomes(t, g.Name, v1alpha1.GrantDenied, v1alpha1.ReasonApproverDenied)
	got := h.agent.try(t, remove(target))
	if diff := cmp.Diff(denied("ASK", "GrantDenied", "GrantDenied"), got.outcome); diff != "" {
		t.Errorf("after the denial (-want +got):\n%s%s", diff, got.message)
	}
	expectSentence(t, got.message, carlaName+" refused permissiongrant/"+g.Name)
	expectSentence(t, got.message, "That one is mine.")
	eventually(t, func() error {
		got := h.agent.try(t, remove(target))
		if got.Verdict != "Pending" || got.grant != g.Name+"-2" {
			return fmt.Errorf("%+v %s", got.outcome, got.message)
		}
		return nil
	})
}

// Proves G-6.
func TestExpiryNeverApproves(t *testing.T) {
	const ns = "hasty" // decideWithinSeconds: 5, useWithinSeconds: 5
	h := at(t, ns)
	undecided, unused := configMap(ns, "undecided"), configMap(ns, "unused")
	must(t, undecided, unused)
	first := h.ask(t, remove(undecided))
	second := h.approved(t, remove(unused))
	first = h.becomes(t, first.Name, v1alpha1.GrantExpired, v1alpha1.ReasonNotDecidedInTime)
	second = h.becomes(t, second.Name, v1alpha1.GrantExpired, v1alpha1.ReasonNotUsedInTime)
	for object, g := range map[*corev1.ConfigMap]*v1alpha1.PermissionGrant{undecided: first, unused: second} {
		got := h.agent.try(t, remove(object))
		if diff := cmp.Diff(pending("GrantExpired"), got.outcome); diff != "" {
			t.Errorf("%s: after the expiry (-want +got):\n%s%s", object.Name, diff, got.message)
		}
		expectSentence(t, got.message, "permissiongrant/"+g.Name+" ran out of time")
		if got.grant != g.Name+"-2" {
			t.Errorf("%s: asked anew as %s, want %s-2", object.Name, got.grant, g.Name)
		}
		if got := understand(carla.Patch(t.Context(), g.DeepCopy(), answer(g, v1alpha1.VerdictApprove, nil)), nil); got.Code != 403 {
			t.Errorf("%s: an answer after the expiry: %+v", object.Name, got)
		}
	}
}

// Proves G-6, G-5.
func TestARevokedApprovalIsNotUsed(t *testing.T) {
	const ns = "denied"
	h := at(t, ns)
	target := configMap(ns, "revoked")
	must(t, target)
	g := h.approved(t, remove(target))
	if err := carla.Patch(t.Context(), g.DeepCopy(), revoke(g)); err != nil {
		t.Fatal(err)
	}
	got := h.agent.try(t, remove(target)) // at once: nothing waits for a controller
	if diff := cmp.Diff(pending("GrantRevoked"), got.outcome); diff != "" {
		t.Errorf("after the revocation (-want +got):\n%s%s", diff, got.message)
	}
	expectSentence(t, got.message, "was revoked")
	h.becomes(t, g.Name, v1alpha1.GrantRevoked, v1alpha1.ReasonApprovalRevoked)
}

// Proves G-2, G-6, G-8.
func TestAChangedPolicyEndsTheApprovalForGood(t *testing.T) {
	const ns = "changing"
	h := at(t, ns)
	target, open := configMap(ns, "approved"), configMap(ns, "open")
	must(t, target, open)
	g := h.approved(t, remove(target))
	h.becomes(t, g.Name, v1alpha1.GrantApproved, v1alpha1.ReasonRequirementsMet)
	waiting := h.ask(t, remove(open))
	profile := &v1alpha1.AgentPolicy{}
	profile.Namespace, profile.Name = "stepbeyond-system", "changing"
	for _, tier := range []string{"small", "medium"} { // tightened, and relaxed again
		if err := merge(profile, fmt.Sprintf(`{"spec":{"modelTier":%q}}`, tier))(t.Context(), petra); err != nil {
			t.Fatal(err)
		}
	}
	h.becomes(t, g.Name, v1alpha1.GrantStale, v1alpha1.ReasonPolicyChanged)
	got := h.agent.try(t, remove(target))
	if diff := cmp.Diff(pending("GrantStale"), got.outcome); diff != "" {
		t.Errorf("after the change (-want +got):\n%s%s", diff, got.message)
	}
	expectSentence(t, got.message, "AgentPolicy/changing (generation 1 to 3) changed")
	if got.grant != g.Name+"-2" {
		t.Errorf("asked anew as %s, want %s-2", got.grant, g.Name)
	}
	if again := h.agent.try(t, remove(open)); again.outcome != pending("PermissionPending") || again.grant != waiting.Name {
		t.Errorf("a question that nobody has answered yet: %+v %s, want it to stay", again.outcome, again.message)
	}
}

// Proves G-2, G-6.
func TestAGrantOfAnOlderEpochIsRefused(t *testing.T) {
	const ns = "epochs"
	h := at(t, ns)
	approvedOne, pendingOne := configMap(ns, "approved"), configMap(ns, "pending")
	must(t, approvedOne, pendingOne)
	g := h.approved(t, remove(approvedOne))
	waiting := h.ask(t, remove(pendingOne))
	session := &v1alpha1.AgentSession{}
	if err := admin.Get(t.Context(), h.session, session); err != nil {
		t.Fatal(err)
	}
	if session.Status.Epoch != 1 {
		t.Fatalf("the session is in epoch %d, want 1", session.Status.Epoch)
	}
	// Stands in for steering.
	raise := client.RawPatch(types.MergePatchType, []byte(`{"status":{"epoch":2}}`))
	if err := admin.Status().Patch(t.Context(), session, raise); err != nil {
		t.Fatal(err)
	}
	h.becomes(t, g.Name, v1alpha1.GrantSuperseded, v1alpha1.ReasonEpochRaised)
	h.becomes(t, waiting.Name, v1alpha1.GrantSuperseded, v1alpha1.ReasonEpochRaised)
	var anew attempt
	eventually(t, func() error { // the webhook's cache follows
		anew = h.agent.try(t, remove(approvedOne))
		if anew.grant == g.Name {
			return fmt.Errorf("still %+v %s", anew.outcome, anew.message)
		}
		return nil
	})
	if anew.Verdict != "Pending" || anew.grant == g.Name {
		t.Errorf("in the next epoch: %+v %s", anew.outcome, anew.message)
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(approvedOne), &corev1.ConfigMap{}); err != nil {
		t.Errorf("the target of the superseded grant: %v", err)
	}
}

// Proves G-7.
func TestAboveTheCapNothingIsAskedAndReadsGoOn(t *testing.T) {
	const ns = "narrow" // maxPendingGrantsPerSession: 2
	h := at(t, ns)
	for i := range 3 {
		must(t, configMap(ns, fmt.Sprintf("target-%d", i)))
	}
	first := h.ask(t, remove(configMap(ns, "target-0")))
	h.ask(t, remove(configMap(ns, "target-1")))
	got := h.agent.try(t, remove(configMap(ns, "target-2")))
	if diff := cmp.Diff(denied("ASK", "TooManyPending", "TooManyPending"), got.outcome); diff != "" {
		t.Errorf("above the cap (-want +got):\n%s%s", diff, got.message)
	}
	expectSentence(t, got.message, "2 of 2 open questions")
	if n := len(questionsIn(t, ns)); n != 2 {
		t.Errorf("%d questions, want 2", n)
	}
	if again := h.agent.try(t, remove(configMap(ns, "target-0"))); again.outcome != pending("PermissionPending") || again.grant != first.Name {
		t.Errorf("asking the same again: %+v %s", again.outcome, again.message)
	}
	if err := h.agent.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(ns)); err != nil {
		t.Errorf("a read: %v", err)
	}
	h.decide(t, carla, first, v1alpha1.VerdictDeny, nil)
	h.ask(t, remove(configMap(ns, "target-2")))
}

// Proves G-1, G-2.
func TestADryRunAsksNothingAndUsesNothing(t *testing.T) {
	const ns = "dry"
	h := at(t, ns)
	target := configMap(ns, "target")
	must(t, target)
	dry := remove(target, client.DryRunAll)
	if got := h.agent.try(t, dry); got.outcome != allowed("ASK", "DryRun") {
		t.Errorf("a dry run of what needs approval: %+v %s", got.outcome, got.message)
	}
	if n := len(questionsIn(t, ns)); n != 0 {
		t.Errorf("the dry run asked %d questions", n)
	}
	g := h.approved(t, remove(target))
	if got := h.agent.try(t, dry); got.outcome != allowed("ASK", "DryRun") {
		t.Errorf("a dry run under an approval: %+v %s", got.outcome, got.message)
	}
	if g = h.grant(t, g.Name); len(g.Status.Uses) != 0 {
		t.Errorf("the dry run reserved a use: %+v", g.Status.Uses)
	}
	if got := h.agent.try(t, create(secret(ns, "printed"), client.DryRunAll)); got.Verdict != "Pending" {
		t.Errorf("a dry run with credentials: %+v, want it asked like the real one", got.outcome)
	}
	if got := h.agent.try(t, remove(target)); got.outcome != allowed("ASK", "Granted") {
		t.Errorf("the real one: %+v %s", got.outcome, got.message)
	}
}

// Proves G-6.
func TestAnotherChangeUnderAnApprovalIsAskedAndNamesTheDifference(t *testing.T) {
	const ns = "denied"
	h := at(t, ns)
	must(t, deployment(ns, "shop"))
	awaitRollout(t, ns, "shop")
	shop := &appsv1.Deployment{ObjectMeta: configMap(ns, "shop").ObjectMeta}
	change := func(replicas int) func(context.Context, *actor) error {
		return merge(shop, fmt.Sprintf(`{"metadata":{"finalizers":["acme.example/keep"]},"spec":{"replicas":%d}}`, replicas))
	}
	g := h.approved(t, change(6))
	got := h.agent.try(t, change(12))
	if diff := cmp.Diff(pending("GrantDigestMismatch"), got.outcome); diff != "" {
		t.Errorf("another change (-want +got):\n%s%s", diff, got.message)
	}
	expectSentence(t, got.message, "spec.replicas is 12, approved 6")
	if got := h.agent.try(t, change(6)); got.outcome != allowed("ASK", "Granted") {
		t.Errorf("the approved change: %+v %s", got.outcome, got.message)
	}
	h.becomes(t, g.Name, v1alpha1.GrantExhausted, v1alpha1.ReasonEffectSeen)
}

// Proves G-2, G-6.
func TestAnApprovalOfOneSessionIsOfNoUseToAnother(t *testing.T) {
	const ns = "strangers"
	h := at(t, ns)
	other := secondAgent(t, h, []v1alpha1.Stage{v1alpha1.StageUnderstand, v1alpha1.StagePropose, v1alpha1.StageExecute})
	target := configMap(ns, "target")
	must(t, target)
	g := h.approved(t, remove(target))
	got := other.try(t, remove(target))
	if got.outcome != pending("PermissionPending") || got.grant == g.Name {
		t.Errorf("the other session: %+v %s, want a question of its own", got.outcome, got.message)
	}
	if asks := h.grant(t, got.grant).Spec.Request; asks.Requester.Username != other.username || asks.Session.Name != "second" {
		t.Errorf("%s of session %s asks, want %s of session second", asks.Requester.Username, asks.Session.Name, other.username)
	}
	// And it decides neither its own question nor that of the other.
	for _, name := range []string{g.Name, got.grant} {
		if err := other.Patch(t.Context(), h.grant(t, name), revoke(g)); understand(err, nil).By != "stepbeyond-floor-self" {
			t.Errorf("%s writes permissiongrant %s: %v", other.username, name, err)
		}
	}
	if got := h.agent.try(t, remove(target)); got.outcome != allowed("ASK", "Granted") {
		t.Errorf("the session that was approved: %+v %s", got.outcome, got.message)
	}
}

// Proves G-1.
func TestAStageThatTheSessionLacksIsAskedForAndGrantedAlone(t *testing.T) {
	const ns = "planners"
	h := at(t, ns)
	planner := secondAgent(t, h, []v1alpha1.Stage{v1alpha1.StageUnderstand, v1alpha1.StagePropose})
	note := configMap(ns, "note")
	if got := planner.try(t, create(note, client.DryRunAll)); got.outcome != allowed("AUTO", "Allowed") {
		t.Errorf("proposing, which it may: %+v %s", got.outcome, got.message)
	}
	got := planner.try(t, create(note))
	if got.outcome != pending("PermissionPending") {
		t.Fatalf("executing, which it may not: %+v %s", got.outcome, got.message)
	}
	g := h.grant(t, got.grant)
	if g.Spec.Request.Stage != v1alpha1.StageExecute {
		t.Errorf("the question is for stage %s, want %s", g.Spec.Request.Stage, v1alpha1.StageExecute)
	}
	h.decide(t, carla, g, v1alpha1.VerdictApprove, nil)
	if got := planner.try(t, create(note)); got.outcome != allowed("ASK", "Granted") {
		t.Errorf("executing what was approved: %+v %s", got.outcome, got.message)
	}
	if got := planner.try(t, create(configMap(ns, "other"))); got.Verdict != "Pending" {
		t.Errorf("executing something else: %+v %s", got.outcome, got.message)
	}
	// The same write of a session that may execute.
	if got := h.agent.try(t, create(configMap(ns, "third"))); got.outcome != allowed("AUTO", "Allowed") {
		t.Errorf("a session with the stage: %+v %s", got.outcome, got.message)
	}
}

// secondAgent works under ServiceAccount second in a session of that name, opened by hand with the stages.
func secondAgent(t *testing.T, h *home, stages []v1alpha1.Stage) *actor {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: configMap(h.namespace, "second").ObjectMeta}
	s := session(h.namespace, "second", time.Now().Add(time.Hour))
	s.Spec.Authority.Stages = stages
	must(t, account, agentPod(h.namespace, "second-0", "second", nil), s)
	awaitSessionState(t, h.namespace, "second", v1alpha1.SessionActive)
	a, err := accountActor(t.Context(), h.namespace, "second", "second-0")
	if err != nil {
		t.Fatal(err)
	}
	return a
}
