package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/internal/testing/cluster"
	"stepbeyond.dev/stepbeyond/policy"
)

// admission writes as the agent of a governed namespace of a real cluster. Every namespaced object goes into that
// namespace: another one is outside of the session's authority whatever is in it.
type admission struct {
	ctx  context.Context
	c    *cluster.Cluster
	home *cluster.Home
}

// startAdmission brings the cluster up. stop ends it.
func startAdmission(ctx context.Context) (a *admission, stop func() error, err error) {
	begin := time.Now()
	c, err := cluster.Start(ctx, func(step string) {
		fmt.Fprintf(os.Stderr, "corpora: %4.0f s %s\n", time.Since(begin).Seconds(), step)
	})
	if err != nil {
		return nil, nil, err
	}
	a = &admission{ctx: ctx, c: c}
	if a.home, err = c.Home(ctx, "agents"); err != nil {
		_ = c.Stop()
		return nil, nil, err
	}
	return a, c.Stop, nil
}

// Write implements corpora.Writer. What was created or asked is removed at once, but for what a later write changes.
func (a *admission) Write(fields map[string]any, changed bool) (policy.Class, error) {
	object, err := a.object(fields)
	if err != nil || object == nil {
		return 0, err
	}
	request := func(ctx context.Context, agent *cluster.Actor) error {
		made := object.DeepCopy()
		if !changed {
			return agent.Create(ctx, made)
		}
		return agent.Patch(ctx, made, client.Apply, client.FieldOwner("corpora"), client.ForceOwnership) //nolint:staticcheck // the objects have no types
	}
	if !changed && object.GetName() != "" {
		if err := a.remove(object); err != nil {
			return 0, err
		}
	}
	// A busy machine refuses for lack of time; the class is not known then.
	for range 20 {
		answer, err := a.home.Agent.Try(a.ctx, request)
		switch {
		case err != nil:
			return 0, err
		case answer.Reason == string(policy.ReasonUndecided):
			continue
		case answer.Class == "" && refusedByItself(answer.Err):
			return 0, nil
		}
		class, ok := policy.ParseClass(answer.Class)
		if !ok {
			return 0, fmt.Errorf("the answer has class %q: %w", answer.Class, answer.Err)
		}
		return class, a.forgetQuestions()
	}
	return 0, fmt.Errorf("undecided after 20 tries")
}

// object is what is sent: in the home's namespace, with integers as Kubernetes decodes them. nil for a kind that the API
// server does not have.
func (a *admission) object(fields map[string]any) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(text, &object.Object); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	mapping, err := a.c.Admin.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find kind: %w", err)
	}
	object.SetNamespace("")
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		object.SetNamespace(a.home.Namespace)
	}
	object.SetResourceVersion("")
	object.SetUID("")
	return object, nil
}

// remove deletes an earlier object of the same name, and waits until it is gone.
func (a *admission) remove(object *unstructured.Unstructured) error {
	for range 200 {
		old := object.DeepCopy()
		err := a.c.Admin.Get(a.ctx, client.ObjectKeyFromObject(object), old)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for an earlier object: %w", err)
		}
		if owner := old.GetAnnotations()["stepbeyond.dev/created-by"]; owner == "" {
			return nil // part of the cluster: creating it is refused as such
		}
		if err := a.c.Admin.Delete(a.ctx, old, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove an earlier object: %w", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("an earlier object does not go")
}

// forgetQuestions empties the queue, because a session may not have too many open questions.
func (a *admission) forgetQuestions() error {
	grants := &unstructured.Unstructured{}
	grants.SetAPIVersion("stepbeyond.dev/v1alpha1")
	grants.SetKind("PermissionGrant")
	if err := a.c.Admin.DeleteAllOf(a.ctx, grants, client.InNamespace(a.home.Namespace)); err != nil {
		return fmt.Errorf("forget questions: %w", err)
	}
	return nil
}

// refusedByItself tells that the request was refused before or beside admission: the object is not valid, or exists.
func refusedByItself(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsAlreadyExists(err) || err != nil && strings.Contains(err.Error(), "failed to create typed patch object")
}
