package identity

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

const (
	maxSessionName = 63 // a session's name is a label value on its grants
	uidSuffix      = 5
	// defaultMaxAge of a session whose template names none (user-view defaults: 48 h).
	defaultMaxAge = 48 * time.Hour
)

// SessionName is the name of a session made from a template: the root owner's name and five characters of its UID, so
// that an owner made anew never meets its predecessor's session.
func SessionName(owner v1alpha1.RootOwner) string { return sessionName(owner.Name, owner.UID) }

// ChildName is the name of a child session: that of the workload's own session, and five characters of the parent's UID.
func ChildName(owner v1alpha1.RootOwner, parent types.UID) string {
	return sessionName(owner.Name, owner.UID, parent)
}

func sessionName(name string, uids ...types.UID) string {
	suffix := ""
	for _, uid := range uids {
		plain := strings.ReplaceAll(string(uid), "-", "")
		suffix += "-" + plain[:min(len(plain), uidSuffix)]
	}
	name = strings.ToLower(name)
	if keep := maxSessionName - len(suffix); len(name) > keep {
		name = strings.TrimRight(name[:keep], "-.")
	}
	return name + suffix
}

// Derive makes the session that a template gives a pod. The webhook answers with it until the object exists, and the
// session controller creates exactly it, so both have one answer.
func Derive(template v1alpha1.SessionTemplate, settings policystore.Namespace, pod *corev1.Pod, root v1alpha1.RootOwner, now time.Time) *v1alpha1.AgentSession {
	identity := v1alpha1.SessionIdentity{Type: v1alpha1.IdentityServiceAccount, ServiceAccountName: template.ServiceAccountName}
	labels := map[string]string{v1alpha1.LabelTemplate: template.Name}
	if template.Lifetime == v1alpha1.SessionLifetimePod {
		labels[v1alpha1.LabelRootOwner] = string(root.UID)
		root = v1alpha1.RootOwner{Kind: "Pod", Name: pod.Name, UID: pod.UID}
		identity.PodName, identity.PodUID = pod.Name, pod.UID
	} else {
		identity.RootOwner = &root
	}
	user := template.User.Name
	if template.User.Source == v1alpha1.UserSourcePodAnnotation {
		// A governed identity that wrote the template has marked it, and a marked pod has a child session.
		user = pod.Annotations[v1alpha1.AnnotationUser]
	}
	return &v1alpha1.AgentSession{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: SessionName(root),
			Labels: labels,
		},
		Spec: v1alpha1.AgentSessionSpec{
			Identity: identity, UserName: user, ModelTier: settings.ModelTier, InitiativeMode: settings.InitiativeMode,
			Adapter: template.Adapter.DeepCopy(), Authority: *template.Authority.DeepCopy(),
			DeadlineTime: deadline(&template, now),
		},
	}
}

func deadline(template *v1alpha1.SessionTemplate, now time.Time) metav1.Time {
	maxAge := time.Duration(template.MaxAgeSeconds) * time.Second
	if maxAge == 0 {
		maxAge = defaultMaxAge
	}
	return metav1.NewTime(now.Add(maxAge).Truncate(time.Second))
}

// MatchesPod tells whether a session covers a pod of that root owner. A pod that an agent wrote is covered by a child of
// the writer's session only, or by the writer's own where the agent wrote the workload that it runs in itself.
func MatchesPod(session *v1alpha1.AgentSession, pod *corev1.Pod, root v1alpha1.RootOwner) bool {
	id, parent := &session.Spec.Identity, session.Spec.Parent
	if id.Type != v1alpha1.IdentityServiceAccount || id.ServiceAccountName != pod.Spec.ServiceAccountName || session.Namespace != pod.Namespace {
		return false
	}
	if id.PodUID != "" {
		return id.PodUID == pod.UID // it was made for this very pod, whoever wrote it
	}
	ofRoot := id.RootOwner != nil && id.RootOwner.UID == root.UID
	switch writer := pod.Annotations[v1alpha1.AnnotationTemplateWriter]; {
	case writer == key(session.Namespace, session.Name):
		return ofRoot
	case writer != "":
		return ofRoot && parent != nil && writer == key(session.Namespace, parent.Name)
	case parent != nil:
		return false
	case id.RootOwner != nil:
		return ofRoot
	case id.PodName != "":
		return id.PodName == pod.Name
	default:
		return true // the pods of this ServiceAccount
	}
}

// key names a session in stamps.
func key(namespace, name string) string { return namespace + "/" + name }

// Ended tells whether the session may no longer act: its deadline has passed or its end was recorded.
func Ended(session *v1alpha1.AgentSession, now time.Time) bool {
	return session.Status.State == v1alpha1.SessionEnded || !now.Before(session.Spec.DeadlineTime.Time)
}

// Epoch of a session; one that no controller has looked at yet is in its first.
func Epoch(session *v1alpha1.AgentSession) int64 { return max(1, session.Status.Epoch) }
