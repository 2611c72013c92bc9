package policystore

import (
	"maps"
	"slices"

	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/policy"
)

// readsOf lists what the policies of a set say about reads: an API server asks only about the reads that are named to it.
// A namespace's own policy counts for its callers, the users whose sessions it holds among them. Names and origins are
// left out, because an API server may ask too much and must not ask too little.
func readsOf(set *policy.Set, sessionNamespaces map[string]string) enforcement.Reads {
	shared := slices.Clone(set.Cluster)
	for _, profile := range set.Profiles {
		shared = append(shared, profile)
	}
	var reads enforcement.Reads
	for i := range shared {
		reads.Everybody = append(reads.Everybody, readsIn(&shared[i])...)
	}
	for _, name := range slices.Sorted(maps.Keys(set.Namespaces)) {
		own := set.Namespaces[name].Policy
		if own == nil {
			continue
		}
		if selectors := readsIn(own); len(selectors) > 0 {
			reads.Namespaces = append(reads.Namespaces, enforcement.NamespaceReads{
				Namespace: name, Users: usersOf(name, sessionNamespaces), Selectors: selectors,
			})
		}
	}
	return reads
}

func usersOf(namespace string, sessionNamespaces map[string]string) []string {
	var users []string
	for user, home := range sessionNamespaces {
		if home == namespace {
			users = append(users, user)
		}
	}
	slices.Sort(users)
	return users
}

func readsIn(p *policy.Policy) []policy.KubernetesSelector {
	var reads []policy.KubernetesSelector
	add := func(match *policy.Match) {
		for _, s := range match.Kubernetes {
			if slices.Contains(s.Verbs, policy.VerbRead) {
				reads = append(reads, policy.KubernetesSelector{Groups: s.Groups, Resources: s.Resources, Verbs: []policy.Verb{policy.VerbRead}})
			}
		}
	}
	for i := range p.Rules {
		add(&p.Rules[i].Match)
	}
	for i := range p.Catalogue {
		add(&p.Catalogue[i].Match)
	}
	return reads
}
