package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"stepbeyond.dev/stepbeyond/policy/kube"
)

const reviewOfUpdate = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"review-1",
	"kind":{"group":"","version":"v1","kind":"ConfigMap"},"resource":{"group":"","version":"v1","resource":"configmaps"},
	"requestKind":{"group":"","version":"v1","kind":"ConfigMap"},"requestResource":{"group":"","version":"v1","resource":"configmaps"},
	"name":"note","namespace":"agents","operation":"UPDATE","dryRun":true,
	"userInfo":{"username":"system:serviceaccount:agents:agent","groups":["system:serviceaccounts"],"extra":{"authentication.kubernetes.io/pod-name":["agent-1"]}},
	"object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"note","generation":9007199254740993},"data":{"a":"<2>"},"odd":1.5},
	"oldObject":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"note"},"data":{"a":"1"}},
	"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl"}}}`

const reviewOfDelete = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"review-2",
	"kind":{"group":"","version":"v1","kind":"ConfigMap"},"resource":{"group":"","version":"v1","resource":"configmaps"},
	"namespace":"agents","operation":"DELETE","userInfo":{"username":"someone"},"object":null,
	"oldObject":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"note"}},"options":null}}`

// Proves K-2: what the handlers decide on and what the API server gets do not depend on how a review is read.
func TestAReviewerAnswersAsControllerRuntimeDoes(t *testing.T) {
	responses := map[string]admission.Response{
		"allowed":  admission.Allowed("").WithWarnings("take care"),
		"denied":   admission.Denied("not <now>"),
		"stamping": admission.Patched("", jsonpatch.NewOperation("add", "/metadata/annotations", map[string]any{"a/b": "c"})),
	}
	for what, response := range responses {
		for name, body := range map[string]string{"an update": reviewOfUpdate, "a deletion": reviewOfDelete} {
			t.Run(what+" "+name, func(t *testing.T) {
				var seen []kube.Request
				handler := admission.HandlerFunc(func(_ context.Context, req admission.Request) admission.Response {
					request, err := decode(&req)
					if err != nil {
						t.Error(err)
					}
					seen = append(seen, request)
					return response
				})
				want, _ := serve(t, &admission.Webhook{Handler: handler}, "application/json", body)
				got, _ := serve(t, &Reviewer{Handler: handler}, "application/json", body)
				if got.Code != http.StatusOK || want.Code != http.StatusOK {
					t.Fatalf("status %d, controller-runtime gives %d", got.Code, want.Code)
				}
				if diff := cmp.Diff(answerOf(t, want), answerOf(t, got)); diff != "" {
					t.Errorf("answer (-controller-runtime +ours):\n%s", diff)
				}
				if diff := cmp.Diff(seen[0], seen[1]); diff != "" {
					t.Errorf("request (-controller-runtime +ours):\n%s", diff)
				}
			})
		}
	}
}

// Proves B-1: an object that is none is refused by the handler, which names the field.
func TestAnObjectThatIsNoneIsTheHandlersToRefuse(t *testing.T) {
	var problem error
	handler := admission.HandlerFunc(func(_ context.Context, req admission.Request) admission.Response {
		_, problem = decode(&req)
		return admission.Denied("")
	})
	answer, _ := serve(t, &Reviewer{Handler: handler}, "application/json", strings.Replace(reviewOfDelete, `"object":null`, `"object":"hunter2"`, 1))
	if answer.Code != http.StatusOK || problem == nil || problem.Error() != "object is not a JSON object" {
		t.Errorf("status %d, problem %v", answer.Code, problem)
	}
}

// Proves F-1: what cannot be read is a failed call, which the API server refuses, and nothing of it is echoed.
func TestWhatIsNoReviewIsAFailedCall(t *testing.T) {
	const secret = "hunter2"
	panics := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { panic(secret) })
	never := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		t.Error("the handler was asked")
		return admission.Allowed("")
	})
	tests := []struct {
		name        string
		handler     admission.Handler
		contentType string
		body        string
		want        int
	}{
		{"a handler that panics", panics, "application/json", reviewOfUpdate, http.StatusInternalServerError},
		{"another content type", never, "text/plain", reviewOfUpdate, http.StatusBadRequest},
		{"no content type", never, "", reviewOfUpdate, http.StatusBadRequest},
		{"no JSON", never, "application/json", "{" + secret, http.StatusBadRequest},
		{"an empty body", never, "application/json", "", http.StatusBadRequest},
		{"no request", never, "application/json", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, http.StatusBadRequest},
		{"another version", never, "application/json", strings.Replace(reviewOfUpdate, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), http.StatusBadRequest},
		{"another kind", never, "application/json", strings.Replace(reviewOfUpdate, "AdmissionReview", "TokenReview", 1), http.StatusBadRequest},
		{"more than fits", never, "application/json", reviewOfUpdate + strings.Repeat(" ", maxReview), http.StatusBadRequest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, logged := serve(t, &Reviewer{Handler: tt.handler}, tt.contentType, tt.body)
			if got.Code != tt.want {
				t.Errorf("status %d, want %d", got.Code, tt.want)
			}
			if strings.Contains(got.Body.String()+logged, secret) {
				t.Errorf("the request is echoed: %s%s", got.Body, logged)
			}
			if logged == "" {
				t.Error("nothing was logged")
			}
		})
	}
}

func TestAReviewOfTheLargestSizeIsRead(t *testing.T) {
	allow := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })
	got, _ := serve(t, &Reviewer{Handler: allow}, "application/json; charset=utf-8", reviewOfUpdate+strings.Repeat(" ", maxReview-len(reviewOfUpdate)))
	if got.Code != http.StatusOK {
		t.Errorf("status %d, want %d", got.Code, http.StatusOK)
	}
}

// serve also gives what was logged.
func serve(t *testing.T, handler http.Handler, contentType, body string) (*httptest.ResponseRecorder, string) {
	t.Helper()
	var logged strings.Builder
	logger := funcr.New(func(prefix, args string) { logged.WriteString(prefix + args) }, funcr.Options{})
	request := httptest.NewRequestWithContext(ctrl.LoggerInto(t.Context(), logger), http.MethodPost, "/", bytes.NewBufferString(body))
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder, logged.String()
}

func answerOf(t *testing.T, recorder *httptest.ResponseRecorder) (answer map[string]any) {
	t.Helper()
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func BenchmarkReview(b *testing.B) {
	handler := admission.HandlerFunc(func(_ context.Context, req admission.Request) admission.Response {
		_, _ = decode(&req)
		return admission.Allowed("")
	})
	for name, server := range map[string]http.Handler{
		"controller-runtime": &admission.Webhook{Handler: handler}, "ours": &Reviewer{Handler: handler},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(reviewOfUpdate))
				request.Header.Set("Content-Type", "application/json")
				server.ServeHTTP(httptest.NewRecorder(), request)
			}
		})
	}
}
