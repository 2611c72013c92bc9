package main

import (
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Verdicts of a row. The first four are the engine's; the others say that it was not asked or could not answer.
const (
	verdictAllow       = "Allow"
	verdictPending     = "Pending"
	verdictHeld        = "Held"
	verdictDeny        = "Deny"
	verdictUnavailable = "Unavailable"
	verdictFailed      = "Failed"
)

// byRBAC stands in the column "by" for the API server's own authorization.
const byRBAC = "RBAC"

const (
	enforcer    = "enforce.stepbeyond.dev"
	floorPrefix = "stepbeyond-floor-"
	// causePrefix starts the type of every cause in a refusal's details that is ours.
	causePrefix = "stepbeyond.dev/"
)

var (
	webhookDenied = regexp.MustCompile(`admission webhook "([^"]+)" denied the request: (\w+)`)
	policyDenied  = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request: (\w+)`)
	webhookFailed = regexp.MustCompile(`failed calling webhook "([^"]+)"`)
	rbacDenied    = regexp.MustCompile(`User "[^"]+" cannot `)
	printedReason = regexp.MustCompile(`Error from server \((\w+)\)`)
	parenthesis   = regexp.MustCompile(`denied (?:the )?request: [^()]*\(([^()]*)\)`)
	disclosure    = regexp.MustCompile(`(?m)^Warning: (disclosed: .*?)(?: \[[^\]]*\])?$`)
	grantName     = regexp.MustCompile(`pg-[a-z2-7]+(?:-[0-9]+)?`)
)

// verdictWords are the words that a message of ours begins with.
var verdictWords = map[string]string{
	"Pending": verdictPending, "Held": verdictHeld, "Forbidden": verdictDeny, "Denied": verdictDeny,
	"spec": verdictDeny, // bad input of a person is answered with the path of the field
}

// answer is what one run of a step's command line brought.
type answer struct {
	output string // what kubectl printed, both streams
	failed bool   // the command ended with an error
	events []auditv1.Event
}

// observe reads class, verdict and reasons of one answer: from the printed text what a person or model can read there,
// and the class, which no text carries, from the record that the API server keeps of the request.
func observe(a answer, says string) row {
	var r row
	r.Verdict, r.By = verdictAllow, ""
	if a.failed {
		r.Verdict, r.By = refusal(a.output)
		r.Reason = reason(a)
	}
	r.Class = class(a.events, r)
	switch {
	case says != "":
		r.Because = group(regexp.MustCompile(says), a.output)
	case a.failed:
		r.Because = group(parenthesis, a.output)
	default:
		r.Because = group(disclosure, a.output)
	}
	return r
}

// refusal tells who refused and with which word.
func refusal(output string) (verdict, by string) {
	for _, denied := range []*regexp.Regexp{policyDenied, webhookDenied} {
		if m := denied.FindStringSubmatch(output); m != nil {
			if verdict, ok := verdictWords[m[2]]; ok {
				return verdict, m[1]
			}
			return verdictFailed, m[1] // not our grammar
		}
	}
	if m := webhookFailed.FindStringSubmatch(output); m != nil {
		return verdictUnavailable, m[1]
	}
	if rbacDenied.MatchString(output) {
		return verdictDeny, byRBAC
	}
	return verdictFailed, ""
}

// reason is the one that kubectl printed, or, where kubectl drops it ("kubectl create KIND" does), the recorded one.
func reason(a answer) string {
	if printed := group(printedReason, a.output); printed != "" {
		return printed
	}
	for _, event := range a.events {
		if s := event.ResponseStatus; s != nil && s.Status == metav1.StatusFailure {
			return string(s.Reason)
		}
	}
	return ""
}

// class takes the class of a refusal of the webhook from the machine-readable causes that the client got, and of
// everything else from the audit annotation. A policy of the floor has neither, and refuses only what is FORBIDDEN.
func class(events []auditv1.Event, r row) string {
	if strings.HasPrefix(r.By, floorPrefix) {
		return "FORBIDDEN"
	}
	for _, event := range events {
		if r.By == enforcer && r.Verdict != verdictUnavailable {
			return cause(event.ResponseStatus, "Class")
		}
		if class, ok := event.Annotations[enforcer+"/class"]; ok {
			return class
		}
	}
	return ""
}

func cause(status *metav1.Status, name string) string {
	if status == nil || status.Details == nil {
		return ""
	}
	for _, c := range status.Details.Causes {
		if string(c.Type) == causePrefix+name {
			return c.Message
		}
	}
	return ""
}

func group(pattern *regexp.Regexp, text string) string {
	if m := pattern.FindStringSubmatch(text); m != nil {
		return m[len(m)-1]
	}
	return ""
}
