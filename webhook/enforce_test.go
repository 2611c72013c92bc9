package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/origin"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/stamp"
)

// password stands for what a request holds and nothing may repeat.
const password = "hunter2-c0rrect-h0rse"

// reads is a reader whose every Get ends as told.
type reads struct {
	client.Reader
	get func(client.Object) error
}

func (r reads) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	return r.get(object)
}

// secretReview is an agent's creation of a Secret; with a pod, the session has to be looked up.
func secretReview(t *testing.T, pod string) admission.Request {
	t.Helper()
	object, err := json.Marshal(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "keys"}, StringData: map[string]string{"password": password},
	})
	if err != nil {
		t.Fatal(err)
	}
	extra := map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"JTI=1"}}
	if pod != "" {
		extra["authentication.kubernetes.io/pod-name"] = authenticationv1.ExtraValue{pod}
	}
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "review", Operation: admissionv1.Create, Namespace: "checkout", Name: "keys",
		Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Secret"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "secrets"},
		Object:   runtime.RawExtension{Raw: object},
		UserInfo: authenticationv1.UserInfo{Username: "system:serviceaccount:checkout:agent", Extra: extra},
	}}
}

// Proves F-1, B-2.
func TestAFailureWhileDecidingIsARefusalThatRepeatsNothing(t *testing.T) {
	tests := []struct {
		name  string
		pod   string
		get   func(client.Object) error
		store func(*policystore.Store)
		logs  string
	}{
		{
			name:  "a panic in the engine",
			store: func(s *policystore.Store) { s.Current().Engine = nil },
			logs:  "panic of type runtime.errorString",
		},
		{
			name: "a panic with request data as its value", pod: "agent-0",
			get:  func(client.Object) error { panic("cannot read " + password) },
			logs: "panic of type string",
		},
		{
			name: "an API server that does not answer in time", pod: "agent-0",
			get:  func(client.Object) error { return context.DeadlineExceeded },
			logs: context.DeadlineExceeded.Error(),
		},
		{
			name: "an error of a lookup", pod: "agent-0",
			get:  func(client.Object) error { return errors.New("connection refused") },
			logs: "connection refused",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store := loaded(t, governedCluster())
			if tt.store != nil {
				tt.store(store)
			}
			reader := reads{get: tt.get}
			e := &Enforce{
				Store: store, Sessions: &identity.Resolver{Cached: reader, Live: reader}, Origins: &origin.Finder{Live: reader},
				Stamper: stamp.Stamper{Key: []byte("key")}, Now: func() time.Time { return now },
			}
			var log strings.Builder
			logger := funcr.New(func(prefix, args string) { log.WriteString(prefix + args + "\n") }, funcr.Options{})
			response := e.Handle(ctrl.LoggerInto(t.Context(), logger), secretReview(t, tt.pod))

			if response.Allowed || response.Result == nil {
				t.Fatalf("got %+v, want a refusal", response)
			}
			type refused struct {
				Code   int32
				Reason metav1.StatusReason
			}
			if diff := cmp.Diff(refused{403, "Undecided"}, refused{response.Result.Code, response.Result.Reason}); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
			message := response.Result.Message
			decision, _, _ := strings.Cut(message[strings.LastIndex(message, "[")+1:], ";")
			for _, part := range []string{"Denied: create secrets checkout/keys is refused: deciding failed", "Next: run this command again in 10 seconds"} {
				if !strings.Contains(message, part) {
					t.Errorf("the message does not say %q: %s", part, message)
				}
			}
			for _, part := range []string{tt.logs, decision} {
				if !strings.Contains(log.String(), part) {
					t.Errorf("the log does not say %q: %s", part, log.String())
				}
			}
			answered, err := json.Marshal(response)
			if err != nil {
				t.Fatal(err)
			}
			if text := string(answered) + log.String(); strings.Contains(text, password) {
				t.Errorf("the answer or the log repeats the secret: %s", text)
			}
		})
	}
}

func TestWithoutPoliciesTheEnforcingEntryRefuses(t *testing.T) {
	e := &Enforce{Store: &policystore.Store{}, Now: func() time.Time { return now }}
	response := e.Handle(t.Context(), secretReview(t, ""))
	if response.Allowed || response.Result.Code != 403 || response.Result.Reason != "PolicyNotLoaded" {
		t.Errorf("got %+v, want PolicyNotLoaded", response.Result)
	}
}
