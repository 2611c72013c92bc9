package grant

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
	"stepbeyond.dev/stepbeyond/internal/consequence"
	"stepbeyond.dev/stepbeyond/policy"
	"stepbeyond.dev/stepbeyond/policy/kube"
)

// questions lists every question about the exact operation, oldest first, read live.
func (p *Protocol) questions(ctx context.Context, a *asked) ([]*v1alpha1.PermissionGrant, error) {
	var list v1alpha1.PermissionGrantList
	err := p.Live.List(ctx, &list, client.InNamespace(a.namespace),
		client.MatchingLabels{v1alpha1.LabelQuestion: Question(a.Operation.Digest)})
	if err != nil {
		return nil, fmt.Errorf("list grants in %s: %w", a.namespace, err)
	}
	var questions []*v1alpha1.PermissionGrant
	for i := range list.Items {
		// The label holds 16 characters of the digest; the whole decides.
		if g := &list.Items[i]; g.Spec.Request.Digest == a.Operation.Digest {
			questions = append(questions, g)
		}
	}
	slices.SortFunc(questions, func(x, y *v1alpha1.PermissionGrant) int {
		return int(x.Spec.Request.Question - y.Spec.Request.Question)
	})
	return questions, nil
}

// openWithin bounds how long a question is created and counted, whatever the review's own deadline: one that nobody
// counted would stay.
const openWithin = 5 * time.Second

// open creates the next question, unless the session or the namespace has as many open ones as it may. Its name is made
// from the digest, so two replicas that ask at once create one object; the one that comes second answers anew.
func (p *Protocol) open(ctx context.Context, a *asked, newest *v1alpha1.PermissionGrant, questions []*v1alpha1.PermissionGrant, decision policy.Decision) (policy.Decision, bool, error) {
	if refused, err := p.lookAround(ctx, a, &decision); err != nil || refused != nil {
		return orZero(refused), false, err
	}
	done, err := p.opening.take(ctx, a.Resolved.View.UID)
	if err != nil {
		return policy.Decision{}, false, err
	}
	defer done()
	others, beside, err := p.ofNamespace(ctx, a)
	if err != nil {
		return policy.Decision{}, false, err
	}
	_, pending := p.split(a, others)
	if full := beside.full(&decision.Approvals, pending); full != nil {
		return tooMany(a, &decision, full), false, nil
	}
	number := int32(1)
	if len(questions) > 0 {
		number = questions[len(questions)-1].Spec.Request.Question + 1
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openWithin)
	defer cancel()
	g := p.newGrant(a, &decision, number)
	pass(StepAsking, g)
	if err := p.Client.Create(ctx, g); apierrors.IsAlreadyExists(err) {
		return policy.Decision{}, true, nil
	} else if err != nil {
		return policy.Decision{}, false, fmt.Errorf("create permissiongrant %s/%s: %w", g.Namespace, g.Name, err)
	}
	pass(StepAsked, g)
	full, err := p.makeRoom(ctx, a, g, others, &decision.Approvals)
	if err != nil {
		return policy.Decision{}, false, err
	}
	if full != nil {
		return tooMany(a, &decision, full), false, nil
	}
	return p.asNewQuestion(a, g, newest, others, decision), false, nil
}

// lookAround looks at the consequences before the session's turn, so that questions asked at once wait for one another no
// longer than to be counted. Where there is no room for a question, which is counted again in the turn, nothing is looked
// at: a loop of refusals stays cheap.
func (p *Protocol) lookAround(ctx context.Context, a *asked, decision *policy.Decision) (refused *policy.Decision, err error) {
	if a.told != nil {
		return nil, nil
	}
	others, beside, err := p.ofNamespace(ctx, a)
	if err != nil {
		return nil, err
	}
	_, pending := p.split(a, others)
	if full := beside.full(&decision.Approvals, pending); full != nil {
		refusal := tooMany(a, decision, full)
		return &refusal, nil
	}
	told := consequence.Of(ctx, p.Live, &a.Request, a.target.object, a.exact.Lines)
	a.told = &told
	return nil, nil
}

