// Coverage writes docs/coverage.md: what is gated and what is not, from the discovery of a real API server (requirement
// K-7). It needs the control plane of make controlplane.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/discovery"

	"stepbeyond.dev/stepbeyond/internal/coverage"
	"stepbeyond.dev/stepbeyond/internal/testing/env"
)

func main() {
	if err := run(context.Background(), "."); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

// run writes below root, the repository's top folder.
func run(ctx context.Context, root string) (err error) {
	plane, err := env.Start(ctx, env.Options{CRDs: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if err := plane.Apply(ctx, coverage.ThirdParty()...); err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(plane.Admin())
	if err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	resources, err := coverage.Discover(client)
	if err != nil {
		return err
	}
	rows, err := coverage.Matrix(resources)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs", "coverage.md"), []byte(coverage.Render(rows)), 0o644)
}
