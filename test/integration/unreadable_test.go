package integration_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The API server sends no such reviews; the webhook's secret path stands in the webhook configuration, which nobody but
// administrators reads. Whoever calls it all the same, and whatever a future API server sends, is refused, and changes
// nothing.
//
// Proves F-1, B-2.
func TestAReviewThatCannotBeReadOrIsForgedIsRefused(t *testing.T) {
	const ns = "unreadable"
	h := at(t, ns)
	must(t, configMap(ns, "foreign"))
	target := configMap(ns, "foreign")
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(target), target); err != nil {
		t.Fatal(err)
	}
	deletion := func(change func(*corev1.ConfigMap)) func(*admissionv1.AdmissionRequest) {
		return func(r *admissionv1.AdmissionRequest) {
			old := target.DeepCopy()
			change(old)
			r.Operation, r.Resource, r.Kind = admissionv1.Delete, metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"}, metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
			r.Name, r.Object, r.OldObject = old.Name, runtime.RawExtension{}, rawOf(t, old)
		}
	}
	object := func(text string) func(*admissionv1.AdmissionRequest) {
		return func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(text) }
	}
	tests := []struct {
		name   string
		change func(*admissionv1.AdmissionRequest)
		want   outcome
		says   string
	}{
		{"an object that is no object", object(fmt.Sprintf(`%q`, secretWord)), denied("ASK", "Malformed", "Malformed"), "Object is not a JSON object"},
		{"no object", object(`null`), denied("ASK", "Malformed", "Malformed"), "Object: must be an object"},
		{"a field of another type", object(fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":%q},"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i","securityContext":{"privileged":%q}}]}}}}`, ns, secretWord)),
			denied("ASK", "Malformed", "Malformed"), "Object.spec.template.spec.containers[0].securityContext.privileged: must be a boolean"},
		{"an operation that does not exist", func(r *admissionv1.AdmissionRequest) { r.Operation = "PATCH" }, denied("ASK", "Malformed", "Malformed"), "Operation: must be CREATE, UPDATE, DELETE or CONNECT"},
		{"a deletion of a version that is not stored", deletion(func(c *corev1.ConfigMap) { c.ResourceVersion = "1" }), denied("ASK", "StaleRead", "StaleRead"), "read it again"},
		{"a deletion of an object that is not stored", deletion(func(c *corev1.ConfigMap) { c.UID = "another" }), denied("ASK", "StaleRead", "StaleRead"), "read it again"},
		{"a deletion as it is", deletion(func(*corev1.ConfigMap) {}), pending("PermissionPending"), "needs approval by a person"},
	}
	call := webhookClient(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			request := h.deploymentReview(t)
			tt.change(request)
			questions := len(questionsIn(t, ns))
			got := call(t, request)
			tt.want.By = ""
			if diff := cmp.Diff(tt.want, got.outcome); diff != "" {
				t.Errorf("outcome (-want +got):\n%s%s", diff, got.message)
			}
			expectSentence(t, got.message, tt.says)
			if strings.Contains(got.message, secretWord) {
				t.Errorf("the message echoes a value: %s", got.message)
			}
			if asked := len(questionsIn(t, ns)) - questions; (asked == 1) != (tt.want.Verdict == "Pending") {
				t.Errorf("%d questions were asked", asked)
			}
		})
	}
}

// deploymentReview is a review of the agent's creation of a Deployment.
func (h *home) deploymentReview(t *testing.T) *admissionv1.AdmissionRequest {
	t.Helper()
	var pod corev1.Pod
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: h.pod}, &pod); err != nil {
		t.Fatal(err)
	}
	return &admissionv1.AdmissionRequest{
		UID: types.UID("review-" + t.Name()), Operation: admissionv1.Create, Namespace: h.namespace, Name: "web",
		Kind:     metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		Object:   rawOf(t, deployment(h.namespace, "web")),
		UserInfo: authenticationv1.UserInfo{Username: h.agent.username, Extra: map[string]authenticationv1.ExtraValue{
			"authentication.kubernetes.io/credential-id": {"JTI=1"},
			"authentication.kubernetes.io/pod-name":      {pod.Name},
			"authentication.kubernetes.io/pod-uid":       {string(pod.UID)},
		}},
	}
}

func rawOf(t *testing.T, object any) runtime.RawExtension {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: text}
}

// webhookClient calls the enforcing entry as the API server does.
func webhookClient(t *testing.T) func(*testing.T, *admissionv1.AdmissionRequest) attempt {
	t.Helper()
	configuration, err := admin.core.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "stepbeyond", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	entry := configuration.Webhooks[0]
	if entry.Name != enforcer {
		t.Fatalf("the first entry is %s", entry.Name)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(entry.ClientConfig.CABundle) {
		t.Fatal("the CA bundle holds no certificate")
	}
	https := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}}
	t.Cleanup(https.CloseIdleConnections)
	return func(t *testing.T, request *admissionv1.AdmissionRequest) attempt {
		t.Helper()
		review := admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request}
		post, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, *entry.ClientConfig.URL, bytes.NewReader(rawOf(t, review).Raw))
		if err != nil {
			t.Fatal(err)
		}
		post.Header.Set("Content-Type", "application/json")
		response, err := https.Do(post)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var answered admissionv1.AdmissionReview
		if err := json.NewDecoder(response.Body).Decode(&answered); err != nil || answered.Response == nil {
			t.Fatalf("answer: %v, HTTP %s", err, response.Status)
		}
		if answered.Response.Allowed {
			return attempt{outcome: allowed("", "")}
		}
		return understand(&refusedReview{answered.Response.Result}, nil)
	}
}

// refusedReview is the status of a review as a client would see it.
type refusedReview struct{ status *metav1.Status }

func (r *refusedReview) Error() string         { return r.status.Message }
func (r *refusedReview) Status() metav1.Status { return *r.status }
