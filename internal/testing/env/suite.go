package env

import (
	"context"
	"fmt"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"stepbeyond.dev/stepbeyond/api/v1alpha1"
)

// Main is a package's TestMain: it starts one control plane with our CRDs, lets prepare keep what the tests need, runs
// them, stops everything and exits. An error before the tests fails the package.
func Main(m *testing.M, prepare func(ctx context.Context, e *Env) error) {
	code, err := runSuite(m, prepare)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test control plane:", err)
		code = 1
	}
	os.Exit(code)
}

func runSuite(m *testing.M, prepare func(context.Context, *Env) error) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e, err := Start(ctx, Options{CRDs: true})
	if err != nil {
		return 0, err
	}
	defer func() {
		if stopErr := e.Stop(); err == nil {
			err = stopErr
		}
	}()
	if err := prepare(ctx, e); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// Client reads and writes as the administrator, past any cache. It knows the built-in kinds and ours.
func (e *Env) Client() (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("scheme: %w", err)
		}
	}
	c, err := client.NewWithWatch(e.Admin(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("client of the administrator: %w", err)
	}
	return c, nil
}
