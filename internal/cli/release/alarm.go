package release

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/cli/factory"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
)

// Events of type Warning in the system namespace, about the manager's Deployment.
const (
	// eventReleaseRequested: somebody asked to let a namespace go. The manager's own event says when it is gone.
	eventReleaseRequested = "NamespaceReleaseRequested"
	// eventClusterReleased: somebody removes all enforcement.
	eventClusterReleased = "ClusterReleased"
)

// alarm is an event that says who let what go, and why.
type alarm struct {
	reason, about, why string
	related            *corev1.ObjectReference
}

// raise records the event. Without the system namespace, which an uninstalled product has no more, it lands in default.
func (a alarm) raise(ctx context.Context, c client.Client) error {
	who, err := factory.Username(ctx, c)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "stepbeyond-release-", Namespace: enforcement.SystemNamespace},
		EventTime:  metav1.NewMicroTime(time.Now()), Type: corev1.EventTypeWarning, Reason: a.reason, Action: "Release",
		ReportingController: string(factory.FieldOwner), ReportingInstance: string(factory.FieldOwner) + "-" + host,
		Note:      fmt.Sprintf("%s %s: %s", who, a.about, a.why),
		Regarding: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: enforcement.SystemNamespace, Name: managerName},
		Related:   a.related,
	}
	err = c.Create(ctx, event)
	if apierrors.IsNotFound(err) {
		event.Namespace, event.ResourceVersion = metav1.NamespaceDefault, ""
		event.Regarding = corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: enforcement.SystemNamespace}
		err = c.Create(ctx, event)
	}
	if err != nil {
		return fmt.Errorf("record an event in namespace %s: %w", event.Namespace, err)
	}
	return nil
}

func policyReference(p *v1alpha1.ClusterAgentPolicy) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ClusterAgentPolicy", Name: p.Name, UID: p.UID}
}
