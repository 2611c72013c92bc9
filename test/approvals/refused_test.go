package approvals_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
)

// refused wants an error that says so, and a grant that nobody has answered.
func refused(t *testing.T, g *v1alpha1.PermissionGrant, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %q", err, says)
	}
	if diff := cmp.Diff(g.Spec, grant(t, g.Namespace, g.Name).Spec); diff != "" {
		t.Errorf("a refused answer changed the grant (-before +after):\n%s", diff)
	}
}

// account acts with a token of a ServiceAccount; pod is empty for a token that is bound to none.
func account(t *testing.T, namespace, name, pod string) *person {
	t.Helper()
	token, err := shared.Env.ServiceAccountToken(t.Context(), namespace, name, pod)
	if err != nil {
		t.Fatal(err)
	}
	p, err := as("system:serviceaccount:"+namespace+":"+name, shared.Env.Token(token))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Proves G-3, G-4: nobody answers for themselves, however they send it; each time somebody else may, with the same patch.
func TestNobodyApprovesForThemselves(t *testing.T) {
	h := home(t, "selfish", cluster.Profile)
	cousin := account(t, h.Namespace, "default", "")
	claiming := func(who string, g *v1alpha1.PermissionGrant) error {
		return h.Agent.Patch(t.Context(), g.DeepCopy(), answer(g, v1alpha1.VerdictApprove, map[string]any{"approver": who}))
	}
	merge := func(p client.Client, g *v1alpha1.PermissionGrant, text string) error {
		return p.Patch(t.Context(), g.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text)))
	}
	for i, tt := range []struct {
		name string
		try  func(*v1alpha1.PermissionGrant) error
		says string
	}{
		{"the requester", func(g *v1alpha1.PermissionGrant) error {
			return h.Agent.Patch(t.Context(), g.DeepCopy(), answer(g, v1alpha1.VerdictApprove, nil))
		}, "stepbeyond-floor-self"},
		{"the requester under the name of an approver", func(g *v1alpha1.PermissionGrant) error { return claiming(carla.name, g) }, "stepbeyond-floor-self"},
		{"the requester by an annotation", func(g *v1alpha1.PermissionGrant) error {
			return merge(h.Agent, g, `{"metadata":{"annotations":{"stepbeyond.dev/approved-by":"`+carla.name+`"}}}`)
		}, "stepbeyond-floor-self"},
		{"the requester by the status", func(g *v1alpha1.PermissionGrant) error {
			return h.Agent.Status().Patch(t.Context(), g.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"state":"Approved"}}`)))
		}, "stepbeyond-floor-self"},
		{"another account of its namespace", func(g *v1alpha1.PermissionGrant) error {
			return cousin.Patch(t.Context(), g.DeepCopy(), answer(g, v1alpha1.VerdictApprove, nil))
		}, "forbidden"},
		{"the requester as an approver, by impersonation", func(g *v1alpha1.PermissionGrant) error {
			cfg := shared.Env.Admin()
			cfg.CertData, cfg.KeyData, cfg.BearerToken = nil, nil, h.Agent.Config.BearerToken
			cfg.Impersonate.UserName = carla.name
			impersonator, err := as(h.Agent.Username, cfg)
			if err != nil {
				t.Fatal(err)
			}
			return impersonator.Patch(t.Context(), g.DeepCopy(), answer(g, v1alpha1.VerdictApprove, nil))
		}, "credential-id"},
		{"an approver under the name of another", func(g *v1alpha1.PermissionGrant) error {
			return ben.Patch(t.Context(), g.DeepCopy(), answer(g, v1alpha1.VerdictApprove, map[string]any{"approver": carla.name}))
		}, "spec.decisions[0].approver: Forbidden"},
		{"a viewer", func(g *v1alpha1.PermissionGrant) error {
			return vera.Patch(t.Context(), g.DeepCopy(), answer(g, v1alpha1.VerdictApprove, nil))
		}, "forbidden"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := configMap(h.Namespace, fmt.Sprintf("target-%d", i))
			must(t, target)
			g := ask(t, h, remove(target))
			refused(t, g, tt.try(g), tt.says)
			decide(t, carla, g, v1alpha1.VerdictApprove)
			if err := remove(target)(t.Context(), h.Agent); err != nil {
				t.Errorf("with an approval of somebody else: %v", err)
			}
		})
	}
}

// Proves G-3: an annotation of a person approves nothing either.
func TestAnAnnotationIsNoAnswer(t *testing.T) {
	h := home(t, "annotated", cluster.Profile)
	target := configMap(h.Namespace, "target")
	must(t, target)
	g := ask(t, h, remove(target))
	note := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"stepbeyond.dev/approved-by":"carla@acme.example"}}}`))
	if err := carla.Patch(t.Context(), g.DeepCopy(), note); err != nil {
		t.Fatalf("a person may leave a note: %v", err)
	}
	if err := remove(target)(t.Context(), h.Agent); grantOf(err) != g.Name {
		t.Errorf("with a note and no answer: %v", err)
	}
	decide(t, carla, g, v1alpha1.VerdictApprove)
	if err := remove(target)(t.Context(), h.Agent); err != nil {
		t.Errorf("with an answer: %v", err)
	}
}

