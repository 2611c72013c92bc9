package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stepbeyond.dev/stepbeyond/internal/managerconfig"
)

var at = time.Date(2026, 11, 30, 18, 5, 31, 0, time.UTC)

const (
	signingKey = "0123456789abcdef0123456789abcdef"
	encodedKey = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	token      = "T000-very-secret" // in every URL, and in no error
)

// mounted writes Secrets as the kubelet mounts them: KEY of Secret "it".
func mounted(t *testing.T, keys map[string]string) Secrets {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "it"), 0o700); err != nil {
		t.Fatal(err)
	}
	for key, text := range keys {
		if err := os.WriteFile(filepath.Join(dir, "it", key), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Secrets{dir}
}

// to is a sender to a server, changed as said.
func to(t *testing.T, server *httptest.Server, keys map[string]string, change func(*managerconfig.Notification)) *sender {
	t.Helper()
	all := map[string]string{
		"url": server.URL + "/hooks/" + token, "key": encodedKey,
		"ca": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
	}
	for key, text := range keys {
		all[key] = text
	}
	endpoint := &managerconfig.Notification{
		Name: "bot", Type: managerconfig.SignedHTTP, URLSecretRef: &managerconfig.SecretRef{Name: "it", Key: "url"},
		SigningSecretRef: &managerconfig.SecretRef{Name: "it", Key: "key"}, AuthoritiesSecretRef: &managerconfig.SecretRef{Name: "it", Key: "ca"},
		AllowedNetworks: []string{"127.0.0.0/8"},
	}
	if change != nil {
		change(endpoint)
	}
	return newSender(endpoint, mounted(t, all), func() time.Time { return at })
}

func anAlarm() *message {
	return newMessage(managerconfig.EnforcementLost, "", at, []string{"a"}, []Item{{Alarm: &Alarm{About: "ClusterAgentPolicy/default", Text: "lost", Time: at}}}, 0)
}

// serve is a TLS server that answers so and keeps what it got.
func serve(t *testing.T, status int, header map[string]string) (*httptest.Server, *atomic.Pointer[http.Request], *atomic.Value) {
	t.Helper()
	var got atomic.Pointer[http.Request]
	var body atomic.Value
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got.Store(r)
		body.Store(string(text))
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	server.Config.ErrorLog = nil
	return server, &got, &body
}

// The text of the standard, followed here apart from the code that signs.
func TestAMessageIsSignedAsStandardWebhooksAre(t *testing.T) {
	server, got, body := serve(t, http.StatusNoContent, nil)
	s := to(t, server, map[string]string{"key": encodedKey + "\nwhsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("o", 24)))}, nil)
	m := anAlarm()
	if err := s.send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	header := got.Load().Header
	signatures := map[string]string{}
	for _, key := range []string{signingKey, strings.Repeat("o", 24)} {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(m.id + ".1796061931." + body.Load().(string)))
		signatures[key] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	want := map[string]string{
		"Webhook-Id": m.id, "Webhook-Timestamp": "1796061931", "Content-Type": "application/cloudevents+json; charset=utf-8",
		"Webhook-Signature": signatures[signingKey] + " " + signatures[strings.Repeat("o", 24)],
	}
	have := map[string]string{}
	for name := range want {
		have[name] = header.Get(name)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if got.Load().Method != http.MethodPost || got.Load().URL.Path != "/hooks/"+token {
		t.Errorf("%s %s", got.Load().Method, got.Load().URL.Path)
	}
}

func TestTextForAChannelIsNotSigned(t *testing.T) {
	server, got, _ := serve(t, http.StatusOK, nil)
	s := to(t, server, nil, func(n *managerconfig.Notification) {
		n.Type, n.SigningSecretRef = managerconfig.SlackIncomingWebhook, nil
	})
	if err := s.send(t.Context(), anAlarm()); err != nil {
		t.Fatal(err)
	}
	if header := got.Load().Header; header.Get(HeaderSignature) != "" || header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Errorf("headers %v", header)
	}
}

// What does not go out says why, and never the URL: who knows it can post.
func TestADeliveryThatFailsSaysWhyAndNotWhere(t *testing.T) {
	elsewhere, reached, _ := serve(t, http.StatusOK, nil)
	for _, tt := range []struct {
		name   string
		status int
		header map[string]string
		keys   map[string]string
		change func(*managerconfig.Notification)
		want   string
		wait   time.Duration
		sent   bool
	}{
		{name: "a redirect", status: http.StatusTemporaryRedirect, header: map[string]string{"Location": elsewhere.URL}, want: "it answered 307: redirects are not followed", sent: true},
		{name: "a redirect into the cloud", status: http.StatusFound, header: map[string]string{"Location": "http://169.254.169.254/latest"}, want: "it answered 302: redirects", sent: true},
		{name: "a refusal", status: http.StatusForbidden, want: "it answered 403", sent: true},
		{name: "too much", status: http.StatusTooManyRequests, header: map[string]string{"Retry-After": "120"}, want: "it answered 429", wait: 2 * time.Minute, sent: true},
		{name: "too much until a date", status: http.StatusServiceUnavailable, header: map[string]string{"Retry-After": "Mon, 30 Nov 2026 18:06:31 GMT"}, want: "it answered 503", wait: time.Minute, sent: true},
		{name: "too much for a year", status: http.StatusServiceUnavailable, header: map[string]string{"Retry-After": "31536000"}, want: "it answered 503", wait: time.Hour, sent: true},
		{name: "too much since long ago", status: http.StatusServiceUnavailable, header: map[string]string{"Retry-After": "-5"}, want: "it answered 503", sent: true},
		{name: "an address that is not listed", change: func(n *managerconfig.Notification) { n.AllowedNetworks = nil }, want: "127.0.0.1 is not on the public Internet and not in allowedNetworks"},
		{name: "a certificate that nobody vouches for", change: func(n *managerconfig.Notification) { n.AuthoritiesSecretRef = nil }, want: "certificate"},
		{name: "authorities that are none", keys: map[string]string{"ca": "none"}, want: "the authorities are no PEM certificates"},
		{name: "plain HTTP", keys: map[string]string{"url": "http://127.0.0.1/" + token}, want: "the URL is not https://"},
		{name: "a URL with a password", keys: map[string]string{"url": "https://me:" + token + "@127.0.0.1/"}, want: "the URL is not https://"},
		{name: "a URL without a host", keys: map[string]string{"url": "https:///" + token}, want: "the URL is not https://"},
		{name: "no URL at all", keys: map[string]string{"url": "%%" + token}, want: "the URL is not https://"},
		{name: "a name that does not exist", keys: map[string]string{"url": "https://hooks.invalid/" + token}, want: "hooks.invalid"},
		{name: "a Secret that is not mounted", change: func(n *managerconfig.Notification) { n.URLSecretRef.Key = "other" }, want: "key other of Secret it is not mounted"},
		{name: "a key without its prefix", keys: map[string]string{"key": token}, want: "the signing key is not"},
		{name: "a key that is too short", keys: map[string]string{"key": "whsec_MDEyMw=="}, want: "the signing key is not"},
		{name: "an empty key", keys: map[string]string{"key": ""}, want: "the signing key is not"},
		{name: "more keys than two changes need", keys: map[string]string{"key": strings.Repeat(encodedKey+"\n", 5)}, want: "the signing key is not"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status := tt.status
			if status == 0 {
				status = http.StatusOK
			}
			server, got, _ := serve(t, status, tt.header)
			err := to(t, server, tt.keys, tt.change).send(t.Context(), anAlarm())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			if strings.Contains(err.Error(), token) || strings.Contains(err.Error(), signingKey) || strings.Contains(err.Error(), "/hooks") {
				t.Errorf("error %q tells a secret", err)
			}
			var refused *refusal
			if errors.As(err, &refused) && refused.wait != tt.wait {
				t.Errorf("asks for a wait of %s, want %s", refused.wait, tt.wait)
			}
			if sent := got.Load() != nil; sent != tt.sent {
				t.Errorf("the server got it: %v, want %v", sent, tt.sent)
			}
		})
	}
	if reached.Load() != nil {
		t.Error("a redirect was followed")
	}
}

// A proxy would connect where the guard does not look.
func TestNoProxyConnectsInsteadOfTheGuard(t *testing.T) {
	server, _, _ := serve(t, http.StatusOK, nil)
	client, err := to(t, server, nil, nil).client()
	if err != nil {
		t.Fatal(err)
	}
	if client.Transport.(*http.Transport).Proxy != nil {
		t.Error("the environment's proxy is used")
	}
}

func TestAChangedSecretCountsWithTheNextDelivery(t *testing.T) {
	server, _, _ := serve(t, http.StatusOK, nil)
	s := to(t, server, map[string]string{"url": "https://hooks.invalid/"}, nil)
	if err := s.send(t.Context(), anAlarm()); err == nil {
		t.Fatal("was delivered to a name that does not exist")
	}
	if err := os.WriteFile(filepath.Join(s.secrets.Directory, "it", "url"), []byte(server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.send(t.Context(), anAlarm()); err != nil {
		t.Errorf("with the changed URL: %v", err)
	}
}
