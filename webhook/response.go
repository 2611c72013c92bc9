package webhook

import (
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"stepbeyond.dev/stepbeyond/policy"
)

// Types of status.details.causes, for clients that do not want to parse a sentence. The message of each is one word of
// the vocabulary or a name, but that of Next: the sentence that the message of the status ends with.
const (
	causeClass    metav1.CauseType = "stepbeyond.dev/Class"
	causeVerdict  metav1.CauseType = "stepbeyond.dev/Verdict"
	causeReason   metav1.CauseType = "stepbeyond.dev/Reason"
	causeRule     metav1.CauseType = "stepbeyond.dev/Rule"
	causeGrant    metav1.CauseType = "stepbeyond.dev/Grant"
	causeNext     metav1.CauseType = "stepbeyond.dev/Next"
	causeDecision metav1.CauseType = "stepbeyond.dev/Decision"
)

// respond turns a decision into an admission response.
func respond(d *policy.Decision, op *policy.Operation, decisionID string) admission.Response {
	response := admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Allowed: d.Verdict == policy.VerdictAllow, AuditAnnotations: annotations(d, decisionID),
	}}
	if response.Allowed {
		response.Warnings = warnings(d, decisionID)
		return response
	}
	response.Result = &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReason(d.Reason.Status()),
		Message: message(d, op, decisionID),
		Details: &metav1.StatusDetails{
			Name: op.Target.Name, Group: op.Target.Group, Kind: op.Target.Resource, Causes: causes(d, op, decisionID),
		},
	}
	return response
}

// warnings are what the agent's kubectl prints beside a success: disclosures, and rules that only warn.
func warnings(d *policy.Decision, decisionID string) []string {
	var lines []string
	for _, disclosure := range d.Disclosures {
		lines = append(lines, disclosure+" ["+decisionID+"]")
	}
	for _, w := range d.WouldBe {
		if w.Enforcement == policy.EnforcementWarn {
			lines = append(lines, "rule "+w.Rule+" will make this "+w.Class.String()+" once it is enforced ["+decisionID+"]")
		}
	}
	return lines
}

// annotations go to the API server's audit log, under the entry's name.
func annotations(d *policy.Decision, decisionID string) map[string]string {
	a := map[string]string{
		"class": d.Class.String(), "verdict": string(d.Verdict), "reason": string(d.Reason), "decision": decisionID,
	}
	if rule := firstRule(d); rule != "" {
		a["rule"] = rule
	}
	if grant := grantName(d); grant != "" {
		a["grant"] = grant
	}
	return a
}

const (
	// maxReference bounds the name of a rule in the brackets that end a message.
	maxReference = 80
	grantPrefix  = "permissiongrant/"
)

// message is the decision's sentence. In the brackets that end it stand the decision and, for who reads the sentence alone,
// what it does not say by itself: the reason, the rule and the grant.
func message(d *policy.Decision, op *policy.Operation, decisionID string) string {
	references := []string{string(d.Reason)}
	if rule := firstRule(d); rule != "" && len(rule) <= maxReference {
		references = append(references, "rule "+rule)
	}
	if grant := grantName(d); grant != "" {
		references = append(references, grantPrefix+grant)
	}
	// With all of them the sentence is at its shortest: what it says then, it says with fewer too.
	sentence := d.Message(op, strings.Join(append([]string{decisionID}, references...), "; "))
	sentence = sentence[:strings.LastIndex(sentence, " [")]
	end := []string{decisionID}
	for _, reference := range references {
		if !strings.Contains(sentence, strings.TrimPrefix(reference, grantPrefix)) {
			end = append(end, reference)
		}
	}
	return d.Message(op, strings.Join(end, "; "))
}

func causes(d *policy.Decision, op *policy.Operation, decisionID string) []metav1.StatusCause {
	list := []metav1.StatusCause{
		{Type: causeClass, Message: d.Class.String()},
		{Type: causeVerdict, Message: string(d.Verdict)},
		{Type: causeReason, Message: string(d.Reason)},
		{Type: causeDecision, Message: decisionID},
	}
	if rule := firstRule(d); rule != "" {
		list = append(list, metav1.StatusCause{Type: causeRule, Message: rule})
	}
	if grant := grantName(d); grant != "" {
		list = append(list, metav1.StatusCause{Type: causeGrant, Message: grant})
	}
	return append(list, metav1.StatusCause{Type: causeNext, Message: d.NextStep(op)})
}

func firstRule(d *policy.Decision) string {
	for i := range d.Details {
		if d.Details[i].Rule != "" {
			return d.Details[i].Rule
		}
	}
	return ""
}

// grantName is the grant that the reader should look at.
func grantName(d *policy.Decision) string {
	switch {
	case d.Grant == nil:
		return ""
	case d.Grant.Successor != "":
		return d.Grant.Successor
	default:
		return d.Grant.Name
	}
}
