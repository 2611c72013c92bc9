package main

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Kinds of an answer that is neither success nor admission's: the API server itself is not there, or not yet, or cannot
// read or write.
const (
	kindNoAnswer = "no answer"
	kindStarting = "starting"
	kindStorage  = "storage"
)

// answer is what the client of one request learned.
type answer struct {
	// Code is the HTTP status; 0 without an answer.
	Code int
	// Admission tells that a webhook or a policy refused, or that the API server could not call a webhook.
	Admission bool
	// Floor tells that it was a ValidatingAdmissionPolicy of ours.
	Floor bool
	// Away is the kind of an answer that says nothing about admission; empty for all others.
	Away string
	// Unstamped tells that the request passed without the manager.
	Unstamped bool
	// Class that the manager gave, and the grant that it named.
	Class, Grant string
	Message      string
}

func (a answer) passed() bool { return a.Code == http.StatusOK }

const causePrefix = "stepbeyond.dev/"

func understand(err error) answer {
	if err == nil {
		return answer{Code: http.StatusOK}
	}
	if errors.Is(err, errUnstamped) {
		return answer{Code: http.StatusOK, Unstamped: true}
	}
	got := answer{Message: err.Error()}
	var answered apierrors.APIStatus
	if !errors.As(err, &answered) || answered.Status().Code == 0 {
		got.Away = kindNoAnswer
		return got
	}
	status := answered.Status()
	got.Code = int(status.Code)
	got.Floor = strings.Contains(status.Message, "ValidatingAdmissionPolicy 'stepbeyond-floor-")
	got.Admission = got.Floor || mentions(status.Message, "admission webhook", "failed calling webhook", "ValidatingAdmissionPolicy")
	if !got.Admission {
		got.Away = away(got.Code, status.Message)
	}
	if status.Details == nil {
		return got
	}
	for _, cause := range status.Details.Causes {
		switch strings.TrimPrefix(string(cause.Type), causePrefix) {
		case "Class":
			got.Class = cause.Message
		case "Grant":
			got.Grant = cause.Message
		}
	}
	return got
}

// away sorts what an API server answers that starts, stops or has no storage. One that starts knows no ServiceAccounts
// and no roles yet, and its admission says that it is not ready.
func away(code int, message string) string {
	switch {
	case mentions(message, "etcdserver", "context deadline exceeded", "rpc error", "transport is closing", "request timed out"),
		code == http.StatusGatewayTimeout:
		return kindStorage
	case code == http.StatusUnauthorized, code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable,
		code == http.StatusForbidden && mentions(message, "not yet ready", "cannot ", "RBAC:"),
		code == http.StatusNotFound && mentions(message, "could not find the requested resource"):
		return kindStarting
	default:
		return ""
	}
}

func mentions(text string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
