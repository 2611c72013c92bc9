package policystore

import (
	"slices"

	"stepbeyond.dev/stepbeyond/policy"
)

// readsOf lists what the policies of a set say about reads: an API server asks only about the reads that are named to it.
// Names and origins are left out, because an API server may ask too much and must not ask too little.
func readsOf(set *policy.Set) []policy.KubernetesSelector {
	all := slices.Clone(set.Cluster)
	for _, profile := range set.Profiles {
		all = append(all, profile)
	}
	for _, namespace := range set.Namespaces {
		if namespace.Policy != nil {
			all = append(all, *namespace.Policy)
		}
	}
	var reads []policy.KubernetesSelector
	add := func(match *policy.Match) {
		for _, s := range match.Kubernetes {
			if slices.Contains(s.Verbs, policy.VerbRead) {
				reads = append(reads, policy.KubernetesSelector{Groups: s.Groups, Resources: s.Resources, Verbs: []policy.Verb{policy.VerbRead}})
			}
		}
	}
	for i := range all {
		for j := range all[i].Rules {
			add(&all[i].Rules[j].Match)
		}
		for j := range all[i].Catalogue {
			add(&all[i].Catalogue[j].Match)
		}
	}
	return reads
}