func tooMany(a *asked, decision *policy.Decision, full *policy.GrantRef) policy.Decision {
	refused := policy.Refuse(decision.Class, policy.ReasonTooManyPending, "")
	refused.Details, refused.Grant = decision.Details, full
	refused.Grant.Namespace = a.namespace
	return refused
}

// makeRoom looks again after a question was created, because a session asks at several replicas at once, and sessions of
// one namespace do. A question takes the place of those about the same verb and object that were there before it; of two
// that were created at once one gives way. One over a cap is taken back, and full says which cap; of several that exceed it
// together all may be, never none.
func (p *Protocol) makeRoom(ctx context.Context, a *asked, g *v1alpha1.PermissionGrant, before []*v1alpha1.PermissionGrant, caps *policy.Approvals) (full *policy.GrantRef, err error) {
	all, beside, err := p.ofNamespace(ctx, a)
	if err != nil {
		return nil, err
	}
	replaced, pending := p.split(a, all)
	full = beside.full(caps, pending-1) // this one is among them
	earlier := func(other *v1alpha1.PermissionGrant) bool {
		return slices.ContainsFunc(before, func(b *v1alpha1.PermissionGrant) bool { return b.UID == other.UID })
	}
	overtaken := slices.ContainsFunc(replaced, func(other *v1alpha1.PermissionGrant) bool { return !earlier(other) && later(other, g) })
	if overtaken || full != nil {
		err := client.IgnoreNotFound(p.Client.Delete(ctx, g, client.Preconditions{UID: &g.UID}))
		if err == nil && overtaken {
			err = errContended
		}
		if err != nil {
			return nil, fmt.Errorf("take back permissiongrant %s/%s: %w", g.Namespace, g.Name, err)
		}
		return full, nil
	}
	for _, older := range replaced {
		if !earlier(older) {
			continue // it gives way by itself
		}
		if err := p.supersede(ctx, older); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// later is a total order of questions that were created at once, so that of two that see each other one stays.
func later(a, b *v1alpha1.PermissionGrant) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return b.CreationTimestamp.Before(&a.CreationTimestamp)
	}
	return a.UID > b.UID
}

// asNewQuestion tells what the new question replaces: an earlier one about the same operation, or an approval of another
// change of the same object, which stays as it is.
func (p *Protocol) asNewQuestion(a *asked, g, newest *v1alpha1.PermissionGrant, others []*v1alpha1.PermissionGrant, decision policy.Decision) policy.Decision {
	until := g.Spec.Request.DecideByTime.Time
	if newest != nil && decision.Reason != policy.ReasonPermissionPending {
		decision.Grant.Successor = g.Name
		if decision.Reason == policy.ReasonGrantStale {
			decision.Grant.Policy = changedPolicy(newest, decision.Policies)
		}
		return decision
	}
	decision.Grant = &policy.GrantRef{Namespace: g.Namespace, Name: g.Name, Until: until}
	for _, other := range others {
		if approval := ToEngine(other, p.Now()); !sameObject(other, g) || approval.State != policy.GrantApproved || approval.Width != nil {
			continue // what a wide approval does not cover differs in its reasons, not in a path
		}
		decision.Reason = policy.ReasonGrantDigestMismatch
		decision.Grant.Name, decision.Grant.Successor = other.Name, g.Name
		decision.Grant.Path, decision.Grant.Approved, decision.Grant.Asked, _ = kube.FirstDifference(other.Spec.Request.Change, a.exact.Lines)
	}
	return decision
}

// changedPolicy names the first policy whose generation differs from the one that was bound at the approval.
func changedPolicy(g *v1alpha1.PermissionGrant, now []policy.PolicyID) string {
	for _, id := range now {
		for _, bound := range g.Status.BoundPolicies {
			if string(bound.UID) == id.UID && bound.Generation != id.Generation {
				return fmt.Sprintf("%s/%s (generation %d to %d)", bound.Kind, bound.Name, bound.Generation, id.Generation)
			}
		}
	}
	return ""
}

