package main

import (
	"context"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

func namespaceDeleted() *row {
	return &row{
		name: "namespace-deleted", title: "Our namespace deleted",
		auto: "refused once the replicas have ended", asksAgain: true,
		done:     "The namespace " + env.SystemNamespace + " is deleted with all that is in it: ServiceAccount, keys, profiles. The replicas end with it. After the fault config/default and the profiles are applied again.",
		expected: "AUTO and ASK are refused, fail closed. The key that ties an approval to its request is gone: approvals are asked again.",
		begin: func(ctx context.Context, s *scene) error {
			if err := s.kubectl(ctx, "delete", "namespace", env.SystemNamespace, "--wait=false"); err != nil {
				return err
			}
			// The kubelet ends the pods of a namespace that is being deleted.
			if err := s.takeDown((*env.Manager).Stop); err != nil {
				return err
			}
			return s.kubectl(ctx, "wait", "--for=delete", "namespace/"+env.SystemNamespace, "--timeout=2m")
		},
		end:    func(ctx context.Context, s *scene) error { return s.install(ctx) },
		person: "install again",
	}
}

func reinstalled() *row {
	return &row{
		name: "uninstalled", title: "Uninstall and reinstall",
		auto: "refused", asksAgain: true,
		done:     "config/default is deleted with kubectl delete -k, CustomResourceDefinitions and all, and the replicas with it. After the fault it and the policies are applied again.",
		expected: "As with a deleted namespace: uninstalling lets nothing go. Approvals are gone with their objects.",
		begin: func(ctx context.Context, s *scene) error {
			folder, err := repository("config", "default")
			if err != nil {
				return err
			}
			if err := s.takeDown((*env.Manager).Stop); err != nil {
				return err
			}
			return s.kubectl(ctx, "delete", "-k", folder, "--ignore-not-found", "--wait=true")
		},
		end:    func(ctx context.Context, s *scene) error { return s.install(ctx) },
		person: "install again",
	}
}
