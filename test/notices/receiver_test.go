package notices_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// signingKeys: the new one first, and the old one that receivers still know.
const (
	oldKey      = "an old key of thirty-two bytes.."
	newKey      = "a new key that has thirty-two b."
	signingKeys = "whsec_YSBuZXcga2V5IHRoYXQgaGFzIHRoaXJ0eS10d28gYi4=\nwhsec_YW4gb2xkIGtleSBvZiB0aGlydHktdHdvIGJ5dGVzLi4="
)

// received is one request as it came.
type received struct {
	at     time.Time
	header http.Header
	body   []byte
}

// receiver is an endpoint with a certificate of its own.
type receiver struct {
	server *httptest.Server

	mu     sync.Mutex
	got    []received
	status int
	open   bool
}

func newReceiver() *receiver {
	r := &receiver{status: http.StatusNoContent}
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.status < 300 {
			r.got = append(r.got, received{time.Now(), request.Header, body})
		}
		w.WriteHeader(r.status)
	}))
	return r
}

func (r *receiver) listen() { r.server.StartTLS(); r.open = true }

// reserve gives the server a certificate and a port that nobody listens on.
func (r *receiver) reserve() {
	r.listen()
	address := r.server.Listener.Addr().String()
	config := r.server.Config.Handler
	r.server.Close()
	closed := r.server
	r.server = httptest.NewUnstartedServer(config)
	r.server.Listener.Close()
	r.server.URL, r.open = "https://"+address, false
	r.server.TLS = closed.TLS.Clone()
}

// begin listens on the reserved port.
func (r *receiver) begin(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", strings.TrimPrefix(r.server.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	r.server.Listener, r.server.URL = listener, ""
	r.listen()
}

func (r *receiver) close() {
	if r.open {
		r.server.Close()
	}
}

func (r *receiver) url() string { return r.server.URL + "/hooks/it" }

// authority is what vouches for the server: httptest signs its certificate itself, with the same one each time.
func (r *receiver) authority() string {
	leaf := r.server.TLS.Certificates[0].Certificate[0]
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf}))
}

// answer is what it says from now on.
func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// event is what the tests read of a CloudEvent.
type event struct {
	SpecVersion string `json:"specversion"`
	ID          string `json:"id"`
	Type        string `json:"type"`
	Source      string `json:"source"`
	Subject     string `json:"subject"`
	Data        struct {
		Items []struct {
			Question *question `json:"question"`
			Alarm    *struct {
				About string `json:"about"`
				Text  string `json:"text"`
			} `json:"alarm"`
		} `json:"items"`
	} `json:"data"`
}

type question struct {
	Namespace, Name, UID, Digest, State, Approvals, Session, Requester, What string

	Why, Needs []string
	Commands   struct{ Show, Approve, ApproveWithKubectl, Deny string }
}

// verified reads a request as a receiver would that follows https://www.standardwebhooks.com and knows one key.
func verified(t *testing.T, r received, key string) event {
	t.Helper()
	id, timestamp := r.header.Get("Webhook-Id"), r.header.Get("Webhook-Timestamp")
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write([]byte(id + "." + timestamp + "." + string(r.body)))
	want := "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil))
	if !slices.Contains(strings.Split(r.header.Get("Webhook-Signature"), " "), want) {
		t.Errorf("signature %q, want it to hold %q", r.header.Get("Webhook-Signature"), want)
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		t.Errorf("timestamp %q is not of now", timestamp)
	}
	if got := r.header.Get("Content-Type"); !strings.HasPrefix(got, "application/cloudevents+json") {
		t.Errorf("content type %q", got)
	}
	var e event
	if err := json.Unmarshal(r.body, &e); err != nil {
		t.Fatalf("body %s: %v", r.body, err)
	}
	if e.SpecVersion != "1.0" || e.ID != id || e.ID == "" || e.Source == "" {
		t.Errorf("event %+v of request %s", e, id)
	}
	return e
}

// about lists the events of a type with questions of a namespace.
func (r *receiver) about(t *testing.T, kind, namespace string) []event {
	t.Helper()
	var found []event
	for _, one := range r.all() {
		e := verified(t, one, oldKey)
		of := func() bool {
			for _, item := range e.Data.Items {
				if item.Question != nil && item.Question.Namespace == namespace {
					return true
				}
			}
			return false
		}
		if e.Type == kind && of() {
			found = append(found, e)
		}
	}
	return found
}

// questions are those of a namespace that events of a type told, by the name of the grant, with how often.
func (r *receiver) questions(t *testing.T, kind, namespace string) map[string]int {
	t.Helper()
	told := map[string]int{}
	for _, e := range r.about(t, kind, namespace) {
		for _, item := range e.Data.Items {
			told[item.Question.Name]++
		}
	}
	return told
}

// texts are what a channel shows of a namespace.
func (r *receiver) texts(t *testing.T, namespace string) []string {
	t.Helper()
	var found []string
	for _, one := range r.all() {
		var message struct{ Text string }
		if err := json.Unmarshal(one.body, &message); err != nil {
			t.Fatalf("body %s: %v", one.body, err)
		}
		if strings.Contains(message.Text, fmt.Sprintf("kubectl -n %s patch", namespace)) {
			found = append(found, message.Text)
		}
	}
	return found
}
