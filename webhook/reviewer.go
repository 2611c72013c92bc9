package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// maxReview bounds a review in bytes: two objects of at most 3 MiB each, and the rest of the request.
const maxReview = 7 << 20

// Reviewer serves a handler to the API server, as admission.Webhook of controller-runtime does. Every write of an agent
// waits for it, so it reads a review in one pass, objects included, and makes a logger only when there is something to
// say. The handler finds the objects decoded: decode takes them as they are.
type Reviewer struct {
	Handler admission.Handler
}

// review is admissionv1.AdmissionReview with decoded objects: the shallower fields hide those of the request.
type review struct {
	metav1.TypeMeta `json:",inline"`
	Request         *struct {
		admissionv1.AdmissionRequest
		Object    map[string]any `json:"object"`
		OldObject map[string]any `json:"oldObject"`
		Options   map[string]any `json:"options"`
	} `json:"request"`
}

var (
	errNotJSON   = errors.New("the review is not application/json")
	errTooLarge  = fmt.Errorf("the review has more than %d bytes", maxReview)
	errNotReview = errors.New("the body is not an AdmissionReview of admission.k8s.io/v1")
)

// ServeHTTP answers one review. What is no review gets a status that the API server takes for a failed call, and so does
// a panic; neither answer holds anything of the request.
func (r *Reviewer) ServeHTTP(w http.ResponseWriter, httpRequest *http.Request) {
	logger := ctrl.LoggerFrom(httpRequest.Context())
	defer func() {
		if p := recover(); p != nil {
			// The value of a panic can hold request data: it is named by its type only.
			logger.Error(fmt.Errorf("panic of type %T", p), "Reviewing failed")
			http.Error(w, "the review failed", http.StatusInternalServerError)
		}
	}()
	req, err := readReview(httpRequest)
	if err != nil {
		logger.Error(err, "The request is no admission review")
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := r.Handler.Handle(httpRequest.Context(), req)
	if err := response.Complete(req); err != nil {
		reviewLogger(logger, &req).Error(err, "Encoding the patch of an answer failed")
		http.Error(w, "the answer could not be encoded", http.StatusInternalServerError)
		return
	}
	answer := admissionv1.AdmissionReview{Response: &response.AdmissionResponse}
	answer.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(&answer); err != nil {
		reviewLogger(logger, &req).Error(err, "Writing an answer failed")
	}
}

// readReview takes the review out of a request. Errors hold nothing of its content.
func readReview(httpRequest *http.Request) (admission.Request, error) {
	if media, _, err := mime.ParseMediaType(httpRequest.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return admission.Request{}, errNotJSON
	}
	body, err := io.ReadAll(io.LimitReader(httpRequest.Body, maxReview+1))
	if err != nil {
		return admission.Request{}, fmt.Errorf("read review: %w", err)
	}
	if len(body) > maxReview {
		return admission.Request{}, errTooLarge
	}
	var got review
	if err := utiljson.Unmarshal(body, &got); err != nil {
		return readUndecoded(body)
	}
	if got.Request == nil || got.APIVersion != admissionv1.SchemeGroupVersion.String() || got.Kind != "AdmissionReview" {
		return admission.Request{}, errNotReview
	}
	request := got.Request.AdmissionRequest
	for _, part := range []struct {
		to   *runtime.RawExtension
		from map[string]any
	}{{&request.Object, got.Request.Object}, {&request.OldObject, got.Request.OldObject}, {&request.Options, got.Request.Options}} {
		if part.from != nil {
			part.to.Object = &unstructured.Unstructured{Object: part.from}
		}
	}
	return admission.Request{AdmissionRequest: request}, nil
}

// readUndecoded is for a review with an object that is none: it is the handler's to refuse, with the field that is wrong.
func readUndecoded(body []byte) (admission.Request, error) {
	var got admissionv1.AdmissionReview
	if err := utiljson.Unmarshal(body, &got); err != nil || got.Request == nil ||
		got.APIVersion != admissionv1.SchemeGroupVersion.String() || got.Kind != "AdmissionReview" {
		return admission.Request{}, errNotReview
	}
	return admission.Request{AdmissionRequest: *got.Request}, nil
}

// reviewLogger says which request a line of the log is about.
func reviewLogger(logger logr.Logger, req *admission.Request) logr.Logger {
	return admission.DefaultLogConstructor(logger.WithName("admission"), req)
}
