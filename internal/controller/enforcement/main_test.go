package enforcement_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
	"stepbeyond.dev/stepbeyond/policy"
)

var (
	// cluster is the control plane that the tests share.
	cluster *env.Env
	// kubeconfig of an administrator, who stands for the manager.
	kubeconfig *rest.Config
	// k8s reads and writes past any cache.
	k8s client.WithWatch
	// answering decides whether the webhook server answers; a test that sets it to false sets it back.
	answering atomic.Bool
	endpoint  admission.Endpoint
)

// manager is the administrator's username.
const manager = "admin"

func TestMain(m *testing.M) { env.Main(m, prepare) }

func prepare(ctx context.Context, plane *env.Env) (err error) {
	log.SetLogger(logr.Discard()) // what the controllers would say is in status, events and metrics
	cluster, kubeconfig = plane, plane.Admin()
	if k8s, err = plane.Client(); err != nil {
		return err
	}
	server := httptest.NewTLSServer(http.HandlerFunc(webhook))
	// The server lives as long as the process: the tests end it by exiting.
	answering.Store(true)
	endpoint = admission.Endpoint{
		URL: server.URL, PathPrefix: "/" + strings.Repeat("ab", 32),
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	return canaryAsShipped(ctx, plane)
}

// canaryAsShipped makes the namespaces and the canary as config/ does.
func canaryAsShipped(ctx context.Context, plane *env.Env) error {
	for _, name := range []string{admission.SystemNamespace, admission.CanaryNamespace} {
		if err := k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	objects, err := env.Read("config/rbac/canary.yaml")
	if err != nil {
		return err
	}
	return plane.Apply(ctx, objects...)
}

// webhook refuses like the manager's own for want of a session, and lets writes of our own kinds pass.
func webhook(w http.ResponseWriter, request *http.Request) {
	if !answering.Load() {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(request.Body)
	var review admissionv1.AdmissionReview
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err != nil || review.Request == nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if strings.HasSuffix(request.URL.Path, admission.PathEnforce) {
		response.Allowed = false
		response.Result = &metav1.Status{
			Code: http.StatusForbidden, Reason: metav1.StatusReason(policy.ReasonNoSession), Message: "Denied: no session.",
		}
	}
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// fixed is an endpoint that never changes.
type fixed admission.Endpoint

func (f fixed) Endpoint(context.Context) (admission.Endpoint, error) {
	return admission.Endpoint(f), nil
}

func (f fixed) Changed() <-chan struct{} { return nil }
