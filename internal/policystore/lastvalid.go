package policystore

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/policy"
)

// keepLastValid replaces each invalid object of the input by the last generation of it that was valid, and returns the
// problems of what it replaced. An object that never was valid stays and is left out by Build.
func (s *Store) keepLastValid(in *Input) map[types.UID][]policy.Problem {
	problems := map[types.UID][]policy.Problem{}
	next := map[types.UID]client.Object{}
	for i := range in.Cluster {
		object := &in.Cluster[i]
		if found := CheckCluster(object); len(found) > 0 {
			problems[object.UID] = found
			if last, ok := s.lastValid[object.UID].(*v1alpha1.ClusterAgentPolicy); ok {
				in.Cluster[i] = *last
				next[object.UID] = last
			}
			continue
		}
		next[object.UID] = object.DeepCopy()
	}
	for i := range in.Policies {
		object := &in.Policies[i]
		if found := CheckAgentPolicy(object); len(found) > 0 {
			problems[object.UID] = found
			if last, ok := s.lastValid[object.UID].(*v1alpha1.AgentPolicy); ok {
				in.Policies[i] = *last
				next[object.UID] = last
			}
			continue
		}
		next[object.UID] = object.DeepCopy()
	}
	s.lastValid = next
	return problems
}
