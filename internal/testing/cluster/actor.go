package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// Actor is somebody with a credential of their own.
type Actor struct {
	client.WithWatch
	Username string
	Config   *rest.Config

	env *env.Env
}

func (c *Cluster) actor(username string, cfg *rest.Config) (*Actor, error) {
	cfg.QPS = -1 // the API server is asked as fast as the caller can
	cfg.WarningHandlerWithContext = rest.NoWarnings{}
	k8s, err := client.NewWithWatch(cfg, client.Options{Scheme: c.scheme})
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", username, err)
	}
	return &Actor{WithWatch: k8s, Username: username, Config: cfg, env: c.Env}, nil
}

// Answer is what came of one request, by what the client got and what the API server recorded.
type Answer struct {
	// Err is nil for a request that was carried out.
	Err error
	// Class that the manager gave; empty when it was not asked, FORBIDDEN for a refusal of the floor, which holds nothing
	// else.
	Class string
	// Reason of the engine; empty like Class, also for the floor.
	Reason string
	// Counted tells that the manager counted the request for the onboarding report and let it pass.
	Counted bool
}

const (
	enforcer    = "enforce.stepbeyond.dev"
	counter     = "onboarding.stepbeyond.dev"
	causePrefix = "stepbeyond.dev/"
	floorSpoke  = "ValidatingAdmissionPolicy 'stepbeyond-floor-"
)

// Try sends one request of the actor. Requests of one actor must not overlap, because the record is told apart by name.
func (a *Actor) Try(ctx context.Context, request func(context.Context, *Actor) error) (Answer, error) {
	mark, err := a.env.AuditMark()
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Err: request(ctx, a)}
	if answer.Err != nil && strings.Contains(answer.Err.Error(), floorSpoke) {
		answer.Class = "FORBIDDEN"
		return answer, nil
	}
	var answered apierrors.APIStatus
	if errors.As(answer.Err, &answered) && answered.Status().Details != nil {
		for _, cause := range answered.Status().Details.Causes {
			switch strings.TrimPrefix(string(cause.Type), causePrefix) {
			case "Class":
				answer.Class = cause.Message
			case "Reason":
				answer.Reason = cause.Message
			}
		}
	}
	if answer.Class != "" {
		return answer, nil
	}
	events, err := a.env.AuditSince(mark, a.Username)
	if err != nil {
		return Answer{}, err
	}
	for _, event := range events {
		if class, ok := event.Annotations[enforcer+"/class"]; ok {
			answer.Class, answer.Reason = class, event.Annotations[enforcer+"/reason"]
		}
		_, counted := event.Annotations[counter+"/class"]
		answer.Counted = answer.Counted || counted
	}
	return answer, nil
}
