package onboarding_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// warned collects what kubectl would print beside a success.
type warned struct {
	mu    sync.Mutex
	lines []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warned) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, text)
}

// account is a client of a ServiceAccount with cluster-admin whose token is bound to no pod, and what it is warned of.
func account(t *testing.T, namespace, name string) client.Client {
	t.Helper()
	must(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "everything-" + namespace + "-" + name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		})
	token, err := shared.Env.ServiceAccountToken(t.Context(), namespace, name, "")
	if err != nil {
		t.Fatal(err)
	}
	return clientOf(t, shared.Env.Token(token))
}

func clientOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: shared.Admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// An agent does what would be AUTO, ASK and FORBIDDEN; beside it works a ServiceAccount that has no session.
//
// Proves K-2, K-5, M-2.
func TestUnderOnboardingEverythingPassesAndTheReportSaysWhoWouldHaveBeenRefused(t *testing.T) {
	ctx := t.Context()
	home := homeUnder(t, "trial", audits)
	agent := home.Agent
	must(t, configMap("trial", "theirs"))
	var heard warned
	loud := rest.CopyConfig(agent.Config)
	loud.WarningHandlerWithContext = &heard
	c := clientOf(t, loud)
	mark, err := shared.Env.AuditMark()
	if err != nil {
		t.Fatal(err)
	}
	own := configMap("trial", "own")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "trial-agent"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "trial", Name: "agent"}}
	for name, err := range map[string]error{
		"AUTO: create an own object":                 c.Create(ctx, own),
		"ASK: delete somebody else's object":         c.Delete(ctx, configMap("trial", "theirs")),
		"FORBIDDEN: bind a role":                     c.Create(ctx, binding),
		"FORBIDDEN: by a rule of the cluster policy": c.Create(ctx, lease),
		"FORBIDDEN: write in another namespace":      c.Create(ctx, configMap("default", "trial")),
		"no session":                                 account(t, "trial", "controller").Create(ctx, configMap("trial", "controllers")),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	own.Data = map[string]string{"a": "b"}
	if err := errors.Join(c.Update(ctx, own), c.Delete(ctx, own)); err != nil {
		t.Errorf("AUTO: change and delete an own object: %v", err)
	}
	if len(heard.lines) > 0 {
		t.Errorf("the agent was told %q", heard.lines)
	}

	var got v1alpha1.OnboardingServiceAccount
	eventually(t, func() error {
		if got, err = reported(ctx, "trial", "agent"); err == nil && got.Counts.WouldRefuse < 3 {
			err = fmt.Errorf("got %+v", got)
		}
		return err
	})
	t.Logf("report: %+v", got)
	want := v1alpha1.OnboardingServiceAccount{
		Namespace: "trial", Name: "agent",
		Counts: v1alpha1.OnboardingCounts{WouldAsk: 1, WouldRefuse: 3, Ask: 1, Forbidden: 3},
		Findings: []v1alpha1.OnboardingFinding{
			{Operation: "create clusterrolebindings.rbac.authorization.k8s.io", Reason: "Forbidden", Because: "EscalatesAuthority", Rule: "baseline/rbac-writes", Count: 1},
			{Operation: "create configmaps", Reason: "OutsideAuthority", Because: "OutsideAuthority", Count: 1},
			{Operation: "create leases.coordination.k8s.io", Reason: "Forbidden", Because: "Rule", Rule: "default/forbid-leases", Count: 1},
			{Operation: "delete configmaps", Reason: "PermissionPending", Because: "Destructive", Rule: "baseline/delete-foreign", Count: 1},
		},
	}
	// How often the agent's home was probed is not known; every probe is AUTO.
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(v1alpha1.OnboardingCounts{}, "WouldAllow", "Auto")); diff != "" {
		t.Errorf("the agent (-want +got):\n%s", diff)
	}
	if got.Counts.WouldAllow < 3 || got.Counts.WouldAllow != got.Counts.Auto {
		t.Errorf("%+v, want at least the three AUTO writes", got.Counts)
	}
	other, err := reported(ctx, "trial", "controller")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]v1alpha1.OnboardingFinding{{Operation: "create configmaps", Reason: "NoSession", Count: 1}}, other.Findings); diff != "" {
		t.Errorf("the ServiceAccount without a session (-want +got):\n%s", diff)
	}
	if refused := counter(t, "stepbeyond_onboarding_reviews_total", map[string]string{"namespace": "trial", "class": "FORBIDDEN", "outcome": "WouldRefuse"}); refused != 3 {
		t.Errorf("the metric counts %v refusals of class FORBIDDEN, want 3", refused)
	}
	auditLogTells(t, mark, agent.Username)
	nothingIsWrittenForIt(t)
	kubectlShowsIt(t)
	sessionIsPromptOnly(t)
}

