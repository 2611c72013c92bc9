package agentpolicy

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/enforcement"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
)

// gather reads everything that a policy's status depends on.
func (r *Status) gather(ctx context.Context, snapshot *policystore.Snapshot, object *v1alpha1.AgentPolicy) (input, error) {
	in := input{object: object, snapshot: snapshot}
	if in.profile() {
		err := r.users(ctx, &in)
		in.check()
		return in, err
	}
	ids, _ := snapshot.Engine.Identity(object.Namespace, object.Namespace)
	in.inForce = slices.ContainsFunc(ids, func(id policy.PolicyID) bool {
		return id.UID == string(object.UID) && id.Generation == object.Generation
	})
	in.check()
	return in, r.counts(ctx, &in)
}

// users counts the namespaces that use a profile.
func (r *Status) users(ctx context.Context, in *input) error {
	var list corev1.NamespaceList
	if err := r.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	for i := range list.Items {
		if view, ok := in.snapshot.Namespace(list.Items[i].Name); ok && view.Policy != nil && view.Policy.UID == in.object.UID {
			in.usedBy++
			in.inForce = view.Policy.Generation == in.object.Generation
		}
	}
	return nil
}

// counts counts the live sessions and the open questions of a namespace.
func (r *Status) counts(ctx context.Context, in *input) error {
	var sessions v1alpha1.AgentSessionList
	if err := r.Client.List(ctx, &sessions, client.InNamespace(in.object.Namespace)); err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	for i := range sessions.Items {
		if !identity.Ended(&sessions.Items[i], time.Now()) {
			in.sessions++
		}
	}
	var grants v1alpha1.PermissionGrantList
	if err := r.Client.List(ctx, &grants, client.InNamespace(in.object.Namespace)); err != nil {
		return fmt.Errorf("list grants: %w", err)
	}
	for i := range grants.Items {
		if state := grants.Items[i].Status.State; state == v1alpha1.GrantPending || state == "" {
			in.pending++
		}
	}
	return nil
}

// check compiles what is not in force; what is has been compiled before.
func (in *input) check() {
	if !in.inForce {
		in.problems = policystore.CheckAgentPolicy(in.object)
	}
}

// profile tells whether the object is a profile.
func (in *input) profile() bool { return in.object.Namespace == enforcement.SystemNamespace }