// split counts the open questions of the session and names those that a new question about the same verb and object
// replaces; these do not count.
func (p *Protocol) split(a *asked, others []*v1alpha1.PermissionGrant) (replaced []*v1alpha1.PermissionGrant, pending int) {
	wanted := targetOf(&a.Operation)
	for _, other := range others {
		if ToEngine(other, p.Now()).State != policy.GrantPending {
			continue
		}
		request := &other.Spec.Request
		if request.Digest != a.Operation.Digest && wanted.Name != "" && string(request.Operation.Verb) == string(a.Operation.Verb) && sameTarget(request.Operation.Target, wanted) {
			replaced = append(replaced, other)
			continue
		}
		pending++
	}
	return replaced, pending
}

// supersede removes an older question that nobody answered: a newer one about the same verb and object has taken its
// place, and an agent that keeps changing its mind must not fill etcd. Somebody who just answered it wins: then it is
// closed with its answers, or left as it is when it keeps changing.
func (p *Protocol) supersede(ctx context.Context, older *v1alpha1.PermissionGrant) error {
	for range maxTries {
		err := p.supersedeOnce(ctx, older)
		if !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
		if err := p.Live.Get(ctx, client.ObjectKeyFromObject(older), older); err != nil {
			return client.IgnoreNotFound(err)
		}
		if ToEngine(older, p.Now()).State != policy.GrantPending {
			return nil
		}
	}
	return nil
}

func (p *Protocol) supersedeOnce(ctx context.Context, older *v1alpha1.PermissionGrant) error {
	if len(older.Spec.Decisions) == 0 {
		if err := p.Client.Delete(ctx, older, client.Preconditions{UID: &older.UID, ResourceVersion: &older.ResourceVersion}); err != nil {
			return fmt.Errorf("delete permissiongrant %s/%s: %w", older.Namespace, older.Name, err)
		}
		return nil
	}
	closed := older.DeepCopy()
	closed.Status.State, closed.Status.Reason = v1alpha1.GrantSuperseded, v1alpha1.ReasonNewerQuestion
	closed.Status = Compute(closed, p.Now())
	if err := p.Client.Status().Update(ctx, closed); err != nil {
		return fmt.Errorf("close permissiongrant %s/%s: %w", older.Namespace, older.Name, err)
	}
	return nil
}

func sameObject(a, b *v1alpha1.PermissionGrant) bool {
	x, y := &a.Spec.Request.Operation, &b.Spec.Request.Operation
	return x.Verb == y.Verb && x.Target.Name != "" && sameTarget(x.Target, y.Target)
}

func sameTarget(a, b v1alpha1.GrantTarget) bool {
	for _, t := range []*v1alpha1.GrantTarget{&a, &b} {
		t.UID = ""
		if t.Subresource == "scale" {
			t.Subresource = "" // a scale has the form of an update of the workload
		}
	}
	return a == b
}

func targetOf(op *policy.Operation) v1alpha1.GrantTarget {
	t := &op.Target
	return v1alpha1.GrantTarget{
		Group: t.Group, Version: t.Version, Resource: t.Resource, Subresource: t.Subresource,
		Namespace: t.Namespace, Name: t.Name, UID: types.UID(t.UID),
	}
}

