package onboarding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	applied "stepbeyond.dev/stepbeyond/internal/applyconfiguration/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/internal/status"
)

const (
	// writeEvery is how often a replica adds its counts.
	writeEvery = 30 * time.Second
	// lastWriteWithin bounds the write of a replica that stops.
	lastWriteWithin = 5 * time.Second
	// attempts of one write; replicas meet when they add their counts at the same time.
	attempts = 5

	// fieldOwner owns status.onboarding, whichever replica writes it.
	fieldOwner = client.FieldOwner("stepbeyond-onboarding")
)

// Writer adds the counts of this replica to the reports. Each replica has one, because each answers reviews.
type Writer struct {
	Client client.Client
	// Live reads past the cache.
	Live    client.Reader
	Store   *policystore.Store
	Counter *Counter

	// audited namespaces at the last write.
	audited []string
}

// +kubebuilder:rbac:groups=stepbeyond.dev,resources=clusteragentpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=stepbeyond.dev,resources=clusteragentpolicies/status,verbs=patch

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Writer) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable: it writes every 30 s until the context ends, and then once more.
func (w *Writer) Start(ctx context.Context) error {
	ticker := time.NewTicker(writeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			w.try(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWriteWithin)
			defer cancel()
			w.try(last)
			return nil
		}
	}
}

func (w *Writer) try(ctx context.Context) {
	if err := w.Write(ctx, metav1.Now()); err != nil {
		log.FromContext(ctx).Error(err, "The onboarding report is written later")
	}
}

// Write adds what was counted since the last write to the reports, and takes out namespaces that are audited no more. What
// could not be added is counted again.
func (w *Writer) Write(ctx context.Context, now metav1.Time) error {
	snapshot := w.Store.Current()
	if snapshot == nil {
		return nil
	}
	var list v1alpha1.ClusterAgentPolicyList
	if err := w.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("list cluster agent policies: %w", err)
	}
	w.forget(snapshot.Onboarding)
	counted := split(snapshot, w.Counter.Take())
	var failures []error
	for i := range list.Items {
		name := list.Items[i].Name
		part := counted[name]
		delete(counted, name)
		if err := w.add(ctx, &list.Items[i], part, snapshot, now); err != nil {
			failures = append(failures, err)
			w.Counter.Return(part)
		}
	}
	for _, rest := range counted {
		w.Counter.Return(rest) // of a policy that the cache does not have yet
	}
	return errors.Join(failures...)
}

// forget ends the series of namespaces that are audited no more.
func (w *Writer) forget(audited []string) {
	for _, namespace := range w.audited {
		if !slices.Contains(audited, namespace) {
			w.Counter.Metric.DeletePartialMatch(map[string]string{"namespace": namespace})
		}
	}
	w.audited = audited
}

// split gives each policy what was counted in the namespaces that it governs. What is audited no more is dropped.
func split(snapshot *policystore.Snapshot, taken Counted) map[string]Counted {
	parts := map[string]Counted{}
	for account, t := range taken {
		view, _ := snapshot.Namespace(account.Namespace)
		if !slices.Contains(snapshot.Onboarding, account.Namespace) {
			continue
		}
		if parts[view.Governing] == nil {
			parts[view.Governing] = Counted{}
		}
		parts[view.Governing][account] = t
	}
	return parts
}

// add writes one report, and only over what it has read, so that replicas do not undo each other: first over what the
// cache has, then over what is read live.
func (w *Writer) add(ctx context.Context, object *v1alpha1.ClusterAgentPolicy, counted Counted, snapshot *policystore.Snapshot, now metav1.Time) error {
	audited := func(namespace string) bool {
		view, _ := snapshot.Namespace(namespace)
		return view.Governing == object.Name && slices.Contains(snapshot.Onboarding, namespace)
	}
	for range attempts {
		report := object.Status.Onboarding
		if report != nil || len(counted) > 0 {
			report = merged(report, counted, audited, now)
		}
		if !slices.ContainsFunc(snapshot.Onboarding, audited) {
			report = nil
		}
		if equality.Semantic.DeepEqual(report, object.Status.Onboarding) {
			return nil
		}
		if err := w.apply(ctx, object, report); !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
		live := &v1alpha1.ClusterAgentPolicy{}
		if err := w.Live.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
			return fmt.Errorf("read cluster agent policy %s: %w", object.Name, err)
		}
		object = live
	}
	return fmt.Errorf("%d writes of the onboarding report of cluster agent policy %s met others'", attempts, object.Name)
}

func (w *Writer) apply(ctx context.Context, object *v1alpha1.ClusterAgentPolicy, report *v1alpha1.OnboardingReport) error {
	configuration, err := status.Configuration[applied.ClusterAgentPolicyStatusApplyConfiguration](v1alpha1.ClusterAgentPolicyStatus{Onboarding: report})
	if err != nil {
		return err
	}
	whole := applied.ClusterAgentPolicy(object.Name).WithUID(object.UID).WithResourceVersion(object.ResourceVersion).WithStatus(configuration)
	if err := w.Client.Status().Apply(ctx, whole, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply the onboarding report of cluster agent policy %s: %w", object.Name, err)
	}
	return nil
}
