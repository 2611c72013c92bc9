package main

import "context"

func definitionDeleted() *row {
	const name = "permissiongrants.stepbeyond.dev"
	return &row{
		name: "crd-deleted", title: "A CRD of ours deleted", asksAgain: true,
		done:     "A cluster administrator deletes the CustomResourceDefinition of PermissionGrant, and all grants with it.",
		expected: "ASK is refused all the time, since no grant can be kept; AUTO is allowed. Approvals are gone with their objects: the agent asks again.",
		begin: func(ctx context.Context, s *scene) error {
			return s.kubectl(ctx, "delete", "crd", name, "--wait=true")
		},
		end: func(ctx context.Context, s *scene) error {
			folder, err := repository("config", "crd")
			if err != nil {
				return err
			}
			return s.kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-k", folder)
		},
		person: "apply config/crd",
	}
}
