package enforcement

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Servers finds the API servers of the cluster.
type Servers interface {
	// Addresses are host:port, sorted, each once.
	Addresses(ctx context.Context) ([]string, error)
}

// PublishedServers are the API servers that the EndpointSlice default/kubernetes names: each API server publishes itself
// there, unless it runs with --endpoint-reconciler-type=none, and puts back what others write into it. Other slices of the
// Service kubernetes are not read: whoever may create an EndpointSlice in default could name anything there.
type PublishedServers struct {
	// Live reads past any cache.
	Live client.Reader
}

// mostServers bounds how many addresses are dialed. Control planes have three to five API servers.
const mostServers = 16

// ErrTooManyServers is in the error of Addresses for a slice that names more than any control plane has. None of them is
// returned then: with some left out, nobody could tell that all of them enforce.
var ErrTooManyServers = errors.New("names too many API servers")

// +kubebuilder:rbac:groups=discovery.k8s.io,namespace=default,resources=endpointslices,resourceNames=kubernetes,verbs=get

// Addresses lists every published address, ready or not: one that does not answer may still serve others. There is none
// while the slice does not exist, and an error where it names more than 16.
func (p PublishedServers) Addresses(ctx context.Context) ([]string, error) {
	slice := &discoveryv1.EndpointSlice{}
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}
	if err := p.Live.Get(ctx, key, slice); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read EndpointSlice %s: %w", key, err)
	}
	addresses := addressesOf(slice)
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	if len(addresses) > mostServers {
		return nil, fmt.Errorf("EndpointSlice %s %w: %d, and at most %d are asked", key, ErrTooManyServers, len(addresses), mostServers)
	}
	return addresses, nil
}

func addressesOf(slice *discoveryv1.EndpointSlice) []string {
	var addresses []string
	for _, port := range slice.Ports {
		if port.Port == nil || port.Protocol != nil && *port.Protocol != corev1.ProtocolTCP {
			continue
		}
		for i := range slice.Endpoints {
			for _, host := range slice.Endpoints[i].Addresses {
				addresses = append(addresses, net.JoinHostPort(host, strconv.Itoa(int(*port.Port))))
			}
		}
	}
	return addresses
}
