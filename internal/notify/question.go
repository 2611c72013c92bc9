package notify

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/screen"
)

// Bounds of what is told about one question. The whole stands in the grant, where the digest covers it.
const (
	maxWhat  = 300
	maxName  = 128
	maxSays  = 300
	maxLine  = 200
	maxLines = 8
)

// Question is what people are told about a grant: who, what and why, how long, and how to answer. Whatever somebody else
// wrote is one bounded line in which every character is seen. It holds nothing of the change itself: that can be anybody's
// data, and the channel may be read by more people than the grant.
type Question struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Digest    string `json:"digest"`
	// State is Pending, or Approved of an approval that nobody has used yet.
	State     string `json:"state"`
	Approvals string `json:"approvals"`
	// Needs are the requirements on the approvers.
	Needs   []string `json:"needs"`
	Session string   `json:"session"`
	// User is the human that the session works for, Requester the authenticated caller.
	User      string   `json:"user,omitempty"`
	Requester string   `json:"requester"`
	What      string   `json:"what"`
	Why       []string `json:"why"`
	Effects   []string `json:"effects,omitempty"`
	Undo      []string `json:"undo,omitempty"`
	// Says are the agent's own words, which nobody has checked.
	Says           string    `json:"says,omitempty"`
	AskedTime      time.Time `json:"askedTime"`
	ExpirationTime time.Time `json:"expirationTime"`
	Commands       Commands  `json:"commands"`
}

// Commands answer exactly this question. They hold names and the digest alone, which need no quoting in a shell.
type Commands struct {
	Show string `json:"show"`
	// Approve and ApproveWithKubectl do the same; the latter needs no plugin. Empty when nothing is left to answer.
	Approve            string `json:"approve,omitempty"`
	ApproveWithKubectl string `json:"approveWithKubectl,omitempty"`
	Deny               string `json:"deny,omitempty"`
}

// QuestionOf tells of a grant that is open, whose status is the one of this moment.
func QuestionOf(g *v1alpha1.PermissionGrant) *Question {
	request := &g.Spec.Request
	q := &Question{
		Namespace: g.Namespace, Name: g.Name, UID: string(g.UID), Digest: request.Digest,
		State: string(g.Status.State), Approvals: g.Status.Approvals,
		Session: screen.Line(request.Session.Namespace+"/"+request.Session.Name, maxName),
		User:    screen.Line(request.Requester.OnBehalfOf, maxName), Requester: screen.Line(request.Requester.Username, maxName),
		What: screen.Line(request.Operation.Summary, maxWhat), Says: screen.Line(g.Spec.RequesterComment, maxSays),
		Effects: lines(request.Effects), Undo: lines(request.Undo),
		AskedTime: g.CreationTimestamp.UTC(), ExpirationTime: timeOf(g.Status.ExpirationTime),
	}
	for i := range request.Requirements {
		q.Needs = append(q.Needs, need(&request.Requirements[i]))
	}
	q.Needs = lines(q.Needs)
	q.Why = lines(reasons(request))
	q.Commands.Show = fmt.Sprintf("kubectl stepbeyond show %s -n %s", g.Name, g.Namespace)
	if g.Status.State == v1alpha1.GrantPending {
		q.Commands.Approve = fmt.Sprintf("kubectl stepbeyond approve %s -n %s --digest %s", g.Name, g.Namespace, request.Digest)
		q.Commands.Deny = fmt.Sprintf("kubectl stepbeyond deny %s -n %s", g.Name, g.Namespace)
		q.Commands.ApproveWithKubectl = g.Status.ApproveCommand
	}
	return q
}

func reasons(request *v1alpha1.PermissionRequest) []string {
	var all []string
	for i := range request.Rules {
		all = append(all, request.Rules[i].Reason+", rule "+request.Rules[i].Name)
	}
	for i := range request.Facts {
		f := &request.Facts[i]
		text := fmt.Sprintf("%s %s (%s)", f.Fact, f.Value, f.Provenance)
		if f.Why != "" {
			text += ": " + f.Why
		}
		all = append(all, text)
	}
	return all
}

func need(r *v1alpha1.GrantRequirement) string {
	people := fmt.Sprintf("%d people", r.Required)
	if r.Required == 1 {
		people = "1 person"
	}
	if len(r.ApproverGroups) > 0 {
		people += " of " + strings.Join(r.ApproverGroups, " or ")
	}
	return people + " (" + r.Name + ")"
}

// lines bounds a list and says how much is missing.
func lines(list []string) []string {
	shown := make([]string, 0, min(len(list), maxLines))
	for i, line := range list {
		if i == maxLines-1 && len(list) > maxLines {
			return append(shown, fmt.Sprintf("... (%d more lines)", len(list)-i))
		}
		shown = append(shown, screen.Line(line, maxLine))
	}
	return shown
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
