package identity

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

// DefaultAccount is the ServiceAccount of a pod that names none. It is governed like every other and needs no template to
// work for an agent: then it has what the agent gives it.
const DefaultAccount = "default"

// Opening is a pod that no session covers, and everything that decides which one it gets. The webhook answers with it
// until the object exists, and the session controller creates exactly it, so that both have one answer.
type Opening struct {
	Pod  *corev1.Pod
	Root v1alpha1.RootOwner
	// Snapshot of the policies.
	Snapshot *policystore.Snapshot
	// Sessions of the pod's namespace, ended ones too.
	Sessions []v1alpha1.AgentSession
	Now      time.Time
}

// Cause is why a pod gets no session.
type Cause string

// Causes.
const (
	// CauseNoTemplate: no session template names the pod's ServiceAccount.
	CauseNoTemplate Cause = "NoTemplate"
	// CauseUserMissing: the template takes the user from an annotation that the pod does not have.
	CauseUserMissing Cause = "UserMissing"
	// CauseNameTaken: another workload's session has the name.
	CauseNameTaken Cause = "NameTaken"
	// CauseSessionCap: the namespace has as many live sessions as its profile allows.
	CauseSessionCap Cause = "SessionCap"
	// CauseWriterUnknown: an agent wrote the pod, and its session does not exist, or not yet.
	CauseWriterUnknown Cause = "WriterUnknown"
	// CauseWriterEnded: an agent wrote the pod, and its session or one above it has ended.
	CauseWriterEnded Cause = "WriterEnded"
	// CauseChildCap: a session above has as many live descendants as it may, or too many are above.
	CauseChildCap Cause = "ChildCap"
	// CausePredecessor: the session of an earlier pod of the same workload is suspended, or was ended before its pod went.
	CausePredecessor Cause = "Predecessor"
	// CausePodGoing: the pod is being deleted, so no session is made for it any more.
	CausePodGoing Cause = "PodGoing"
	// CauseNothingInCommon: the writer's authority and that of the pod's ServiceAccount have nothing in common.
	CauseNothingInCommon Cause = "NothingInCommon"
)

// Refusal is why a pod gets no session.
type Refusal struct {
	Cause Cause
	// Text is the same in words.
	Text string
}

func refuse(cause Cause, format string, args ...any) *Refusal {
	return &Refusal{Cause: cause, Text: fmt.Sprintf(format, args...)}
}

// terms are the template of the pod's ServiceAccount, nil without one, and the settings of its namespace. ok is false
// when the policies give such a pod no session at all.
func (o *Opening) terms() (template *v1alpha1.SessionTemplate, settings policystore.Namespace, ok bool) {
	account := o.Pod.Spec.ServiceAccountName
	if found, named := o.Snapshot.Template(o.Pod.Namespace, account); named {
		template = &found
	}
	settings, _ = o.Snapshot.Namespace(o.Pod.Namespace)
	byAgent := o.Pod.Annotations[v1alpha1.AnnotationTemplateWriter] != "" && account == DefaultAccount
	return template, settings, settings.Policy != nil && (template != nil || byAgent)
}

// Eligible tells whether the policies give such a pod a session at all. It needs neither root nor sessions.
func (o *Opening) Eligible() bool {
	_, _, ok := o.terms()
	return ok
}

// Session is the session that the pod gets, or why it gets none.
func (o *Opening) Session() (*v1alpha1.AgentSession, *Refusal) {
	template, settings, ok := o.terms()
	if !ok {
		return nil, refuse(CauseNoTemplate, "no session template names ServiceAccount %s", o.Pod.Spec.ServiceAccountName)
	}
	if o.Pod.DeletionTimestamp != nil {
		return nil, refuse(CausePodGoing, "the pod is being deleted and never had a session")
	}
	caps := settings.Policy.Spec.WithProfileDefaults().Caps
	if refusal := o.predecessor(); refusal != nil {
		return nil, refusal
	}
	var session *v1alpha1.AgentSession
	if writer := o.Pod.Annotations[v1alpha1.AnnotationTemplateWriter]; template != nil && (writer == "" || o.ownWorkload(writer)) {
		session = Derive(*template, settings, o.Pod, o.Root, o.Now)
	} else {
		child, refusal := o.child(writer, template, caps)
		if refusal != nil {
			return nil, refusal
		}
		session = child
	}
	if refusal := o.placeFor(session, caps); refusal != nil {
		return nil, refusal
	}
	return session, nil
}