func (p *Protocol) newGrant(a *asked, decision *policy.Decision, number int32) *v1alpha1.PermissionGrant {
	view, now := &a.Resolved.View, p.Now()
	decideWithin, useWithin := decision.Approvals.DecideWithinSeconds, decision.Approvals.UseWithinSeconds
	if decideWithin == 0 {
		decideWithin = v1alpha1.DefaultDecideWithinSeconds
	}
	if useWithin == 0 {
		useWithin = v1alpha1.DefaultUseWithinSeconds
	}
	request := v1alpha1.PermissionRequest{
		Type: v1alpha1.RequestExact, Digest: a.Operation.Digest, Question: number, Stage: v1alpha1.Stage(decision.Stage),
		Session: v1alpha1.GrantSession{Namespace: view.Namespace, Name: view.Name, UID: types.UID(view.UID), Epoch: view.Epoch},
		Requester: v1alpha1.Requester{
			Username: view.Username, OnBehalfOf: a.Resolved.Session.Spec.UserName,
		},
		Operation: v1alpha1.GrantOperation{
			Capability: v1alpha1.Capability(a.Operation.Capability), Verb: v1alpha1.Verb(a.Operation.Verb),
			Target: targetOf(&a.Operation), Summary: kube.Summary(a.Operation.Verb, a.Operation.Target),
			Command: a.exact.Command, Manner: a.manner,
		},
		Projection: a.exact.Dropped, Change: a.exact.Lines, Effects: a.told.Effects, Undo: a.told.Undo,
		Facts: factsOf(decision.Details), Rules: rulesOf(decision.Details), Requirements: requirementsOf(decision.Approvals.Requirements),
		MaxUses: 1, DecideByTime: metav1.NewTime(now.Add(time.Duration(decideWithin) * time.Second).Truncate(time.Second)), UseWithinSeconds: useWithin,
	}
	if pod := a.Resolved.Pod; pod != nil {
		request.Requester.PodName, request.Requester.PodUID = pod.Name, pod.UID
	}
	if adapter := a.Resolved.Session.Spec.Adapter; adapter != nil {
		request.Requester.Adapter = adapter.Name
	}
	return &v1alpha1.PermissionGrant{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.namespace, Name: Name(a.Operation.Digest, number),
			Labels: map[string]string{
				v1alpha1.LabelSession: view.Name, v1alpha1.LabelSessionNamespace: view.Namespace,
				v1alpha1.LabelVerb: string(a.Operation.Verb), v1alpha1.LabelQuestion: Question(a.Operation.Digest),
			},
		},
		Spec: v1alpha1.PermissionGrantSpec{Request: request, Decisions: []v1alpha1.GrantDecision{}},
	}
}

func factsOf(details []policy.Detail) []v1alpha1.GrantFact {
	var facts []v1alpha1.GrantFact
	for _, d := range details {
		if d.Fact != "" {
			facts = append(facts, v1alpha1.GrantFact{
				Fact: v1alpha1.Fact(d.Fact), Value: v1alpha1.FactValue(d.Presence.String()),
				Provenance: v1alpha1.Provenance(provenance(d)), Why: d.Why,
			})
		}
	}
	return facts
}

// provenance of an unknown fact is the parsers': they looked and did not find it.
func provenance(d policy.Detail) string {
	if d.Presence == policy.Unknown {
		return policy.Parsed.String()
	}
	return d.Provenance.String()
}

func rulesOf(details []policy.Detail) []v1alpha1.GrantRule {
	var rules []v1alpha1.GrantRule
	for _, d := range details {
		name := d.ReasonName()
		known := slices.ContainsFunc(rules, func(r v1alpha1.GrantRule) bool { return r.Name == name })
		if name != "" && !known {
			rules = append(rules, v1alpha1.GrantRule{Name: name, Class: v1alpha1.Class(d.Class.String()), Reason: d.Code})
		}
	}
	return rules
}

func requirementsOf(requirements []policy.Requirement) []v1alpha1.GrantRequirement {
	converted := make([]v1alpha1.GrantRequirement, 0, len(requirements))
	for _, r := range requirements {
		// A client decodes the API server's answer into what it sent: nothing of the snapshot may be in there.
		converted = append(converted, v1alpha1.GrantRequirement{Name: r.Name, Required: r.Required, ApproverGroups: slices.Clone(r.ApproverGroups)})
	}
	return converted
}
