package protocol_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/policy"
)

// rawOf is an object as a review carries it.
func rawOf(t *testing.T, object any) runtime.RawExtension {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: text}
}

// review of the agent's change of the selector, as the API server would send it on that version of the Service.
func (s *scene) review(t *testing.T, uid types.UID, old *corev1.Service) *admissionv1.AdmissionRequest {
	t.Helper()
	changed := old.DeepCopy()
	changed.Spec.Selector = map[string]string{"app": "canary"}
	pod := &s.home.pod
	return &admissionv1.AdmissionRequest{
		UID: uid, Operation: admissionv1.Update, Namespace: s.home.namespace, Name: s.name,
		Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Service"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "services"},
		Object: rawOf(t, changed), OldObject: rawOf(t, old),
		UserInfo: authenticationv1.UserInfo{Username: s.home.agents[0].username, Extra: map[string]authenticationv1.ExtraValue{
			"authentication.kubernetes.io/credential-id": {"JTI=1"},
			"authentication.kubernetes.io/pod-name":      {pod.Name},
			"authentication.kubernetes.io/pod-uid":       {string(pod.UID)},
		}},
	}
}

// stored is the Service as it is now.
func (s *scene) stored(t *testing.T) *corev1.Service {
	t.Helper()
	object := &corev1.Service{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: s.home.namespace, Name: s.name}, object); err != nil {
		t.Fatal(err)
	}
	object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}
	return object
}

// poster posts reviews to one replica, as whoever has learned its secret path could.
type poster struct {
	https *http.Client
	url   url.URL
}

func posters(t *testing.T) []*poster {
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
	at, err := url.Parse(*entry.ClientConfig.URL)
	if err != nil {
		t.Fatal(err)
	}
	var all []*poster
	for _, r := range replicas {
		p := &poster{https: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}}, url: *at}
		p.url.Host = r.WebhookAddress()
		t.Cleanup(p.https.CloseIdleConnections)
		all = append(all, p)
	}
	return all
}

// post gives the answer to a review; one without an answer for lack of time is posted again.
func (p *poster) post(t *testing.T, request *admissionv1.AdmissionRequest) (got answer) {
	t.Helper()
	review := admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request}
	eventually(t, func() error {
		post, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, p.url.String(), bytes.NewReader(rawOf(t, review).Raw))
		if err != nil {
			return err
		}
		post.Header.Set("Content-Type", "application/json")
		response, err := p.https.Do(post)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		var answered admissionv1.AdmissionReview
		if err := json.NewDecoder(response.Body).Decode(&answered); err != nil {
			return err
		}
		if got = (answer{}); !answered.Response.Allowed {
			got = understand(&refusedReview{answered.Response.Result})
		}
		if got.word == string(policy.ReasonUndecided) {
			return &refusedReview{answered.Response.Result}
		}
		return nil
	})
	return got
}

// refusedReview is the status of a review as a client would see it.
type refusedReview struct{ status *metav1.Status }

func (r *refusedReview) Error() string         { return r.status.Message }
func (r *refusedReview) Status() metav1.Status { return *r.status }

// attempts of the scene's grant, by review.
func (s *scene) attempts(t *testing.T) []types.UID {
	t.Helper()
	var reviews []types.UID
	for _, use := range s.home.grant(t, s.grant).Status.Uses {
		for _, a := range use.Attempts {
			reviews = append(reviews, a.ReviewUID)
		}
	}
	return reviews
}

// A second API server whose cache lags sends reviews on a version that is no longer stored.
//
// Proves G-5, G-2.
func TestAReviewOnAnOlderVersionReservesNothing(t *testing.T) {
	s := newScene(t, familyOf(t, "patch").in("attacks"))
	s.approve(t)
	older := s.stored(t)
	if err := admin.Status().Patch(t.Context(), s.target(), conditionPatch("True")); err != nil {
		t.Fatal(err)
	}
	for i, p := range posters(t) {
		if got := p.post(t, s.review(t, types.UID("older-"+s.name), older)); got.word != string(policy.ReasonStaleRead) {
			t.Errorf("replica %d: %q %s, want %s", i+1, got.word, got.message, policy.ReasonStaleRead)
		}
	}
	if reviews := s.attempts(t); len(reviews) > 0 {
		t.Errorf("attempts of %v, want none", reviews)
	}
	if got := posters(t)[1].post(t, s.review(t, types.UID("current-"+s.name), s.stored(t))); !got.succeeded() {
		t.Errorf("the same on the stored version: %q %s", got.word, got.message)
	}
	if diff := cmp.Diff([]types.UID{types.UID("current-" + s.name)}, s.attempts(t)); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	// Nobody had sent the request that this review spoke of, so the approval is still good for the agent's own.
	s.persist(t)
	if end := s.verify(t); end.effects != 1 {
		t.Errorf("%d effects, want one", end.effects)
	}
	s.clear(t)
}

// Whoever posts a review twice, or an old one again, changes nothing: not at the replica that answered it, not at the
// other one.
//
// Proves G-5.
func TestAForgedReviewThatComesTwiceIsOneAttempt(t *testing.T) {
	s := newScene(t, familyOf(t, "patch").in("attacks"))
	s.approve(t)
	uid := types.UID("forged-" + s.name)
	forged := s.review(t, uid, s.stored(t))
	for i, p := range append(posters(t), posters(t)...) {
		if got := p.post(t, forged); !got.succeeded() {
			t.Errorf("post %d: %q %s, want the same answer each time", i+1, got.word, got.message)
		}
	}
	if diff := cmp.Diff([]types.UID{uid}, s.attempts(t)); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	s.persist(t)
	if n := s.count(t); n != 1 {
		t.Fatalf("%d effects of the agent's own request, want one", n)
	}
	s.settled(t)
	before := s.attempts(t)
	for i, p := range posters(t) {
		if got := p.post(t, forged); got.word != string(policy.ReasonStaleRead) {
			t.Errorf("replica %d after the use: %q %s, want %s", i+1, got.word, got.message, policy.ReasonStaleRead)
		}
		renewed := s.review(t, types.UID("renewed-"+s.name), s.stored(t))
		if got := p.post(t, renewed); got.word != string(policy.ReasonGrantUsed) && got.word != string(policy.ReasonPermissionPending) {
			t.Errorf("replica %d, the same on the reverted version: %q %s, want a new question", i+1, got.word, got.message)
		}
	}
	if diff := cmp.Diff(before, s.attempts(t)); diff != "" {
		t.Errorf("attempts after the use (-before +after):\n%s", diff)
	}
	if end := s.verify(t); end.effects != 1 {
		t.Errorf("%d effects, want one", end.effects)
	}
	s.clear(t)
}
