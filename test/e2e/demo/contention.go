package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// contention makes the worst case of a race for one grant certain instead of lucky, with two webhooks of the demo's own
// on the agent's creation of an Ingress. The starting line, in the mutating phase, holds every request until all have
// arrived, so that all are decided at the same moment. The turnstile, in the validating phase, lets them go to storage
// one after the other and takes the target away before each: whoever was let through has an effect.
type contention struct {
	cluster *cluster
	server  *httptest.Server

	arrivals sync.WaitGroup // of the starting line
	turn     sync.Mutex     // of the turnstile

	// A dry-run passes at once and only shows that the API server calls the webhook.
	startingLineSeen, turnstileSeen atomic.Bool
}

const (
	contentionName   = "demo-contention"
	contendedIngress = "public-web"

	// arrivalTimeout and webhookTimeoutSeconds bound the starting line and the whole queue; the API server itself waits
	// at most 30 s for a webhook.
	arrivalTimeout        = 10 * time.Second
	webhookTimeoutSeconds = 30
	// effectWindow is how long the turnstile waits for the effect of a request that it has let go.
	effectWindow = 300 * time.Millisecond
)

// contend installs the webhooks for n requests; stop removes them.
func (c *cluster) contend(ctx context.Context, n int) (stop func() error, err error) {
	k := &contention{cluster: c}
	k.arrivals.Add(n)
	mux := http.NewServeMux()
	mux.HandleFunc("/starting-line", k.startingLine)
	mux.HandleFunc("/turnstile", k.turnstile)
	k.server = httptest.NewTLSServer(mux)
	stop = func() error {
		defer k.server.Close()
		return k.uninstall(context.WithoutCancel(ctx))
	}
	if err := k.install(ctx); err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

func (k *contention) startingLine(w http.ResponseWriter, r *http.Request) {
	review, err := readReview(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if isDryRun(review) {
		k.startingLineSeen.Store(true)
		allow(w, review)
		return
	}
	k.arrivals.Done()
	all := make(chan struct{})
	go func() { k.arrivals.Wait(); close(all) }()
	select {
	case <-all:
	case <-time.After(arrivalTimeout):
	}
	allow(w, review)
}

func (k *contention) turnstile(w http.ResponseWriter, r *http.Request) {
	review, err := readReview(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if isDryRun(review) {
		k.turnstileSeen.Store(true)
		allow(w, review)
		return
	}
	k.turn.Lock()
	ingresses := k.cluster.admin.NetworkingV1().Ingresses(namespace)
	if err := ingresses.Delete(r.Context(), contendedIngress, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		k.turn.Unlock()
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	allow(w, review)
	go func() {
		defer k.turn.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), effectWindow)
		defer cancel()
		for ctx.Err() == nil {
			if _, err := ingresses.Get(ctx, contendedIngress, metav1.GetOptions{}); err == nil {
				return
			}
		}
	}()
}

func isDryRun(review *admissionv1.AdmissionReview) bool {
	return review.Request.DryRun != nil && *review.Request.DryRun
}

func readReview(r *http.Request) (*admissionv1.AdmissionReview, error) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		return nil, fmt.Errorf("admission review: %w", err)
	}
	if review.Request == nil {
		return nil, errors.New("admission review: no request")
	}
	return &review, nil
}

func allow(w http.ResponseWriter, review *admissionv1.AdmissionReview) {
	answer := admissionv1.AdmissionReview{
		TypeMeta: review.TypeMeta,
		Response: &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true},
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(http.ErrAbortHandler) // the API server has gone away
	}
}

// install registers both webhooks and waits until the API server, which learns of them through a watch, calls them.
func (k *contention) install(ctx context.Context) error {
	startingLine, turnstile := k.configurations()
	registration := k.cluster.admin.AdmissionregistrationV1()
	if _, err := registration.MutatingWebhookConfigurations().Create(ctx, startingLine, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("starting line: %w", err)
	}
	if _, err := registration.ValidatingWebhookConfigurations().Create(ctx, turnstile, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("turnstile: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, effectTimeout)
	defer cancel()
	for {
		out, _ := k.cluster.shell(ctx, agent, "kubectl create --dry-run=server -f manifests/public-ingress.yaml", nil)
		switch {
		case k.startingLineSeen.Load() && k.turnstileSeen.Load():
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("the API server does not call the webhooks of the race: %s", out)
		}
	}
}

func (k *contention) uninstall(ctx context.Context) error {
	registration := k.cluster.admin.AdmissionregistrationV1()
	err := errors.Join(
		registration.MutatingWebhookConfigurations().Delete(ctx, contentionName, metav1.DeleteOptions{}),
		registration.ValidatingWebhookConfigurations().Delete(ctx, contentionName, metav1.DeleteOptions{}),
	)
	if err != nil {
		return fmt.Errorf("webhooks of the race: %w", err)
	}
	return nil
}

func (k *contention) configurations() (*registrationv1.MutatingWebhookConfiguration, *registrationv1.ValidatingWebhookConfiguration) {
	rules := []registrationv1.RuleWithOperations{{
		Operations: []registrationv1.OperationType{registrationv1.Create},
		Rule:       registrationv1.Rule{APIGroups: []string{"networking.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"ingresses"}},
	}}
	agentOnly := []registrationv1.MatchCondition{{Name: "agent", Expression: fmt.Sprintf("request.userInfo.username == %q", agentUser)}}
	meta, versions := metav1.ObjectMeta{Name: contentionName}, []string{"v1"}
	startingLine := &registrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []registrationv1.MutatingWebhook{{
		Name: "starting-line.demo.stepbeyond.dev", ClientConfig: k.client("/starting-line"), Rules: rules, MatchConditions: agentOnly,
		SideEffects: new(registrationv1.SideEffectClassNoneOnDryRun), AdmissionReviewVersions: versions, TimeoutSeconds: new(int32(webhookTimeoutSeconds)),
	}}}
	turnstile := &registrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []registrationv1.ValidatingWebhook{{
		Name: "turnstile.demo.stepbeyond.dev", ClientConfig: k.client("/turnstile"), Rules: rules, MatchConditions: agentOnly,
		SideEffects: new(registrationv1.SideEffectClassNoneOnDryRun), AdmissionReviewVersions: versions, TimeoutSeconds: new(int32(webhookTimeoutSeconds)),
	}}}
	return startingLine, turnstile
}

func (k *contention) client(path string) registrationv1.WebhookClientConfig {
	url := k.server.URL + path
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.server.Certificate().Raw})
	return registrationv1.WebhookClientConfig{URL: &url, CABundle: ca}
}
