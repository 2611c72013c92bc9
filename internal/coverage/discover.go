package coverage

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Resource is one resource or subresource of one version, as discovery lists it.
type Resource struct {
	schema.GroupVersionResource
	// Subresource is empty for the resource itself.
	Subresource string
	// Kind is that of the objects that requests carry: of pods/eviction it is policy/v1 Eviction.
	Kind       schema.GroupVersionKind
	Namespaced bool
	// Verbs are those of HTTP requests, in discovery's order.
	Verbs []string
}

// Path is the resource as rules name it: pods or pods/exec.
func (r *Resource) Path() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

// Discover walks every version of every group. A group that does not answer is an error: the matrix has no holes.
func Discover(client discovery.DiscoveryInterface) ([]Resource, error) {
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	var resources []Resource
	for _, list := range lists {
		of, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("discovery: %w", err)
		}
		for i := range list.APIResources {
			resources = append(resources, resourceOf(of, &list.APIResources[i]))
		}
	}
	return resources, nil
}

// resourceOf fills in what an entry leaves to its list.
func resourceOf(of schema.GroupVersion, entry *metav1.APIResource) Resource {
	kind := of
	if entry.Version != "" {
		kind = schema.GroupVersion{Group: entry.Group, Version: entry.Version}
	}
	resource, subresource, _ := strings.Cut(entry.Name, "/")
	return Resource{
		GroupVersionResource: of.WithResource(resource), Subresource: subresource, Kind: kind.WithKind(entry.Kind),
		Namespaced: entry.Namespaced, Verbs: entry.Verbs,
	}
}
