package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// ask sends a request that opens a question, and returns the question.
func (h *home) ask(t *testing.T, request func(context.Context, *actor) error) *v1alpha1.PermissionGrant {
	t.Helper()
	got := h.agent.try(t, request)
	if diff := cmp.Diff(pending("PermissionPending"), got.outcome); diff != "" {
		t.Fatalf("asking (-want +got):\n%s%s", diff, got.message)
	}
	return h.grant(t, got.grant)
}

func (h *home) grant(t *testing.T, name string) *v1alpha1.PermissionGrant {
	t.Helper()
	g := &v1alpha1.PermissionGrant{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: name}, g); err != nil {
		t.Fatal(err)
	}
	return g
}

// answer is the JSON patch that status.approveCommand prints, with whatever else somebody claims.
func answer(g *v1alpha1.PermissionGrant, verdict v1alpha1.Verdict, claims map[string]any) client.Patch {
	value := map[string]any{"verdict": verdict, "shownDigest": g.Spec.Request.Digest}
	for key, claim := range claims {
		value[key] = claim
	}
	return patchOf(map[string]any{"op": "add", "path": "/spec/decisions/-", "value": value})
}

func patchOf(operations ...map[string]any) client.Patch {
	text, err := json.Marshal(operations)
	if err != nil {
		panic(err) // the operations are literals of the tests
	}
	return client.RawPatch(types.JSONPatchType, text)
}

// decide answers as the actor.
func (h *home) decide(t *testing.T, who *actor, g *v1alpha1.PermissionGrant, verdict v1alpha1.Verdict, claims map[string]any) {
	t.Helper()
	if err := who.Patch(t.Context(), g.DeepCopy(), answer(g, verdict, claims)); err != nil {
		t.Fatalf("%s answers: %v", who.username, err)
	}
}

// approved asks and has carla approve.
func (h *home) approved(t *testing.T, request func(context.Context, *actor) error) *v1alpha1.PermissionGrant {
	t.Helper()
	g := h.ask(t, request)
	h.decide(t, carla, g, v1alpha1.VerdictApprove, nil)
	return g
}

// becomes waits until the grant has a state and reason.
func (h *home) becomes(t *testing.T, name string, state v1alpha1.GrantState, reason v1alpha1.ConditionReason) *v1alpha1.PermissionGrant {
	t.Helper()
	var g *v1alpha1.PermissionGrant
	eventually(t, func() error {
		g = h.grant(t, name)
		if g.Status.State != state || g.Status.Reason != reason {
			return fmt.Errorf("permissiongrant %s/%s is %s (%s), want %s (%s)", h.namespace, name, g.Status.State, g.Status.Reason, state, reason)
		}
		return nil
	})
	return g
}
