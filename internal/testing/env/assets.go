package env

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// assetsVariable is the variable that envtest reads; an already set value always wins.
const assetsVariable = "KUBEBUILDER_ASSETS"

// RepositoryRoot returns the folder of the go.mod that the working directory belongs to.
// It is an error when no parent folder holds one.
func RepositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in the working directory or above it")
		}
		dir = parent
	}
}

// Asset returns the path of one control plane binary: etcd, kube-apiserver, kube-controller-manager or kubectl.
// The error of a missing binary says how to build it.
func Asset(name string) (string, error) {
	dir := os.Getenv(assetsVariable)
	if dir == "" {
		root, err := RepositoryRoot()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, "bin", "k8s")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%s is not in %s: run \"make controlplane\", or set %s: %w", name, dir, assetsVariable, err)
		}
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return path, nil
}
