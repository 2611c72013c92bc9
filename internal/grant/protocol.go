// Package grant is the protocol by which an approved operation has at most its number of effects, whatever crashes,
// races or retries. Its one token is the PermissionGrant in etcd; its one lock is an Update with a resourceVersion.
package grant

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/consequence"
	"stepbeyond.dev/stepbeyond/internal/identity"
	"stepbeyond.dev/stepbeyond/internal/policystore"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// maxTries bounds how often a question is answered anew because somebody else wrote the grant in between. Each time one of
// them got on, and an agent that works in parallel under one wide approval competes with itself at several replicas.
const maxTries = 16

// errContended is returned when the grant kept changing while it was answered, or another question about the same object
// was asked at the same moment. The caller refuses.
var errContended = errors.New("the grant kept changing")

// Protocol answers operations that need a grant.
type Protocol struct {
	// Client writes grants and watches targets. It must not be served from a cache; its reads are not used.
	Client client.WithWatch
	// Live reads grants, sessions, policies and targets from the API server, never from a cache.
	Live client.Reader
	// Mapper finds the kind of a target's resource.
	Mapper meta.RESTMapper
	Key    kube.Key
	Now    func() time.Time

	opening, using turns
}

// Ask is one operation whose class is ASK and whose answer depends on a grant.
type Ask struct {
	Snapshot   *policystore.Snapshot
	Operation  policy.Operation
	Request    kube.Request
	Resolved   identity.Resolved
	ReviewUID  types.UID
	DecisionID string
}

// asked is an Ask with its exact form.
type asked struct {
	Ask
	exact     kube.Exact
	namespace string
	// manner is the digest of exact.Manner; empty when there is none.
	manner string
	// target is the object that an effect would be seen on.
	target target
	// told is what a question tells beside the change; nil until one is about to be opened.
	told *consequence.Told
}

// Answer finds the newest question about the exact operation and answers with it: it reserves a use, opens a question, or
// says where the open one stands. An error means that the answer is not known; the caller must refuse.
func (p *Protocol) Answer(ctx context.Context, ask Ask) (policy.Decision, error) {
	a, refused, err := p.prepare(ctx, ask)
	if err != nil || refused != nil {
		return orZero(refused), err
	}
	for try := 0; try < maxTries; try++ {
		decision, again, err := p.answerOnce(ctx, a)
		if err != nil {
			return policy.Decision{}, err
		}
		if !again {
			return decision, nil
		}
	}
	return policy.Decision{}, errContended
}

// prepare gives the exact form and compares the review with the live target. A review that is stale or forged changes
// nothing: it is refused before any write.
func (p *Protocol) prepare(ctx context.Context, ask Ask) (*asked, *policy.Decision, error) {
	a := &asked{Ask: ask, namespace: ask.Resolved.View.Namespace}
	view := &ask.Resolved.View
	exact, err := kube.ExactForm(p.Key, ask.Request, ask.Operation.Target, kube.Binding{
		SessionUID: view.UID, Epoch: view.Epoch, Stage: ask.Operation.Stage,
	})
	if errors.Is(err, kube.ErrUnnamed) {
		refused := policy.Refuse(policy.ClassAsk, policy.ReasonUnnamed, "")
		return nil, &refused, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("exact form: %w", err)
	}
	a.exact = exact
	a.Operation.Digest = p.Key.Digest(exact.Canonical)
	if exact.Manner != nil {
		a.manner = p.Key.Digest(exact.Manner)
	}
	if a.target, err = p.lookAt(ctx, &ask.Request); err != nil {
		return nil, nil, err
	}
	if a.target.stale(&ask.Request) {
		refused := policy.Refuse(policy.ClassAsk, policy.ReasonStaleRead, "")
		return nil, &refused, nil
	}
	return a, nil, nil
}

