package notices_test

import (
	"fmt"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// Proves G-3, G-7, K-4: however often an agent asks, an approver is told once, and what they are told to type approves.
func TestAQuestionIsToldOnceWithACommandThatApproves(t *testing.T) {
	h := home(t, "told", cluster.Profile)
	g := asked(t, h, "target")
	for range 3 {
		if err := remove(t, h.Agent, h.Namespace, "target"); err == nil {
			t.Fatal("the deletion passed without an approval")
		}
	}
	eventually(t, func() error {
		if len(bot.about(t, pendingType, h.Namespace)) == 0 || len(chat.texts(t, h.Namespace)) == 0 {
			return errNotYet
		}
		return nil
	})
	events := bot.about(t, pendingType, h.Namespace)
	for _, one := range bot.all() {
		verified(t, one, newKey) // while keys are changed, who knows either believes it
	}
	q := events[0].Data.Items[0].Question
	want := question{
		Namespace: h.Namespace, Name: g.Name, UID: string(g.UID), Digest: g.Spec.Request.Digest, State: "Pending", Approvals: "0/1",
		Session: h.Namespace + "/" + g.Spec.Request.Session.Name, Requester: h.Agent.Username, What: "delete configmaps told/target",
		Why: q.Why, Needs: []string{"1 person (baseline/one-person)"}, Commands: q.Commands,
	}
	if diff := cmp.Diff(want, *q); diff != "" {
		t.Errorf("what the approver is told (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(q.Why, func(why string) bool { return strings.Contains(why, "baseline/delete-foreign") }) {
		t.Errorf("why it asks: %q", q.Why)
	}
	if want := fmt.Sprintf("kubectl stepbeyond approve %s -n %s --digest %s", g.Name, h.Namespace, g.Spec.Request.Digest); q.Commands.Approve != want {
		t.Errorf("command of the plugin %q, want %q", q.Commands.Approve, want)
	}
	if text := html.UnescapeString(chat.texts(t, h.Namespace)[0]); !strings.Contains(text, q.Commands.ApproveWithKubectl+"\n") {
		t.Errorf("the channel does not show %q:\n%s", q.Commands.ApproveWithKubectl, text)
	}

	asBen(t, q.Commands.ApproveWithKubectl)
	eventually(t, func() error { return remove(t, h.Agent, h.Namespace, "target") })
	time.Sleep(6 * time.Second) // longer than gathering and the merge window
	if diff := cmp.Diff(map[string]int{g.Name: 1}, bot.questions(t, pendingType, h.Namespace)); diff != "" {
		t.Errorf("how often the question was told (-want +got):\n%s", diff)
	}
	if n := len(chat.texts(t, h.Namespace)); n != 1 {
		t.Errorf("the channel shows it %d times, want once", n)
	}
	expectTold(t, current(t, g), "bot", "chat")
	if n := metric(t, "stepbeyond_grant_repeated_asks_total", nil); n < 3 {
		t.Errorf("%v repeated asks are counted, want at least 3", n)
	}
	eventually(t, func() error {
		if got := eventsOf(t, g); !slices.Contains(got, "GrantApproved") {
			return fmt.Errorf("events of the grant: %q", got)
		}
		return nil
	})
	// One endpoint has the same address, and no network of it is listed: it got nothing, and nobody waited for it.
	if n := metric(t, "stepbeyond_notifications_sent_total", map[string]string{"endpoint": "forbidden"}); n != 0 {
		t.Errorf("%v messages went to an address that is not listed", n)
	}
	if n := metric(t, "stepbeyond_notifications_failed_total", map[string]string{"endpoint": "forbidden"}); n == 0 {
		t.Error("no delivery to the address that is not listed failed")
	}
}

func expectTold(t *testing.T, g *v1alpha1.PermissionGrant, endpoints ...string) {
	t.Helper()
	var got []string
	for _, notice := range g.Status.Notices {
		if notice.Event == v1alpha1.NoticeGrantPending {
			got = append(got, notice.Endpoint)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(endpoints, got); diff != "" {
		t.Errorf("who was told of %s (-want +got):\n%s", g.Name, diff)
	}
}

// Proves G-7: one message per session and window, not one per question.
func TestQuestionsOfOneSessionMakeOneMessage(t *testing.T) {
	h := home(t, "many", cluster.Profile)
	want := map[string]int{}
	for i := range 4 {
		want[asked(t, h, fmt.Sprintf("target-%d", i)).Name] = 1
	}
	eventually(t, func() error {
		if diff := cmp.Diff(want, bot.questions(t, pendingType, h.Namespace)); diff != "" {
			return fmt.Errorf("told (-want +got):\n%s", diff)
		}
		return nil
	})
	if n := len(bot.about(t, pendingType, h.Namespace)); n > 2 {
		t.Errorf("%d messages for 4 questions that came at once, want 1, or 2 when asking took longer than gathering", n)
	}
	eventually(t, func() error { // a channel shows three questions in a message
		texts := chat.texts(t, h.Namespace)
		for name := range want {
			if !strings.Contains(strings.Join(texts, "\n"), name) {
				return fmt.Errorf("%s is not in %d messages of the channel", name, len(texts))
			}
		}
		return nil
	})
}

// Proves K-4: nobody waits for an endpoint, and an endpoint that comes back is told of what still waits.
func TestAnEndpointThatIsDownChangesNoDecision(t *testing.T) {
	h := home(t, "down", cluster.Profile)
	answered, waiting := asked(t, h, "answered"), asked(t, h, "waiting")
	eventually(t, func() error {
		if metric(t, "stepbeyond_notifications_failed_total", map[string]string{"endpoint": "late"}) == 0 {
			return errNotYet
		}
		return nil
	})
	eventually(t, func() error {
		if current(t, answered).Status.ApproveCommand == "" {
			return errNotYet
		}
		return nil
	})
	asBen(t, current(t, answered).Status.ApproveCommand)
	eventually(t, func() error { return remove(t, h.Agent, h.Namespace, "answered") })

	late.begin(t)
	eventually(t, func() error {
		if diff := cmp.Diff(map[string]int{waiting.Name: 1}, late.questions(t, pendingType, h.Namespace)); diff != "" {
			return fmt.Errorf("told late (-want +got):\n%s", diff)
		}
		return nil
	})
	time.Sleep(3 * time.Second)
	if diff := cmp.Diff(map[string]int{waiting.Name: 1}, late.questions(t, pendingType, h.Namespace)); diff != "" {
		t.Errorf("told late, and once, and nothing of what is answered (-want +got):\n%s", diff)
	}
}

// A crash loses no question that waits, and tells nobody twice of one that they were told of.
func TestARestartTellsWhatWasNotToldAndNothingTwice(t *testing.T) {
	h := home(t, "restarted", cluster.Profile)
	first := asked(t, h, "first")
	eventually(t, func() error {
		for _, notice := range current(t, first).Status.Notices {
			if notice.Endpoint == "bot" {
				return nil
			}
		}
		return errNotYet
	})
	bot.answer(http.StatusServiceUnavailable)
	second := asked(t, h, "second")
	before := metric(t, "stepbeyond_notifications_failed_total", map[string]string{"endpoint": "bot"})
	eventually(t, func() error {
		if metric(t, "stepbeyond_notifications_failed_total", map[string]string{"endpoint": "bot"}) == before {
			return errNotYet
		}
		return nil
	})
	if err := world.Manager.Kill(); err != nil {
		t.Fatal(err)
	}
	bot.answer(http.StatusOK)
	if err := world.Manager.Start(); err != nil {
		t.Fatal(err)
	}
	if err := world.Manager.WaitReady(t.Context(), waitAtMost); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{first.Name: 1, second.Name: 1}
	eventually(t, func() error {
		if diff := cmp.Diff(want, bot.questions(t, pendingType, h.Namespace)); diff != "" {
			return fmt.Errorf("told (-want +got):\n%s", diff)
		}
		return nil
	})
	time.Sleep(6 * time.Second)
	if diff := cmp.Diff(want, bot.questions(t, pendingType, h.Namespace)); diff != "" {
		t.Errorf("told after the restart (-want +got):\n%s", diff)
	}
}

// Proves G-6: people are told before a question expires, and expiry approves nothing.
func TestAQuestionThatExpiresSoonSaysSo(t *testing.T) {
	h := home(t, "hasty", "hasty")
	g := asked(t, h, "target")
	if c := meta.FindStatusCondition(current(t, g).Status.Conditions, string(v1alpha1.ConditionExpiring)); c != nil {
		t.Errorf("a new question has condition %+v", c)
	}
	asBen(t, fmt.Sprintf("kubectl -n %s wait permissiongrant %s --for=condition=Expiring --timeout=60s", g.Namespace, g.Name))
	live := current(t, g)
	if c := meta.FindStatusCondition(live.Status.Conditions, string(v1alpha1.ConditionExpiring)); c == nil || c.Reason != string(v1alpha1.ReasonDecisionDue) || live.Status.State != v1alpha1.GrantPending {
		t.Errorf("state %s, condition %+v", live.Status.State, c)
	}
	eventually(t, func() error {
		if diff := cmp.Diff(map[string]int{g.Name: 1}, bot.questions(t, expiringType, h.Namespace)); diff != "" {
			return fmt.Errorf("warned (-want +got):\n%s", diff)
		}
		return nil
	})
	eventually(t, func() error {
		if live := current(t, g); live.Status.State != v1alpha1.GrantExpired {
			return fmt.Errorf("state %s", live.Status.State)
		}
		return nil
	})
	eventually(t, func() error {
		if got := eventsOf(t, g); !slices.Contains(got, "GrantExpiring") || !slices.Contains(got, "GrantExpired") {
			return fmt.Errorf("events of the grant: %q", got)
		}
		return nil
	})
	live = current(t, g)
	if c := meta.FindStatusCondition(live.Status.Conditions, string(v1alpha1.ConditionExpiring)); c != nil {
		t.Errorf("an expired question has condition %+v", c)
	}
	if diff := cmp.Diff(map[string]int{g.Name: 1}, bot.questions(t, expiringType, h.Namespace)); diff != "" {
		t.Errorf("warned (-want +got):\n%s", diff)
	}
}

// A configuration that is not understood is not half used, and says where it is wrong.
func TestAWrongConfigurationKeepsTheManagerFromStarting(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	const text = "apiVersion: config.stepbeyond.dev/v1alpha1\nkind: ManagerConfig\nnotifications: [{name: bot, url: https://bot.acme.example}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong, err := world.Env.NewManager(t.Context(), env.ManagerOptions{Name: "wrong", Args: []string{"--config=" + file}})
	if err != nil {
		t.Fatal(err)
	}
	if err := wrong.Start(); err != nil {
		t.Fatal(err)
	}
	if err := wrong.WaitReady(t.Context(), waitAtMost); err == nil {
		t.Fatal("the manager is ready")
	}
	if wrong.Running() {
		t.Error("the manager goes on")
		_ = wrong.Stop()
	}
	log, err := os.ReadFile(wrong.Logs())
	if err != nil {
		t.Fatal(err)
	}
	if want := `unknown field \"notifications[0].url\"`; !strings.Contains(string(log), want) {
		t.Errorf("the log does not say %s:\n%s", want, log)
	}
}

// Proves K-2: what is lost of the enforcement is told, and not only written down.
func TestALostEnforcementIsTold(t *testing.T) {
	var policies v1alpha1.ClusterAgentPolicyList
	eventually(t, func() error {
		if err := world.Admin.List(t.Context(), &policies); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(policies.Items[0].Status.Conditions, string(v1alpha1.ConditionEnforcementReady)) {
			return errNotYet
		}
		return nil
	})
	webhook := &corev1.ObjectReference{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration", Name: "stepbeyond"}
	if err := world.Admin.Delete(t.Context(), reference(webhook), client.PropagationPolicy("Background")); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		for _, one := range bot.all() {
			if e := verified(t, one, newKey); e.Type == "dev.stepbeyond.enforcement.lost.v1alpha1" {
				if a := e.Data.Items[0].Alarm; a == nil || a.About != "ClusterAgentPolicy/default" || a.Text == "" {
					t.Errorf("alarm %+v", a)
				}
				return nil
			}
		}
		return errNotYet
	})
}
