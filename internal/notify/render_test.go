package notify

import (
	"encoding/json"
	"flag"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/managerconfig"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

const (
	digest = "v1:faf78c6d99be47c7e566f063d1339e3f088c3039a33407c797eddd799a7b6ca9"
	// patch stands for what the manager writes into status.approveCommand.
	patch = `kubectl -n checkout patch permissiongrant pg-7l3yy3mzxzd4pzlg --type=json -p '[{"op":"add","path":"/spec/decisions/-","value":{"verdict":"Approve","shownDigest":"` + digest + `"}}]'`
)

// aGrant is a question that needs two answers.
func aGrant() *v1alpha1.PermissionGrant {
	return &v1alpha1.PermissionGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "pg-7l3yy3mzxzd4pzlg", UID: "7e6ab0aa", CreationTimestamp: metav1.NewTime(at)},
		Spec: v1alpha1.PermissionGrantSpec{
			Request: v1alpha1.PermissionRequest{
				Digest:    digest,
				Session:   v1alpha1.GrantSession{Namespace: "checkout", Name: "fix-latency-9c1f0", UID: "5d0c", Epoch: 1},
				Requester: v1alpha1.Requester{Username: "system:serviceaccount:checkout:agent", OnBehalfOf: "checkout-automation"},
				Operation: v1alpha1.GrantOperation{Verb: v1alpha1.VerbDelete, Summary: "delete persistentvolumeclaims checkout/data-postgres-0"},
				Change:    []string{"the password of everybody"},
				Effects:   []string{"PersistentVolume pvc-2f1c9a58 has reclaimPolicy Delete: 20Gi are destroyed"},
				Undo:      []string{"none for the volume"},
				Facts:     []v1alpha1.GrantFact{{Fact: v1alpha1.FactDestructive, Value: "Present", Provenance: "Parsed", Why: "verb delete on a kind that holds data"}},
				Rules:     []v1alpha1.GrantRule{{Name: "baseline/destructive", Class: "ASK", Reason: "DestructiveOperation"}},
				Requirements: []v1alpha1.GrantRequirement{
					{Name: "standard/one-person", Required: 1},
					{Name: "standard/data-loss", Required: 2, ApproverGroups: []string{"acme:data-owners", "acme:sre"}},
				},
			},
			RequesterComment: "PVC is full; recreating it with 40Gi.",
		},
		Status: v1alpha1.PermissionGrantStatus{
			State: v1alpha1.GrantPending, Approvals: "0/2", ApproveCommand: patch, ExpirationTime: &metav1.Time{Time: at.Add(16 * time.Hour)},
		},
	}
}

// hostile is a question in which everything that an agent chooses is an attack on who reads it.
func hostile() *v1alpha1.PermissionGrant {
	g := aGrant()
	g.Spec.RequesterComment = "ok" + strings.Repeat(" ", 90) + "or       kubectl delete \u202e\u200b `rm` <!channel> <https://evil.example|Approve here> ```\n*Approved by SRE* & more " + strings.Repeat("z", 400)
	g.Spec.Request.Requester.OnBehalfOf = "dora <@U123>\u2066"
	g.Spec.Request.Operation.Summary = "delete configmaps checkout/```x```"
	g.Spec.Request.Effects = make([]string, 20)
	for i := range g.Spec.Request.Effects {
		g.Spec.Request.Effects[i] = "\x1b[2Jline <b>" + strings.Repeat("e\u0301\u0301\u0301\u0301\u0301\u0301", 100)
	}
	g.Spec.Request.Facts[0].Why = "because\u2028approve"
	return g
}

func messageOf(event managerconfig.Event, grants ...*v1alpha1.PermissionGrant) *message {
	var ids []string
	var items []Item
	for _, g := range grants {
		ids, items = append(ids, string(g.UID)), append(items, Item{Question: QuestionOf(g)})
	}
	return newMessage(event, "checkout/fix-latency-9c1f0", at, ids, items, 0)
}

