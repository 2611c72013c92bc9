package permissiongrant

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// measureEvery is how often the queue is measured.
const measureEvery = 15 * time.Second

// Queue measures what waits for people, on the leader.
type Queue struct {
	// Client lists grants; a cache, which is not copied.
	Client  client.Reader
	Metrics *Metrics
}

// Start measures until the context ends.
func (q *Queue) Start(ctx context.Context) error {
	ticker := time.NewTicker(measureEvery)
	defer ticker.Stop()
	for {
		if err := q.measure(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).WithName("queue").Error(err, "The queue is not measured; its metrics are old")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// NeedLeaderElection has one replica report.
func (q *Queue) NeedLeaderElection() bool { return true }

// waits is what waits in one namespace.
type waits struct {
	namespace string
	count     int
	oldest    time.Time
}

func (q *Queue) measure(ctx context.Context) error {
	var list v1alpha1.PermissionGrantList
	if err := q.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	q.Metrics.Pending.Reset()
	q.Metrics.OldestPending.Reset()
	for _, w := range pending(list.Items, maxNamespaces) {
		q.Metrics.Pending.WithLabelValues(w.namespace).Set(float64(w.count))
		q.Metrics.OldestPending.WithLabelValues(w.namespace).Set(float64(w.oldest.Unix()))
	}
	return nil
}

// pending counts by namespace; the namespaces beyond most, those where least waits, are counted together.
func pending(grants []v1alpha1.PermissionGrant, most int) []waits {
	byNamespace := map[string]waits{}
	for i := range grants {
		if g := &grants[i]; g.Status.State == v1alpha1.GrantPending || g.Status.State == "" {
			byNamespace[g.Namespace] = waits{g.Namespace, 1, g.CreationTimestamp.Time}.with(byNamespace[g.Namespace])
		}
	}
	all := make([]waits, 0, len(byNamespace))
	for _, w := range byNamespace {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b waits) int {
		return cmp.Or(cmp.Compare(b.count, a.count), a.oldest.Compare(b.oldest), cmp.Compare(a.namespace, b.namespace))
	})
	if len(all) <= most {
		return all
	}
	rest := waits{namespace: other}
	for _, w := range all[most:] {
		rest = rest.with(w)
	}
	return append(all[:most:most], rest)
}

func (w waits) with(more waits) waits {
	if w.count == 0 || more.count > 0 && more.oldest.Before(w.oldest) {
		w.oldest = more.oldest
	}
	w.count += more.count
	return w
}
