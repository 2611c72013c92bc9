package integration_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The manager starts while its RBAC does not let it list policies, so its snapshot cannot be loaded.
//
// Proves F-1, B-2, K-2.
func TestBeforeThePoliciesAreLoadedEveryGovernedWriteIsRefused(t *testing.T) {
	h := at(t, "sessions")
	if err := manager.Stop(); err != nil {
		t.Fatal(err)
	}
	restore := withoutRule(t, "agentpolicies", "list", "watch")
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	// Until the webhook server listens the API server answers by itself.
	var got attempt
	eventually(t, func() error {
		if got = h.agent.try(t, create(configMap(h.namespace, "early"))); got.Code != 403 {
			return fmt.Errorf("%+v %s", got.outcome, got.message)
		}
		return nil
	})
	if diff := cmp.Diff(denied("ASK", "PolicyNotLoaded", "PolicyNotLoaded"), got.outcome); diff != "" {
		t.Errorf("an agent's write (-want +got):\n%s%s", diff, got.message)
	}
	expectSentence(t, got.message, "Step Beyond is starting and has no policy yet")
	if err := ben.Create(t.Context(), configMap(h.namespace, "meanwhile")); err != nil {
		t.Errorf("a bystander's write: %v", err)
	}
	// Nobody knows yet who is governed, so nobody writes our kinds.
	ours := petra.try(t, merge(profiles()[0], `{"metadata":{"labels":{"a":"b"}},"spec":{"modelTier":"small"}}`))
	if ours.Code != 403 || ours.Status != "PolicyNotLoaded" || ours.By != "objects.stepbeyond.dev" {
		t.Errorf("a person's write of a policy: %+v %s", ours.outcome, ours.message)
	}
	expectSentence(t, ours.message, "run this command again in 10 seconds")

	restore()
	if err := manager.WaitReady(t.Context(), readyTimeout); err != nil {
		t.Fatal(err)
	}
	if got := h.agent.try(t, create(configMap(h.namespace, "early"))); got.outcome != allowed("AUTO", "Allowed") {
		t.Errorf("once they are loaded: %+v %s", got.outcome, got.message)
	}
}
