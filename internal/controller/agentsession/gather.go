package agentsession

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
)

// Bounds of the schema.
const (
	maxLivePods = 100
	maxPolicies = 32
)

// provenFor is how long a proof of an earlier leader counts: three missed ones.
const provenFor = 90 * time.Second

// gather reads everything that a session's status depends on.
func (r *Status) gather(ctx context.Context, snapshot *policystore.Snapshot, session *v1alpha1.AgentSession) (input, error) {
	in := input{session: session, snapshot: snapshot, manager: r.Manager}
	var err error
	if in.asked, in.proven = r.Proof.Proven(); in.asked.IsZero() {
		if in.lately, err = r.provenLately(ctx); err != nil {
			return in, err
		}
	}
	id := &session.Spec.Identity
	if id.Type == v1alpha1.IdentityUser {
		in.enforced, in.escapes = r.Proof.EnforcesUser(id.UserName), r.Roles.Current().OfUser(id.UserName)
	} else {
		in.enforced = r.Proof.EnforcesServiceAccount(session.Namespace, id.ServiceAccountName)
		// The agent may run pods under default, so what default may do it can do too.
		allowed := r.Roles.Current()
		in.escapes = append(slices.Clone(allowed.OfServiceAccount(session.Namespace, id.ServiceAccountName)), allowed.OfServiceAccount(session.Namespace, identity.DefaultAccount)...)
	}
	if in.pending, err = r.pendingGrants(ctx, session); err != nil {
		return in, err
	}
	if in.above, err = r.above(ctx, session); err != nil {
		return in, err
	}
	var siblings v1alpha1.AgentSessionList
	// Siblings and pods are only looked at, and a namespace can have very many of both.
	if err := r.Client.List(ctx, &siblings, client.InNamespace(session.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("list sessions: %w", err)
	}
	others := slices.DeleteFunc(siblings.Items, func(s v1alpha1.AgentSession) bool {
		return s.UID == session.UID || identity.Ended(&s, time.Now())
	})
	if id.Type == v1alpha1.IdentityUser {
		in.rival = rivalOfUser(session, others)
		return in, nil
	}
	covered, err := r.pods(ctx, &in, others)
	if err == nil && in.podFinished {
		in.ownerGone = true // a finished pod acts no more, and history limits may keep it for days
		return in, nil
	}
	if err != nil || covered || session.Status.State == v1alpha1.SessionEnded {
		return in, err
	}
	in.ownerGone, err = r.ownerGone(ctx, session)
	return in, err
}

// above is what comes down to a child from its ancestors. It asks the API server itself before it takes one for ended,
// because that ends the child for good.
func (r *Status) above(ctx context.Context, session *v1alpha1.AgentSession) (standing identity.Standing, err error) {
	for _, reader := range []client.Reader{r.Client, r.Live} {
		standing, err = identity.StandingOf(session, identity.Through(ctx, reader, session.Namespace), time.Now())
		if err != nil || standing.State != v1alpha1.SessionEnded || standing.By == session.Name {
			return standing, err
		}
	}
	return standing, nil
}

// provenLately tells whether an earlier leader has proven enforcement a moment ago.
func (r *Status) provenLately(ctx context.Context) (bool, error) {
	var list v1alpha1.ClusterAgentPolicyList
	if err := r.Client.List(ctx, &list); err != nil {
		return false, fmt.Errorf("list cluster agent policies: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(p v1alpha1.ClusterAgentPolicy) bool {
		e := p.Status.Enforcement
		return e != nil && e.LastProvenTime != nil && time.Since(e.LastProvenTime.Time) < provenFor
	}), nil
}

// pods fills in the live Pods that the session covers and a session that covers one of them too. covered is true when
// there is any Pod, alive or not.
func (r *Status) pods(ctx context.Context, in *input, others []v1alpha1.AgentSession) (covered bool, err error) {
	var list corev1.PodList
	if err := r.Client.List(ctx, &list, client.InNamespace(in.session.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list pods: %w", err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Spec.ServiceAccountName != in.session.Spec.Identity.ServiceAccountName {
			continue
		}
		root, released, err := identity.RootOwner(ctx, r.Client, pod)
		if err != nil {
			return false, err
		}
		if released || !identity.MatchesPod(in.session, pod, root) {
			continue
		}
		if finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed; finished && in.session.Spec.Identity.PodUID != "" {
			in.podFinished = true
			continue
		}
		covered = true
		if !alive(pod) {
			continue
		}
		in.pods = append(in.pods, v1alpha1.LivePod{Name: pod.Name, UID: pod.UID})
		for j := range others {
			if in.rival == "" && identity.MatchesPod(&others[j], pod, root) {
				in.rival = others[j].Name
			}
		}
	}
	slices.SortFunc(in.pods, func(a, b v1alpha1.LivePod) int { return cmp.Compare(a.Name, b.Name) })
	in.pods = bounded(in.pods, maxLivePods)
	return covered, nil
}

func rivalOfUser(session *v1alpha1.AgentSession, others []v1alpha1.AgentSession) string {
	for i := range others {
		if id := &others[i].Spec.Identity; id.Type == v1alpha1.IdentityUser && id.UserName == session.Spec.Identity.UserName {
			return others[i].Name
		}
	}
	return ""
}

// pendingGrants counts the session's open questions in all namespaces.
func (r *Status) pendingGrants(ctx context.Context, session *v1alpha1.AgentSession) (int32, error) {
	var list v1alpha1.PermissionGrantList
	err := r.Client.List(ctx, &list, client.MatchingLabels{
		v1alpha1.LabelSession: session.Name, v1alpha1.LabelSessionNamespace: session.Namespace,
	})
	if err != nil {
		return 0, fmt.Errorf("list grants: %w", err)
	}
	pending := int32(0)
	for i := range list.Items {
		grant := &list.Items[i]
		open := grant.Status.State == v1alpha1.GrantPending || grant.Status.State == ""
		if open && grant.Spec.Request.Session.UID == session.UID {
			pending++
		}
	}
	return pending, nil
}
