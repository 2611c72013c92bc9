package cli_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Proves K-4, K-6.
func TestANamespaceIsLetGoAsAUserTypesIt(t *testing.T) {
	testscript.Run(t, parameters("release-namespace", "release-refused", "release-wrong", "release-sticky"))
}

// It runs alone, because it takes other entries back. Proves K-4, K-6.
func TestWhatOthersWriteMeanwhileIsKept(t *testing.T) {
	testscript.Run(t, parameters("release-meanwhile"))
}

// The tests below take enforcement from the shared cluster, so each runs alone; the last leaves nothing installed.

// Proves K-2, K-6.
func TestTheClusterIsLetGoOnceNoManagerIsAlive(t *testing.T) {
	testscript.Run(t, parameters("release-cluster"))
}

// Proves K-2, K-6.
func TestUninstallingLeavesEnforcementUntilTheClusterIsLetGo(t *testing.T) {
	testscript.Run(t, parameters("uninstall"))
}