// placeFor refuses a session that the controller could never make, so that no caller acts in one.
func (o *Opening) placeFor(session *v1alpha1.AgentSession, caps *v1alpha1.Caps) *Refusal {
	if session.Spec.UserName == "" {
		return refuse(CauseUserMissing, "the pod does not say whose work it does (annotation %s)", v1alpha1.AnnotationUser)
	}
	live := int32(0)
	for i := range o.Sessions {
		if o.Sessions[i].Name == session.Name {
			return refuse(CauseNameTaken, "session %s belongs to another workload", session.Name)
		}
		if !Ended(&o.Sessions[i], o.Now) {
			live++
		}
	}
	if limit := *caps.MaxSessions; live >= limit {
		return refuse(CauseSessionCap, "the namespace has %d of %d sessions (caps.maxSessions)", live, limit)
	}
	return nil
}

// ownWorkload tells that the writer of the pod's template is a session of an earlier pod of this very workload: an agent
// that rewrites what it runs in stays what it is, also where each pod has a session.
func (o *Opening) ownWorkload(writer string) bool {
	return slices.ContainsFunc(o.Sessions, func(s v1alpha1.AgentSession) bool {
		return key(s.Namespace, s.Name) == writer && s.Labels[v1alpha1.LabelRootOwner] == string(o.Root.UID)
	})
}

// predecessor keeps a suspension, an end and a deadline with the workload: neither a pod that dies and comes back nor
// another agent that rewrites the workload is a way out of them. A session that ended because its pod or workload went,
// or with its parent, holds nobody back.
func (o *Opening) predecessor() *Refusal {
	for i := range o.Sessions {
		earlier := &o.Sessions[i]
		follows := earlier.Spec.Identity.RootOwner != nil && earlier.Spec.Identity.RootOwner.UID == o.Root.UID
		if !follows && earlier.Labels[v1alpha1.LabelRootOwner] != string(o.Root.UID) {
			continue
		}
		ready := meta.FindStatusCondition(earlier.Status.Conditions, string(v1alpha1.ConditionReady))
		wentWithPod := ready != nil && ready.Reason == string(v1alpha1.ReasonOwnerGone)
		switch {
		case earlier.Status.State == v1alpha1.SessionSuspended:
			return refuse(CausePredecessor, "session %s of an earlier pod of this workload is suspended", earlier.Name)
		case earlier.Spec.Parent == nil && Ended(earlier, o.Now) && !wentWithPod:
			return refuse(CausePredecessor, "session %s of an earlier pod of this workload has ended", earlier.Name)
		}
	}
	return nil
}

// child is the session of a pod that an agent wrote: never a fresh one (design section 5).
func (o *Opening) child(writer string, template *v1alpha1.SessionTemplate, caps *v1alpha1.Caps) (*v1alpha1.AgentSession, *Refusal) {
	find := among(o.Sessions)
	var parent *v1alpha1.AgentSession
	if namespace, name, _ := strings.Cut(writer, "/"); namespace == o.Pod.Namespace {
		parent, _ = find(name) // a list gives no error
	}
	if parent == nil {
		return nil, refuse(CauseWriterUnknown, "the pod was written by an agent whose session %s is not here", writer)
	}
	if refusal := PlaceBelow(o.Sessions, parent, caps, o.Now); refusal != nil {
		refusal.Text = fmt.Sprintf("the pod was written by an agent of session %s, and %s", parent.Name, refusal.Text)
		return nil, refusal
	}
	child, ok := o.deriveChild(parent, template, ChildLimit(parent, caps))
	if !ok {
		return nil, refuse(CauseNothingInCommon, "the pod was written by an agent, and its session %s and session template %s have nothing in common", parent.Name, template.Name)
	}
	return child, nil
}

// PlaceBelow tells why a session may have no further child: one that it stands under has ended, or has as many live
// descendants as it may. Children of children count, so that they are no way around a cap. sessions are those of its
// namespace, caps with the profile's defaults.
func PlaceBelow(sessions []v1alpha1.AgentSession, parent *v1alpha1.AgentSession, caps *v1alpha1.Caps, now time.Time) *Refusal {
	standing, _ := StandingOf(parent, among(sessions), now) // a list gives no error
	if standing.State == v1alpha1.SessionEnded {
		return refuse(CauseWriterEnded, "session %s has ended", standing.By)
	}
	above := append([]*v1alpha1.AgentSession{parent}, standing.Ancestors...)
	if len(above) > maxAncestors {
		return refuse(CauseChildCap, "%d sessions stand above it already", len(above))
	}
	for _, ancestor := range above {
		live := int32(0)
		for _, descendant := range Descendants(sessions, ancestor.UID) {
			if !Ended(descendant, now) {
				live++
			}
		}
		if limit := ChildLimit(ancestor, caps); live >= limit {
			return refuse(CauseChildCap, "session %s has %d of %d child sessions (maxChildSessions)", ancestor.Name, live, limit)
		}
	}
	return nil
}
