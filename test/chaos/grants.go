package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

const (
	approvedGrants = 6
	// triedMeanwhile of the approved ones are tried during the fault too; the others after it only.
	triedMeanwhile = 3
	// triesAfterEffect would each be a second effect if the grant were not spent.
	triesAfterEffect = 3
	// grantsWithin is how long the agent tries after the recovery: longer than a lost leader and the grace of a create.
	grantsWithin = 2 * time.Minute
	// askedFor is how long the answer is a new question before the approval counts as gone.
	askedFor = 5 * time.Second
)

// approval is one question of the agent about a Service of its own, approved or still pending.
type approval struct {
	service string
	pending bool
	// effects are the changes that were seen on the Service, each undone so that another would be seen too.
	effects int
	// meanwhile tells that the first of them was seen while the fault lasted.
	meanwhile bool
	// again tells that the agent had to ask again.
	again bool
}

// addGrants makes the approved grants and one that is pending.
func (s *scene) addGrants(ctx context.Context) error {
	for i := range approvedGrants + 1 {
		a := &approval{service: fmt.Sprintf("approved-%d", i), pending: i == approvedGrants}
		if a.pending {
			a.service = "pending"
		}
		s.grants = append(s.grants, a)
		if err := s.admin.Create(ctx, service(a.service)); err != nil {
			return fmt.Errorf("service: %w", err)
		}
		if err := eventually(ctx, func() error {
			got := s.try(ctx, a)
			if got.Grant == "" {
				return fmt.Errorf("asked about %s: %s", a.service, got.Message)
			}
			if a.pending {
				return nil
			}
			return s.approve(ctx, got.Grant)
		}); err != nil {
			return err
		}
	}
	return nil
}

// try sends the agent's request once, then looks for its effect.
func (s *scene) try(ctx context.Context, a *approval) answer {
	sent, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got := understand(s.agent.Patch(sent, service(a.service), selectorPatch("canary")))
	s.count(ctx, a)
	return got
}

// count sees an effect and undoes it.
func (s *scene) count(ctx context.Context, a *approval) {
	now := &corev1.Service{}
	if err := s.admin.Get(ctx, client.ObjectKey{Namespace: home, Name: a.service}, now); err != nil {
		return // it is counted the next time
	}
	if now.Spec.Selector["app"] == "canary" {
		a.effects++
		s.undo(a.service)
	}
}

// undo takes a change back; the API server may be away meanwhile.
func (s *scene) undo(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), readyFor)
	defer cancel()
	for ctx.Err() == nil && s.admin.Patch(ctx, service(name), selectorPatch("web")) != nil {
		time.Sleep(50 * time.Millisecond)
	}
}

// approve has the administrator answer a question as status.approveCommand says.
func (s *scene) approve(ctx context.Context, name string) error {
	g := &v1alpha1.PermissionGrant{}
	if err := s.cluster.Admin.Get(ctx, client.ObjectKey{Namespace: home, Name: name}, g); err != nil {
		return fmt.Errorf("grant: %w", err)
	}
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/spec/decisions/-", "value": map[string]any{
		"verdict": v1alpha1.VerdictApprove, "shownDigest": g.Spec.Request.Digest,
	}}})
	if err != nil {
		return fmt.Errorf("decision: %w", err)
	}
	if err := s.cluster.Admin.Patch(ctx, g, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("approve: %w", err)
	}
	return nil
}

// tryMeanwhile has the agent use some of its grants while the fault lasts. The channel is closed when it has ended.
func (s *scene) tryMeanwhile(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, a := range s.grants[:min(triedMeanwhile, len(s.grants))] {
				if a.effects == 0 && ctx.Err() == nil {
					s.try(context.WithoutCancel(ctx), a)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	return done
}

// useGrants has the agent use every grant after the recovery, all at the same time, and try again after the effect.
func (s *scene) useGrants(ctx context.Context) grantCounts {
	var all sync.WaitGroup
	for _, a := range s.grants {
		a.meanwhile = a.effects > 0
		all.Go(func() {
			s.persist(ctx, a)
			for range triesAfterEffect {
				s.try(ctx, a)
			}
		})
	}
	all.Wait()
	counts := grantCounts{Approved: approvedGrants}
	for _, a := range s.grants {
		switch {
		case a.effects > 1:
			counts.Doubled++
		case a.effects == 0:
			counts.Lost++
		case a.pending:
			counts.PendingAnswered++
		case a.again:
			counts.AskedAgain++
		case a.meanwhile:
			counts.Meanwhile++
		default:
			counts.Kept++
		}
	}
	return counts
}

// persist tries until the effect is there. A question that stays open is one that has to be answered (again).
func (s *scene) persist(ctx context.Context, a *approval) {
	end := time.Now().Add(grantsWithin)
	var asked time.Time
	for a.effects == 0 && time.Now().Before(end) && ctx.Err() == nil {
		got := s.try(ctx, a)
		switch {
		case got.Grant == "" || got.Class != "ASK":
			asked = time.Time{}
		case asked.IsZero():
			asked = time.Now()
		}
		if !asked.IsZero() && (a.pending || time.Since(asked) > askedFor) {
			if s.approve(ctx, got.Grant) == nil {
				a.again = true
			}
			asked = time.Time{}
		}
		time.Sleep(200 * time.Millisecond)
	}
}
