package main

import (
	"context"
	"fmt"
	"os"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

// canary is the username of the one whose requests to the manager are told apart from those of a bystander.
const canary = "system:serviceaccount:stepbeyond-canary:canary"

// auditPolicy records nobody but the canary, so that all others write without an audit log, and the apply by which a new
// home is found to be enforced.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  users: ["` + canary + `"]
- level: Metadata
  verbs: [patch]
  resources: [{group: "", resources: [configmaps]}]
- level: None
`

// startPlane starts a control plane with the flags that all have. None has the authorization webhook, which is optional and
// no part of admission; the API server asks itself before every request whether it is about an agent.
func startPlane(ctx context.Context) (*env.Env, error) {
	file, err := os.CreateTemp("", "audit-policy-*.yaml")
	if err != nil {
		return nil, fmt.Errorf("audit policy: %w", err)
	}
	defer os.Remove(file.Name()) // the API server reads it at its start only
	if _, err := file.WriteString(auditPolicy); err != nil {
		return nil, fmt.Errorf("audit policy: %w", err)
	}
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("audit policy: %w", err)
	}
	return env.Start(ctx, env.Options{
		ControllerManager: true, Audit: true, WithoutAuthorizer: true, APIServerArgs: []string{"--audit-policy-file=" + file.Name()},
	})
}