// Proves G-3: the session's own user approves where the policy allows it, and the grant says so.
func TestTheSessionsUserApprovesOnlyWhereThePolicyAllowsIt(t *testing.T) {
	strict, lenient := home(t, "second-look", refusing), home(t, "own-look", cluster.Profile)
	for _, h := range []*cluster.Home{strict, lenient} {
		must(t, configMap(h.Namespace, "target"))
	}
	g := ask(t, strict, remove(configMap(strict.Namespace, "target")))
	refused(t, g, dora.Patch(t.Context(), g.DeepCopy(), answer(g, v1alpha1.VerdictApprove, nil)), "the agent works for you")
	decide(t, carla, g, v1alpha1.VerdictApprove)
	becomes(t, g, v1alpha1.GrantApproved)

	g = ask(t, lenient, remove(configMap(lenient.Namespace, "target")))
	decide(t, dora, g, v1alpha1.VerdictApprove)
	g = becomes(t, g, v1alpha1.GrantApproved)
	if got, want := message(g, v1alpha1.ConditionDecided), "Approved by dora@acme.example (for whom the agent works)."; got != want {
		t.Errorf("the grant says %q, want %q", got, want)
	}
	if g.Spec.Request.Requester.OnBehalfOf != sessionUser {
		t.Errorf("asked on behalf of %q, want %s", g.Spec.Request.Requester.OnBehalfOf, sessionUser)
	}
}

func message(g *v1alpha1.PermissionGrant, kind v1alpha1.ConditionType) string {
	for _, c := range g.Status.Conditions {
		if c.Type == string(kind) {
			return c.Message
		}
	}
	return ""
}

// Proves G-3: a machine that opened a session, and who works in a child of it, do not answer for it.
func TestWhoLaunchedASessionAndWhoWorksInItsChildDoNotApprove(t *testing.T) {
	h := home(t, "launching", cluster.Profile)
	bot := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "pipelines", Name: "bot"}
	must(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bot.Namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: bot.Namespace, Name: bot.Name}},
		everywhere(approverRole, bot), everywhere("stepbeyond-platform", bot),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "job"}}, podOf(h.Namespace, "job-0", "job"),
		everywhere("cluster-admin", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: h.Namespace, Name: "job"}),
		configMap(h.Namespace, "launched"), configMap(h.Namespace, "other"))
	if err := changePolicy(t.Context(), func(spec *v1alpha1.ClusterAgentPolicySpec) {
		spec.ServiceAccountApprovers = append(spec.ServiceAccountApprovers, v1alpha1.ServiceAccountReference{Namespace: bot.Namespace, Name: bot.Name})
	}); err != nil {
		t.Fatal(err)
	}
	machine := account(t, bot.Namespace, bot.Name, "")
	opened := &v1alpha1.AgentSession{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "job"},
		Spec: v1alpha1.AgentSessionSpec{
			UserName: sessionUser, ModelTier: v1alpha1.ModelTierMedium, InitiativeMode: v1alpha1.InitiativeModeStandard,
			Identity: v1alpha1.SessionIdentity{Type: v1alpha1.IdentityServiceAccount, ServiceAccountName: "job"}, DeadlineTime: metav1.NewTime(time.Now().Add(time.Hour)),
			Authority: v1alpha1.Authority{Stages: []v1alpha1.Stage{v1alpha1.StageExecute}, Capabilities: []v1alpha1.Capability{v1alpha1.CapabilityExecuteLocal}},
		},
	}
	if err := machine.Create(t.Context(), opened); err != nil {
		t.Fatal(err)
	}
	job := account(t, h.Namespace, "job", "job-0")
	launched := configMap(h.Namespace, "launched")
	var name string
	eventually(t, func() error {
		err := job.Delete(t.Context(), launched.DeepCopy())
		if name = grantOf(err); name == "" {
			return fmt.Errorf("the job asks nothing: %w", err)
		}
		return nil
	})
	g := grant(t, h.Namespace, name)
	approve := func(who *person, g *v1alpha1.PermissionGrant) func(*testing.T) error {
		return func(t *testing.T) error {
			return who.Patch(t.Context(), g.DeepCopy(), answer(g, v1alpha1.VerdictApprove, nil))
		}
	}
	t.Run("the machine that opened it", func(t *testing.T) {
		eventually(t, func() error { // until the manager has loaded who may approve
			err := approve(machine, g)(t)
			if err == nil || strings.Contains(err.Error(), "may not answer") {
				return fmt.Errorf("not refused for the reason that is tested: %w", err)
			}
			refused(t, g, err, "you opened session job and do not answer what it asks")
			return nil
		})
	})
	t.Run("the same machine for another session", func(t *testing.T) {
		decideAs(t, machine, ask(t, h, remove(configMap(h.Namespace, "other"))))
	})
	t.Run("the account that works in it", func(t *testing.T) { refused(t, g, approve(job, g)(t), "stepbeyond-floor-self") })
	t.Run("a person", func(t *testing.T) {
		decide(t, carla, g, v1alpha1.VerdictApprove)
		if err := job.Delete(t.Context(), launched.DeepCopy()); err != nil {
			t.Errorf("with an approval: %v", err)
		}
	})
}

