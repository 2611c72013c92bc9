package manager

import (
	"maps"
	"slices"
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// slimPod keeps of a cached Pod what sessions are found by; a fleet has many pods and few of them are agents.
func slimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	slim := &corev1.Pod{ObjectMeta: pod.ObjectMeta}
	slim.ManagedFields = nil
	slim.Spec.ServiceAccountName = pod.Spec.ServiceAccountName
	slim.Status.Phase = pod.Status.Phase
	return slim, nil
}

// slimSessions is the transform of cached sessions (requirement K-9). Sessions of a fleet say the same in most of their
// fields, and decoding gives each its own copy: here they share one. What the cache holds is never written to, and what
// it gives out is a copy.
func slimSessions() func(any) (any, error) {
	s := &slimmer{
		labels:       shared[map[string]string]{equal: maps.Equal[map[string]string, map[string]string]},
		stages:       shared[[]v1alpha1.Stage]{equal: slices.Equal[[]v1alpha1.Stage]},
		capabilities: shared[[]v1alpha1.Capability]{equal: slices.Equal[[]v1alpha1.Capability]},
		degraded:     shared[[]v1alpha1.LostGuarantee]{equal: slices.Equal[[]v1alpha1.LostGuarantee]},
		policies:     shared[[]v1alpha1.PolicyReference]{equal: slices.Equal[[]v1alpha1.PolicyReference]},
	}
	strip := cache.TransformStripManagedFields()
	return func(object any) (any, error) {
		if session, ok := object.(*v1alpha1.AgentSession); ok {
			s.slim(session)
		}
		return strip(object)
	}
}

// slimmer remembers what sessions share.
type slimmer struct {
	mu           sync.Mutex
	labels       shared[map[string]string]
	stages       shared[[]v1alpha1.Stage]
	capabilities shared[[]v1alpha1.Capability]
	degraded     shared[[]v1alpha1.LostGuarantee]
	policies     shared[[]v1alpha1.PolicyReference]
}

// maxShared bounds what is remembered of each field: a fleet has few templates and profiles.
const maxShared = 64

// shared gives equal values one memory while it remembers them.
type shared[T any] struct {
	equal func(a, b T) bool
	known []T
	next  int // the place of the next value, once all are taken
}

func (s *shared[T]) share(value *T) {
	for _, known := range s.known {
		if s.equal(known, *value) {
			*value = known
			return
		}
	}
	if len(s.known) < maxShared {
		s.known = append(s.known, *value)
		return
	}
	s.known[s.next] = *value
	s.next = (s.next + 1) % maxShared
}

// lastApplied repeats the whole spec of what a person applied.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func (s *slimmer) slim(session *v1alpha1.AgentSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(session.Annotations, lastApplied)
	s.labels.share(&session.Labels)
	spec, status := &session.Spec, &session.Status
	for _, text := range []*string{
		&session.Kind, &session.APIVersion, &session.Namespace, &spec.UserName, &spec.Identity.ServiceAccountName, &spec.Identity.UserName,
		(*string)(&spec.Identity.Type), (*string)(&spec.ModelTier), (*string)(&spec.InitiativeMode),
		&status.CreatedBy, (*string)(&status.State), (*string)(&status.Guarantee), (*string)(&status.UserSource),
	} {
		intern(text)
	}
	if owner := spec.Identity.RootOwner; owner != nil {
		intern(&owner.Kind)
	}
	s.stages.share(&spec.Authority.Stages)
	s.capabilities.share(&spec.Authority.Capabilities)
	s.degraded.share(&status.Degraded)
	s.policies.share(&status.Policies)
	for i := range status.Conditions {
		c := &status.Conditions[i]
		for _, text := range []*string{&c.Type, (*string)(&c.Status), &c.Reason, &c.Message} {
			intern(text)
		}
	}
}

// intern gives equal strings one memory, for as long as anybody has one of them.
func intern(text *string) { *text = unique.Make(*text).Value() }
