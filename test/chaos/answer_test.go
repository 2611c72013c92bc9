package main

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func status(code int32, message string, causes ...metav1.StatusCause) error {
	s := metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}
	if len(causes) > 0 {
		s.Details = &metav1.StatusDetails{Causes: causes}
	}
	return &apierrors.StatusError{ErrStatus: s}
}

func TestAnAnswerOfAdmissionIsToldFromAnAPIServerThatIsAway(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want answer
	}{
		{"success", nil, answer{Code: 200}},
		{"a success past the manager", errUnstamped, answer{Code: 200, Unstamped: true}},
		{"the floor", status(403, "forbidden: ValidatingAdmissionPolicy 'stepbeyond-floor-authority' with binding 'x' denied request: no"), answer{Code: 403, Admission: true, Floor: true}},
		{"another policy", status(422, "ValidatingAdmissionPolicy 'theirs' with binding 'x' denied request: no"), answer{Code: 422, Admission: true}},
		{"a webhook", status(403, `admission webhook "enforce.stepbeyond.dev" denied the request: PENDING`,
			metav1.StatusCause{Type: "stepbeyond.dev/Class", Message: "ASK"}, metav1.StatusCause{Type: "stepbeyond.dev/Grant", Message: "pg-1"}),
			answer{Code: 403, Admission: true, Class: "ASK", Grant: "pg-1"}},
		{"a webhook that is not there", status(500, `Internal error occurred: failed calling webhook "enforce.stepbeyond.dev": context deadline exceeded`), answer{Code: 500, Admission: true}},
		{"no connection", syscall.ECONNREFUSED, answer{Away: kindNoAnswer}},
		{"a connection that ends", errors.New("EOF"), answer{Away: kindNoAnswer}},
		{"roles are not known yet", status(403, `leases "x" is forbidden: User "u" cannot update resource "leases"`), answer{Code: 403, Away: kindStarting}},
		{"admission is not ready", status(403, `leases "x" is forbidden: not yet ready to handle request`), answer{Code: 403, Away: kindStarting}},
		{"a refusal for no known reason", status(403, "no"), answer{Code: 403}},
		{"an API server that stops", status(503, "apiserver is shutting down"), answer{Code: 503, Away: kindStarting}},
		{"etcd", status(500, "etcdserver: request timed out"), answer{Code: 500, Away: kindStorage}},
		{"a deadline", status(504, "Timeout: request did not complete within the allotted timeout"), answer{Code: 504, Away: kindStorage}},
		{"a missing object", status(404, `services "x" not found`), answer{Code: 404}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, understand(tt.err), cmpopts.IgnoreFields(answer{}, "Message")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecoveryIsTheFirstOfTheAnswersThatStayAsBefore(t *testing.T) {
	since := time.Now().Add(-time.Minute)
	for _, tt := range []struct {
		name    string
		answers string // y as before, n not; one per second
		ok      bool
		want    time.Duration
	}{
		{"nothing was ever wrong", "yyyyyy", true, 0},
		{"it comes back", "nnyyyyyy", true, 3 * time.Second},
		{"it comes back twice", "nyyyyyynyyyyy", true, 9 * time.Second},
		{"it has only just come back", "nnnyyyy", false, 0},
		{"it does not come back", "yyyyyn", false, 0},
		{"nobody asked", "", false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &stream{}
			for i, a := range tt.answers {
				at := since.Add(time.Duration(i+1) * time.Second)
				s.probes = append(s.probes, probe{sent: at, answered: at, before: a == 'y'})
			}
			at, ok := s.recovered(since)
			if ok != tt.ok || ok && at.Sub(since) != tt.want {
				t.Errorf("recovered %v after %v, want %v after %v", ok, at.Sub(since), tt.ok, tt.want)
			}
		})
	}
}

func TestAnASKThatPassesBetweenADeletionAndItsRepairIsToldFromOneAfterIt(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers string // p passed, r refused as before; one per second
		want    int
	}{
		{"refused, exposed and guarded again", "rrppprrr", 0},
		{"exposed once more", "rpprrpr", 1},
		{"never exposed", "rrr", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begin := time.Now().Add(-time.Minute)
			c := &callers{}
			for i, a := range tt.answers {
				at := begin.Add(time.Duration(i+1) * time.Second)
				p := probe{sent: at, answered: at.Add(time.Millisecond), before: a == 'r', answer: answer{Code: 403}}
				if a == 'p' {
					p.Code = 200
				}
				c.ask.probes = append(c.ask.probes, p)
			}
			m := &measured{}
			m.read(c, window{begin: begin, end: begin.Add(time.Minute)}, false)
			if m.PassedGuarded != tt.want {
				t.Errorf("%d passed after the repair, want %d", m.PassedGuarded, tt.want)
			}
		})
	}
}