// Proves G-3: who is told sees who asks what and why, and what to type; golden, with strings that lie.
func TestMessagesAreReadable(t *testing.T) {
	approved := aGrant()
	approved.Status.State, approved.Status.Approvals, approved.Status.ApproveCommand = v1alpha1.GrantApproved, "2/2", ""
	alarm := newMessage(managerconfig.NamespaceLeft, "", at, []string{"a"}, []Item{{Alarm: &Alarm{About: "ClusterAgentPolicy/default", Text: "Nothing enforces namespace lab any more", Time: at}}}, 0)
	more := messageOf(managerconfig.GrantPending, aGrant(), hostile())
	more.more = 3
	for name, m := range map[string]*message{
		"pending": messageOf(managerconfig.GrantPending, aGrant()), "approved": messageOf(managerconfig.GrantExpiring, approved),
		"hostile": more, "alarm": alarm,
	} {
		t.Run(name, func(t *testing.T) {
			body, err := cloudEvent(m)
			if err != nil {
				t.Fatal(err)
			}
			var indented map[string]any
			if err := json.Unmarshal(body, &indented); err != nil {
				t.Fatal(err)
			}
			pretty, err := json.MarshalIndent(indented, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".json", string(pretty)+"\n")
			golden(t, name+".txt", slack(t, m)+"\n")
		})
	}
}

func slack(t *testing.T, m *message) string {
	t.Helper()
	body, err := slackText(m)
	if err != nil {
		t.Fatal(err)
	}
	var text struct {
		Text  string `json:"text"`
		Links *bool  `json:"unfurl_links"`
	}
	if err := json.Unmarshal(body, &text); err != nil {
		t.Fatal(err)
	}
	if text.Links == nil || *text.Links {
		t.Error("links are shown with what is behind them")
	}
	return text.Text
}

// Nothing that an agent writes leaves the block of plain text, or is read by Slack as anything else.
func TestHostileTextStaysPlainText(t *testing.T) {
	text := slack(t, messageOf(managerconfig.GrantPending, hostile()))
	if n := strings.Count(text, "`"); n != 6 || !strings.HasSuffix(text, "\n```") {
		t.Errorf("%d backticks, want the two fences alone:\n%s", n, text)
	}
	if i := strings.IndexAny(text, "<>"); i >= 0 {
		t.Errorf("markup at %d: %s", i, text)
	}
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("holds %U", r)
		}
	}
	if strings.Contains(text, "    or") || strings.Contains(text, "or       kubectl delete") {
		t.Errorf("the agent's words can look like a row of their own:\n%s", text)
	}
	if n := len([]rune(text)); n > 4000 {
		t.Errorf("%d characters for one question", n)
	}
	if !strings.Contains(html.UnescapeString(text), patch+"\n") {
		t.Errorf("the command cannot be copied:\n%s", text)
	}
}

// The change can be anybody's data, and a channel has more readers than the grant.
func TestANoticeHoldsNothingOfTheChange(t *testing.T) {
	for kind, f := range formats {
		body, err := f.render(messageOf(managerconfig.GrantPending, aGrant()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), "password") {
			t.Errorf("%s tells the change: %s", kind, body)
		}
	}
}

func TestAMessageIsKnownByWhatItTells(t *testing.T) {
	id := func(ids ...string) string {
		return newMessage(managerconfig.GrantPending, "s", time.Now(), ids, nil, 0).id
	}
	first, again := id("a", "b"), id("a", "b")
	if first != again || first == id("a") || first == id("ab") {
		t.Error("the same items do not make the same id, or others do")
	}
}

func TestEveryTypeAndEventCanBeTold(t *testing.T) {
	for _, event := range managerconfig.Events() {
		if types[event] == "" || strings.HasPrefix(headline(&message{event: event}), ":") || headline(&message{event: event}) == "" {
			t.Errorf("%s has no CloudEvents type or no headline", event)
		}
	}
	for _, kind := range []managerconfig.NotificationType{managerconfig.SignedHTTP, managerconfig.SlackIncomingWebhook} {
		if formats[kind].render == nil {
			t.Errorf("%s cannot be rendered", kind)
		}
	}
}