// answerOnce answers with the grants as they are now. again is true when one of them changed meanwhile.
func (p *Protocol) answerOnce(ctx context.Context, a *asked) (decision policy.Decision, again bool, err error) {
	questions, err := p.questions(ctx, a)
	if err != nil {
		return policy.Decision{}, false, err
	}
	view := a.Resolved.View
	var newest *v1alpha1.PermissionGrant
	if len(questions) > 0 {
		newest = questions[len(questions)-1]
		if decision, again, found, err := p.underWay(ctx, a, newest); found || err != nil {
			return decision, again, err
		}
		engineView := ToEngine(newest, p.Now())
		view.Grant = &engineView
	}
	decision = p.decide(a, view)
	if decision.Verdict == policy.VerdictPending {
		if decision, again, found, err := p.useWide(ctx, a, view); found || err != nil {
			return decision, again, err
		}
	}
	switch {
	case decision.Reason == policy.ReasonGranted:
		return p.use(ctx, a, newest, decision)
	case decision.AskNew:
		return p.open(ctx, a, newest, questions, decision)
	default:
		return decision, false, nil
	}
}

// decide asks the engine under the grants of a view.
func (p *Protocol) decide(a *asked, view policy.SessionView) policy.Decision {
	decision := a.Snapshot.Engine.Decide(a.Operation, view, p.Now())
	if decision.Grant != nil {
		decision.Grant.Namespace = a.namespace
	}
	return decision
}

// underWay answers a review whose operation has begun a use of the grant already; found is false when none has.
func (p *Protocol) underWay(ctx context.Context, a *asked, g *v1alpha1.PermissionGrant) (decision policy.Decision, again, found bool, err error) {
	if use := useOf(g, a.ReviewUID); use != nil {
		decision, err = p.sameReview(ctx, a, g, use)
		return decision, false, true, err
	}
	if use := p.deletesAgain(a, g); use != nil {
		decision, again, err = p.attemptAgain(ctx, a, g, use)
		return decision, again, true, err
	}
	if use := reservedUse(g, a.Operation.Digest); use != nil {
		decision, again, err = p.admitAgain(ctx, a, g, use)
		return decision, again, true, err
	}
	return policy.Decision{}, false, false, nil
}

// sameReview gives a review that comes again the answer that it had: something between may send one twice. What has ended
// the approval since counts for a use that is still reserved.
func (p *Protocol) sameReview(ctx context.Context, a *asked, g *v1alpha1.PermissionGrant, use *v1alpha1.GrantUse) (policy.Decision, error) {
	if use.Outcome != v1alpha1.UseReserved && use.Outcome != v1alpha1.UseConsumed {
		return policy.Refuse(policy.ClassAsk, policy.ReasonUndecided, "the use of "+g.Name+" was closed before this review could end"), nil
	}
	if use.Outcome == v1alpha1.UseReserved {
		reason, _, err := p.changedSince(ctx, a, g)
		if err != nil {
			return policy.Decision{}, err
		}
		if reason != "" {
			return policy.Refuse(policy.ClassAsk, reason, "this changed while the use was reserved"), nil
		}
	}
	decision := a.Snapshot.Engine.Decide(a.Operation, a.Resolved.View, p.Now())
	decision.Verdict, decision.Reason, decision.AskNew = policy.VerdictAllow, policy.ReasonGranted, false
	decision.Boundary = policy.ReasonGranted.Boundary()
	decision.Grant = &policy.GrantRef{Namespace: g.Namespace, Name: g.Name}
	return decision, nil
}

func useOf(g *v1alpha1.PermissionGrant, review types.UID) *v1alpha1.GrantUse {
	for i := range g.Status.Uses {
		for _, attempt := range g.Status.Uses[i].Attempts {
			if attempt.ReviewUID == review {
				return &g.Status.Uses[i]
			}
		}
	}
	return nil
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func orZero(d *policy.Decision) policy.Decision {
	if d == nil {
		return policy.Decision{}
	}
	return *d
}
