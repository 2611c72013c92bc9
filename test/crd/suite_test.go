// Package crd_test proves what the schemas alone guarantee: a real API server with the custom resource definitions
// installed, and neither webhooks nor the manager.
package crd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

var (
	// k8s answers with field validation Strict, so that an unknown field is an error.
	k8s client.Client
	// kubeconfig of an administrator, for kubectl.
	kubeconfig string
	kubectl    string
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/crd:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join("..", "..", "bin", "k8s")
	}
	if kubectl, err = filepath.Abs(filepath.Join(assets, "kubectl")); err != nil {
		return 0, fmt.Errorf("find kubectl: %w", err)
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	config, err := environment.Start()
	if err != nil {
		return 0, fmt.Errorf("start the API server (binaries come from make controlplane): %w", err)
	}
	defer func() {
		if stopErr := environment.Stop(); stopErr != nil && err == nil {
			err = fmt.Errorf("stop the API server: %w", stopErr)
		}
	}()
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return 0, fmt.Errorf("register the API types: %w", err)
	}
	plain, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return 0, fmt.Errorf("make a client: %w", err)
	}
	k8s = client.WithFieldValidation(plain, "Strict")
	directory, err := os.MkdirTemp("", "crd-test-")
	if err != nil {
		return 0, fmt.Errorf("make a folder for the kubeconfig: %w", err)
	}
	defer os.RemoveAll(directory)
	kubeconfig = filepath.Join(directory, "kubeconfig")
	if err := os.WriteFile(kubeconfig, environment.KubeConfig, 0o600); err != nil {
		return 0, fmt.Errorf("write the kubeconfig: %w", err)
	}
	return m.Run(), nil
}
