package main

import (
	"context"
	"fmt"
	"os/exec"

	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

func run(ctx context.Context, e *env.Env, args ...string) error {
	kubectl, err := env.Asset("kubectl")
	if err != nil {
		return err
	}
	kubeconfig, err := e.Kubeconfig("chaos", e.Admin(), "")
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, kubectl, append([]string{"--kubeconfig=" + kubeconfig}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %v: %w\n%s", args, err, out)
	}
	return nil
}
