package enforcement

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Servers finds the API servers of the cluster.
type Servers interface {
	// Addresses are host:port, sorted, each once.
	Addresses(ctx context.Context) ([]string, error)
}

// PublishedServers are the API servers that the EndpointSlices of the Service default/kubernetes name; each API server
// publishes itself there, unless it runs with --endpoint-reconciler-type=none.
type PublishedServers struct {
	// Live reads past any cache.
	Live client.Reader
}

// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,namespace=default,verbs=list

// Addresses lists every published address, ready or not: one that does not answer may still serve others.
func (p PublishedServers) Addresses(ctx context.Context) ([]string, error) {
	var list discoveryv1.EndpointSliceList
	if err := p.Live.List(ctx, &list, client.InNamespace(metav1.NamespaceDefault),
		client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"}); err != nil {
		return nil, fmt.Errorf("list EndpointSlices of Service %s/kubernetes: %w", metav1.NamespaceDefault, err)
	}
	var addresses []string
	for i := range list.Items {
		addresses = append(addresses, addressesOf(&list.Items[i])...)
	}
	slices.Sort(addresses)
	return slices.Compact(addresses), nil
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
