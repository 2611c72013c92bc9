package managerconfig

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// with is a good file whose first endpoint is changed: old is replaced by text.
func with(t *testing.T, old, text string) string {
	t.Helper()
	const good = `apiVersion: config.stepbeyond.dev/v1alpha1
kind: ManagerConfig
notifications:
- name: bot
  type: SignedHTTP
  urlSecretRef: {name: bot, key: url}
  signingSecretRef: {name: bot, key: signing-keys}
  authoritiesSecretRef: {name: bot, key: ca.crt}
  events: [GrantPending, GrantExpiring]
  mergeWindowSeconds: 0
  allowedNetworks: [10.20.0.0/16, "fd00::/8"]
- name: sre-chat
  type: SlackIncomingWebhook
  urlSecretRef: {name: chat, key: url}
  events: [EnforcementLost, NamespaceLeft]
`
	if !strings.Contains(good, old) {
		t.Fatalf("the file has no %q", old)
	}
	return strings.Replace(good, old, text, 1)
}

func TestAFileSaysWhoIsTold(t *testing.T) {
	got, err := Parse([]byte(with(t, "", "")))
	if err != nil {
		t.Fatal(err)
	}
	want := &ManagerConfig{APIVersion: APIVersion, Kind: Kind, Notifications: []Notification{
		{
			Name: "bot", Type: SignedHTTP, URLSecretRef: &SecretRef{"bot", "url"}, SigningSecretRef: &SecretRef{"bot", "signing-keys"},
			AuthoritiesSecretRef: &SecretRef{"bot", "ca.crt"}, Events: []Event{GrantPending, GrantExpiring},
			MergeWindowSeconds: new(int32(0)), AllowedNetworks: []string{"10.20.0.0/16", "fd00::/8"},
		},
		{
			Name: "sre-chat", Type: SlackIncomingWebhook, URLSecretRef: &SecretRef{"chat", "url"}, Events: []Event{EnforcementLost, NamespaceLeft},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if w := [2]int32{got.Notifications[0].MergeWindow(), got.Notifications[1].MergeWindow()}; w != [2]int32{0, DefaultMergeWindowSeconds} {
		t.Errorf("merge windows %v, want 0 as stated and the default", w)
	}
}

func TestWithoutAFileNobodyIsTold(t *testing.T) {
	got, err := Load("")
	if err != nil || len(got.Notifications) != 0 {
		t.Errorf("no file: %+v, %v", got, err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "config.yaml")); err == nil {
		t.Error("a file that is not there was read")
	}
}

// A file that is not understood as a whole is not used, and says where it is wrong.
func TestAWrongFileNamesItsField(t *testing.T) {
	for _, tt := range []struct{ name, old, text, want string }{
		{"a field that does not exist", "  events: [EnforcementLost", "  evnts: [EnforcementLost", `unknown field "notifications[1].evnts"`},
		{"a field of another spelling", "kind: M", "Kind: M", `unknown field "Kind"`},
		{"a field twice", "kind: ManagerConfig", "kind: ManagerConfig\nkind: ManagerConfig", `key "kind" already set in map`},
		{"a field for later", "notifications:", "ledger: {type: PostgreSQL}\nnotifications:", `unknown field "ledger"`},
		{"no YAML", "notifications:", "notifications: [", "is no YAML"},
		{"a number for a list", "events: [GrantPending, GrantExpiring]", "events: 7", "notifications.events"},
		{"another version", "v1alpha1", "v2", `apiVersion: Invalid value: "config.stepbeyond.dev/v2": this manager reads`},
		{"another kind", "ManagerConfig", "Config", `kind: Invalid value: "Config": must be ManagerConfig`},
		{"no name", "name: bot\n", "name: \"\"\n", `notifications[0].name: Invalid value: ""`},
		{"a name twice", "name: sre-chat", "name: bot", `notifications[1].name: Duplicate value: "bot"`},
		{"a type that does not exist", "type: SignedHTTP", "type: Email", `notifications[0].type: Unsupported value: "Email": supported values: "SignedHTTP", "SlackIncomingWebhook"`},
		{"no URL", "  urlSecretRef: {name: chat, key: url}\n", "", "notifications[1].urlSecretRef: Required value"},
		{"a signature without a key", "  signingSecretRef: {name: bot, key: signing-keys}\n", "", "notifications[0].signingSecretRef: Required value"},
		{"a key without a signature", "name: chat, key: url}", "name: chat, key: url}\n  signingSecretRef: {name: a, key: b}", "notifications[1].signingSecretRef: Forbidden: only SignedHTTP signs"},
		{"a Secret outside of its folder", "{name: bot, key: url}", "{name: .., key: url}", `notifications[0].urlSecretRef.name: Invalid value: ".."`},
		{"a key outside of its folder", "{name: bot, key: url}", "{name: bot, key: ../url}", `notifications[0].urlSecretRef.key: Invalid value: "../url"`},
		{"a parent folder as a key", "{name: bot, key: ca.crt}", "{name: bot, key: ..}", `notifications[0].authoritiesSecretRef.key: Invalid value: ".."`},
		{"no event", "events: [EnforcementLost, NamespaceLeft]", "events: []", "notifications[1].events: Required value"},
		{"an event that nothing makes yet", "EnforcementLost,", "HoldNeedsClarification,", `notifications[1].events[0]: Unsupported value: "HoldNeedsClarification": supported values:`},
		{"an event twice", "EnforcementLost, NamespaceLeft", "NamespaceLeft, NamespaceLeft", `notifications[1].events[1]: Duplicate value: "NamespaceLeft"`},
		{"a window below zero", "mergeWindowSeconds: 0", "mergeWindowSeconds: -1", "notifications[0].mergeWindowSeconds: Invalid value: -1: must be between 0 and 3600"},
		{"a window of days", "mergeWindowSeconds: 0", "mergeWindowSeconds: 86400", "notifications[0].mergeWindowSeconds: Invalid value: 86400"},
		{"an address for a network", "10.20.0.0/16", "10.20.0.1", `notifications[0].allowedNetworks[0]: Invalid value: "10.20.0.1": must be a CIDR`},
		{"a network that means another", "10.20.0.0/16", "10.20.0.1/16", `notifications[0].allowedNetworks[0]: Invalid value: "10.20.0.1/16"`},
		{"a name for a network", "10.20.0.0/16", "internal", `notifications[0].allowedNetworks[0]: Invalid value: "internal"`},
		{"a URL in the file itself", "urlSecretRef: {name: bot, key: url}", "url: https://bot.acme.example", `unknown field "notifications[0].url"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse([]byte(with(t, tt.old, tt.text)))
			if err == nil {
				t.Fatalf("was taken: %+v", got)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q, want it to say %q", err, tt.want)
			}
		})
	}
}
