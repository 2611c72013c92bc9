package certs

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// awaitEvery is the longest time between two looks.
const awaitEvery = time.Second

// AwaitInstallation waits up to patience for the installation's Secret while it is missing and enforced tells that the API
// server calls an installation: its leader puts the Secret back from memory, and a replica that starts in between must not
// be faster with another one, whose digest key would make every grant and stamp worthless. It returns at once when
// LoadInstallation can decide by itself. lost is true when nobody restored the Secret in time; what there was is gone
// then, as after an uninstall that left the webhook configurations behind. reader must not be a cache.
func AwaitInstallation(ctx context.Context, reader client.Reader, namespace string, enforced func(context.Context) (bool, error), patience time.Duration) (lost bool, err error) {
	end := time.Now().Add(patience)
	for {
		if _, _, err := ReadInstallation(ctx, reader, namespace); !apierrors.IsNotFound(err) {
			return false, nil // found, or LoadInstallation says what is wrong
		}
		if called, err := enforced(ctx); err != nil || !called {
			return false, err
		}
		if !time.Now().Before(end) {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("wait for secret %s/%s: %w", namespace, InstallationSecret, ctx.Err())
		case <-time.After(min(awaitEvery, patience)):
		}
	}
}
