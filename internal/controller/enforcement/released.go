package enforcement

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	admission "stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

// EventNamespaceReleased is a Warning on the ClusterAgentPolicy whose entry in spec.governed.released let a namespace go.
const EventNamespaceReleased = "NamespaceReleased"

const actionRelease = "Release"

// Releases tells of namespaces that leave the scope because a ClusterAgentPolicy releases them. A nil one tells nobody.
type Releases struct {
	// Client reads the policies; a cache will do.
	Client   client.Reader
	Recorder events.EventRecorder
	// Metric is what NewReleasesMetric returns; the caller registers it.
	Metric prometheus.Gauge
}

// NewReleasesMetric is the gauge stepbeyond_released_namespaces: namespaces that a ClusterAgentPolicy releases and that
// are not enforced. Only the leader reports it.
func NewReleasesMetric() prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "stepbeyond_released_namespaces",
		Help: "Namespaces that a ClusterAgentPolicy releases and that are not enforced. Only the leader reports it.",
	})
}

// observe compares the scope before a write with the one in force after it. A namespace is told of once: the next scope
// before a write no longer holds it.
func (r *Releases) observe(ctx context.Context, snapshot *policystore.Snapshot, before, now admission.Scope) error {
	if r == nil {
		return nil
	}
	var free []string
	for _, namespace := range snapshot.Released {
		if !slices.Contains(now.Namespaces, namespace) && !slices.Contains(free, namespace) {
			free = append(free, namespace)
		}
	}
	r.Metric.Set(float64(len(free)))
	gone := slices.DeleteFunc(free, func(namespace string) bool { return !slices.Contains(before.Namespaces, namespace) })
	if len(gone) == 0 {
		return nil
	}
	var policies v1alpha1.ClusterAgentPolicyList
	if err := r.Client.List(ctx, &policies); err != nil {
		return fmt.Errorf("list cluster agent policies: %w", err)
	}
	for i := range policies.Items {
		r.tell(&policies.Items[i], gone)
	}
	return nil
}

func (r *Releases) tell(object *v1alpha1.ClusterAgentPolicy, gone []string) {
	for _, entry := range object.Spec.Governed.Released {
		if slices.Contains(gone, entry.Namespace) {
			r.Recorder.Eventf(object, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: entry.Namespace}},
				corev1.EventTypeWarning, EventNamespaceReleased, actionRelease, "%s",
				note("Nothing enforces namespace "+entry.Namespace+" any more: it is released, reason: "+entry.Reason))
		}
	}
}