func auditLogTells(t *testing.T, mark env.AuditMark, username string) {
	t.Helper()
	events, err := shared.Env.AuditSince(mark, username)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, event := range events {
		const entry = "onboarding.stepbeyond.dev/"
		if event.Annotations[entry+"outcome"] == "WouldRefuse" {
			told = append(told, event.ObjectRef.Resource+" "+event.Annotations[entry+"class"]+" "+event.Annotations[entry+"rule"])
		}
		if _, enforced := event.Annotations["enforce.stepbeyond.dev/class"]; enforced {
			t.Errorf("%s %s reached the enforcing entry", event.Verb, event.ObjectRef.Resource)
		}
	}
	slices.Sort(told)
	want := []string{
		"clusterrolebindings FORBIDDEN baseline/rbac-writes", "configmaps FORBIDDEN ", "leases FORBIDDEN default/forbid-leases",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
}

// nothingIsWrittenForIt: a question that nobody has to answer would be noise for approvers.
func nothingIsWrittenForIt(t *testing.T) {
	t.Helper()
	var grants v1alpha1.PermissionGrantList
	if err := shared.Admin.List(t.Context(), &grants, client.InNamespace("trial")); err != nil || len(grants.Items) > 0 {
		t.Errorf("%d grants, %v", len(grants.Items), err)
	}
}

func kubectlShowsIt(t *testing.T) {
	t.Helper()
	kubectl, err := env.Asset("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := shared.Env.Kubeconfig("reader", shared.Env.Admin(), "default")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), kubectl, "--kubeconfig="+kubeconfig, "get", "capol", "default", "-o", "wide").CombinedOutput()
	lines := strings.Split(string(out), "\n")
	if err != nil || len(lines) < 2 || !regexp.MustCompile(`ONBOARDING +WOULD-ASK +WOULD-REFUSE `).MatchString(lines[0]) ||
		!regexp.MustCompile(`^default +v1 +\d+ +1 +1 +4 `).MatchString(lines[1]) {
		t.Errorf("kubectl shows %v:\n%s", err, out)
	}
}

func sessionIsPromptOnly(t *testing.T) {
	t.Helper()
	got, err := session(t.Context(), "trial")
	if err != nil {
		t.Fatal(err)
	}
	condition := meta.FindStatusCondition(got.Conditions, string(v1alpha1.ConditionGuaranteeMet))
	if got.Guarantee != v1alpha1.GuaranteePromptOnly || !slices.Contains(got.Degraded, v1alpha1.LostEnforcement) ||
		condition == nil || condition.Reason != string(v1alpha1.ReasonFloorAudited) {
		t.Errorf("the session is %s, degraded %v, %+v", got.Guarantee, got.Degraded, condition)
	}
}

// Proves K-2.
func TestBystandersAndEnforcedAgentsNeverReachTheOnboardingEntry(t *testing.T) {
	ctx := t.Context()
	must(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bystanders", Labels: map[string]string{v1alpha1.LabelProfile: audits}}})
	exempt := account(t, "bystanders", "controller")
	watched := account(t, "bystanders", "stranger")
	enforced := homeUnder(t, "proper", cluster.Profile)
	// What is written at the moment shows that the entry is in force for the namespace.
	eventually(t, func() error {
		before := reviews(t, "onboarding")
		if err := watched.Create(ctx, configMap("bystanders", "probe"), client.DryRunAll); err != nil {
			return err
		}
		if reviews(t, "onboarding") == before {
			return errors.New("the entry does not look at the namespace yet")
		}
		return nil
	})
	before := map[string]float64{"onboarding": reviews(t, "onboarding"), "enforce": reviews(t, "enforce")}
	const writes = 100
	for i := range writes {
		for who, c := range map[string]client.Client{"admin": shared.Admin, "exempt": exempt} {
			object := configMap("bystanders", fmt.Sprintf("%s-%d", who, i))
			if err := errors.Join(c.Create(ctx, object), c.Delete(ctx, object)); err != nil {
				t.Fatal(err)
			}
		}
	}
	must(t, configMap("proper", "theirs"))
	answer, err := enforced.Agent.Try(ctx, func(ctx context.Context, a *cluster.Actor) error { return a.Delete(ctx, configMap("proper", "theirs")) })
	if err != nil || answer.Err == nil || answer.Reason != "PermissionPending" {
		t.Errorf("an enforced agent's ASK: %+v, %v", answer, err)
	}
	if after := reviews(t, "onboarding"); after != before["onboarding"] {
		t.Errorf("%v reviews of the onboarding entry, want 0", after-before["onboarding"])
	}
	if after := reviews(t, "enforce"); after == before["enforce"] {
		t.Error("the enforced agent was not decided about")
	}
}
