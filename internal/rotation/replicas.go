package rotation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/certs"
)

// replicas is what the leader knows of them. When a Lease was written is judged by when the leader saw it change.
type replicas struct {
	seen map[string]sighting
}

type sighting struct {
	resourceVersion string
	at              time.Time
}

// look lists the live replicas, and deletes the Leases of those that are gone. now has to be a clock that only runs forward.
func (r *replicas) look(ctx context.Context, live client.Reader, writer client.Writer, namespace string, now time.Time, goneAfter time.Duration) ([]coordinationv1.Lease, error) {
	var list coordinationv1.LeaseList
	if err := live.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels(replicaLabels())); err != nil {
		return nil, fmt.Errorf("list leases of the replicas: %w", err)
	}
	seen := map[string]sighting{}
	var alive []coordinationv1.Lease
	for i := range list.Items {
		lease := &list.Items[i]
		last, known := r.seen[lease.Name]
		if !known || last.resourceVersion != lease.ResourceVersion {
			last = sighting{lease.ResourceVersion, now}
		}
		if now.Sub(last.at) <= goneAfter {
			seen[lease.Name] = last
			alive = append(alive, *lease)
			continue
		}
		// One that lives all the same writes it again.
		if err := client.IgnoreNotFound(writer.Delete(ctx, lease, client.Preconditions{ResourceVersion: &lease.ResourceVersion})); err != nil {
			return nil, fmt.Errorf("delete lease %s of a replica that is gone: %w", lease.Name, err)
		}
	}
	r.seen = seen
	return alive, nil
}

// lagging names the holders of those that do not serve what the next step needs.
func lagging(alive []coordinationv1.Lease, installation *certs.Installation) []string {
	var found []string
	for i := range alive {
		if serves(alive[i].Annotations, installation) {
			continue
		}
		holder := alive[i].Name
		if alive[i].Spec.HolderIdentity != nil {
			holder = *alive[i].Spec.HolderIdentity
		}
		found = append(found, holder)
	}
	return found
}

func serves(annotations map[string]string, installation *certs.Installation) bool {
	switch installation.Phase() {
	case certs.PhaseDistributing:
		return slices.Contains(strings.Split(annotations[annotationPaths], ","), installation.Next.ID())
	case certs.PhaseOverlapping:
		return annotations[annotationLeaf] == installation.Current.ID()
	default:
		return true
	}
}
