package policystore

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
)

// generations of objects by UID, as the snapshot read them, valid or not.
type generations map[types.UID]int64

// Current tells whether the snapshot still says what the API server says about the policies that count for operations
// between these namespaces. It reads live; empty names are skipped.
func (s *Snapshot) Current(ctx context.Context, live client.Reader, namespaces ...string) (bool, error) {
	var cluster v1alpha1.ClusterAgentPolicyList
	if err := live.List(ctx, &cluster); err != nil {
		return false, fmt.Errorf("list cluster agent policies: %w", err)
	}
	now := generations{}
	for i := range cluster.Items {
		now[cluster.Items[i].UID] = cluster.Items[i].Generation
	}
	if !maps.Equal(now, s.clusterGenerations) {
		return false, nil
	}
	for _, name := range namespaces {
		if name == "" {
			continue
		}
		if same, err := s.namespaceCurrent(ctx, live, name); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (s *Snapshot) namespaceCurrent(ctx context.Context, live client.Reader, name string) (bool, error) {
	known := s.namespaces[name]
	var namespace corev1.Namespace
	if err := live.Get(ctx, client.ObjectKey{Name: name}, &namespace); err != nil {
		return false, fmt.Errorf("read namespace %s: %w", name, err)
	}
	if namespace.Labels[v1alpha1.LabelProfile] != known.Profile {
		return false, nil
	}
	keys := []client.ObjectKey{{Namespace: name, Name: NamespacePolicyName}}
	if known.Policy != nil {
		keys = append(keys, client.ObjectKey{Namespace: enforcement.SystemNamespace, Name: known.Policy.Name})
	}
	for _, key := range keys {
		var object v1alpha1.AgentPolicy
		err := live.Get(ctx, key, &object)
		was, had := s.policyGenerations[key]
		switch {
		case apierrors.IsNotFound(err):
			if had {
				return false, nil
			}
		case err != nil:
			return false, fmt.Errorf("read agent policy %s: %w", key, err)
		case !had || was.uid != object.UID || was.generation != object.Generation:
			return false, nil
		}
	}
	return true, nil
}

type objectGeneration struct {
	uid        types.UID
	generation int64
}

// same tells whether two snapshots say the same about everything that is watched through Store.Changed.
func (s *Snapshot) same(other *Snapshot) bool {
	return maps.Equal(s.clusterGenerations, other.clusterGenerations) && maps.Equal(s.policyGenerations, other.policyGenerations) &&
		reflect.DeepEqual(s.Scope, other.Scope) && slices.Equal(s.Released, other.Released) && slices.Equal(s.Onboarding, other.Onboarding) &&
		maps.EqualFunc(s.namespaces, other.namespaces, func(a, b Namespace) bool { return a.Profile == b.Profile && a.Governing == b.Governing })
}

// observe records what was read, before invalid objects are replaced by their last valid generation.
func (s *Snapshot) observe(cluster generations, policies map[client.ObjectKey]objectGeneration) {
	s.clusterGenerations, s.policyGenerations = cluster, policies
}

func (in *Input) observed() (generations, map[client.ObjectKey]objectGeneration) {
	cluster := generations{}
	for i := range in.Cluster {
		cluster[in.Cluster[i].UID] = in.Cluster[i].Generation
	}
	policies := map[client.ObjectKey]objectGeneration{}
	for i := range in.Policies {
		object := &in.Policies[i]
		policies[client.ObjectKeyFromObject(object)] = objectGeneration{uid: object.UID, generation: object.Generation}
	}
	return cluster, policies
}
