package main

import "context"

func definitionDeleted() *row {
	const name = "permissiongrants.stepbeyond.dev"
	return &row{
		name: "crd-deleted", title: "A CRD of ours deleted",
		auto: "allowed", asksAgain: true,
		done:     "A cluster administrator deletes the CustomResourceDefinition of PermissionGrant, and all grants with it.",
		expected: "It is written again without help. ASK is refused all the time, since no grant can be kept meanwhile; AUTO is allowed. Approvals are gone with their objects: the agent asks again.",
		begin: func(ctx context.Context, s *scene) error {
			return s.kubectl(ctx, "delete", "crd", name, "--wait=true")
		},
	}
}