func decideAs(t *testing.T, who *person, g *v1alpha1.PermissionGrant) {
	t.Helper()
	decide(t, who, g, v1alpha1.VerdictApprove)
	becomes(t, g, v1alpha1.GrantApproved)
}

func podOf(namespace, name, account string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "main", Image: "registry.acme.example/job:1"}}},
	}
}

// Proves G-4, G-6, G-7: an answer is given once, to the question that was shown.
func TestAnAnswerIsGivenOnceAndToTheQuestionThatWasShown(t *testing.T) {
	h := home(t, "once", cluster.Profile)
	for i, tt := range []struct {
		name   string
		first  v1alpha1.Verdict
		second v1alpha1.Verdict
		says   string
	}{
		{"approve after deny", v1alpha1.VerdictDeny, v1alpha1.VerdictApprove, "the grant is closed: Denied"},
		{"deny after approve", v1alpha1.VerdictApprove, v1alpha1.VerdictDeny, "the grant is approved and cannot be decided again; to take the approval back set spec.revocation"},
		{"approve twice", v1alpha1.VerdictApprove, v1alpha1.VerdictApprove, "the grant is approved and cannot be decided again"},
		{"deny twice", v1alpha1.VerdictDeny, v1alpha1.VerdictDeny, "the grant is closed: Denied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := configMap(h.Namespace, fmt.Sprintf("target-%d", i))
			must(t, target)
			g := ask(t, h, remove(target))
			decide(t, carla, g, tt.first)
			answered := grant(t, g.Namespace, g.Name)
			refused(t, answered, ben.Patch(t.Context(), g.DeepCopy(), answer(g, tt.second, nil)), tt.says)
		})
	}
	t.Run("the digest of an older request", func(t *testing.T) {
		target := configMap(h.Namespace, "changing")
		must(t, target)
		change := func(text string) func(context.Context, *cluster.Actor) error {
			return func(ctx context.Context, a *cluster.Actor) error {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["acme.example/`+text+`"]}}`))
				return a.Patch(ctx, configMap(h.Namespace, "changing"), patch)
			}
		}
		older := ask(t, h, change("one"))
		newer := ask(t, h, change("two"))
		if older.Name == newer.Name {
			t.Fatalf("two changes are one question %s", older.Name)
		}
		refused(t, newer, carla.Patch(t.Context(), newer.DeepCopy(), answer(older, v1alpha1.VerdictApprove, nil)), "spec.decisions[0].shownDigest: Invalid value")
		decide(t, carla, newer, v1alpha1.VerdictApprove)
		if err := change("two")(t.Context(), h.Agent); err != nil {
			t.Errorf("what was approved: %v", err)
		}
		if err := change("one")(t.Context(), h.Agent); err == nil {
			t.Error("the older change passed under the approval of the newer")
		}
	})
}
