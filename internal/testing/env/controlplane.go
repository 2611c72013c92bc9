package env

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	controlPlaneSecret  = "stepbeyond-control-plane"
	authorizationFile   = "authorization-configuration.yaml"
	staticManifestsFile = "static-manifests.yaml"
	staticManifestsDir  = "static-manifests"
)

// withoutWebhook is what the API servers start with: no manager has said yet where it is.
const withoutWebhook = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- {type: Node, name: node}
- {type: RBAC, name: rbac}
`

const admissionConfiguration = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionPolicy
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ValidatingAdmissionPolicyConfiguration
    staticManifestsDir: %s
`

// ControlPlaneDir is where the files of the Secret stepbeyond-control-plane lie for the API servers.
func (e *Env) ControlPlaneDir() string { return e.path("control-plane") }

// configureControlPlane gives the API server the files that a host of the control plane has for it.
func (e *Env) configureControlPlane(api *envtest.APIServer, opts Options) error {
	if err := os.MkdirAll(filepath.Join(e.ControlPlaneDir(), staticManifestsDir), 0o700); err != nil {
		return fmt.Errorf("folder of the control plane: %w", err)
	}
	if !opts.WithoutAuthorizer {
		if err := e.place(authorizationFile, []byte(withoutWebhook)); err != nil {
			return err
		}
		api.Configure().Disable("authorization-mode").Set("authorization-config", filepath.Join(e.ControlPlaneDir(), authorizationFile))
	}
	if !opts.StaticManifests {
		return nil
	}
	const name = "admission-configuration.yaml"
	if err := e.place(name, fmt.Appendf(nil, admissionConfiguration, filepath.Join(e.ControlPlaneDir(), staticManifestsDir))); err != nil {
		return err
	}
	api.Configure().Set("admission-control-config-file", filepath.Join(e.ControlPlaneDir(), name))
	return nil
}

// place writes a file as a host does for a running API server: whole or not at all.
func (e *Env) place(name string, text []byte) error {
	path := filepath.Join(e.ControlPlaneDir(), name)
	staged := filepath.Join(e.ControlPlaneDir(), ".staged")
	if err := os.WriteFile(staged, text, 0o600); err != nil {
		return fmt.Errorf("file of the control plane: %w", err)
	}
	if err := os.Rename(staged, path); err != nil {
		return fmt.Errorf("file of the control plane: %w", err)
	}
	return nil
}

// follow keeps the files until Stop.
func (e *Env) follow() {
	ctx, cancel := context.WithCancel(context.Background())
	e.following, e.kept = cancel, make(chan struct{})
	go func() {
		defer close(e.kept)
		e.keepControlPlane(ctx)
	}()
}

// keepControlPlane does for the API servers what config/authorization/sync.sh does on a host, until ctx is done.
func (e *Env) keepControlPlane(ctx context.Context) {
	for ctx.Err() == nil {
		if err := e.followControlPlane(ctx); err != nil && ctx.Err() == nil {
			e.progress("files of the control plane: " + err.Error())
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (e *Env) followControlPlane(ctx context.Context) error {
	secrets := e.client.CoreV1().Secrets(SystemNamespace)
	changes, err := secrets.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", controlPlaneSecret).String()})
	if err != nil {
		return fmt.Errorf("watch Secret %s: %w", controlPlaneSecret, err)
	}
	defer changes.Stop()
	for event := range changes.ResultChan() {
		secret, ok := event.Object.(*corev1.Secret)
		if !ok || event.Type == watch.Deleted {
			continue
		}
		if err := e.placeAll(secret.Data); err != nil {
			return err
		}
	}
	return nil
}

// placeAll writes the configuration last, because it names the kubeconfig.
func (e *Env) placeAll(files map[string][]byte) error {
	last := func(name string) int {
		if strings.HasSuffix(name, ".kubeconfig") {
			return 0
		}
		return 1
	}
	for _, name := range slices.SortedFunc(maps.Keys(files), func(a, b string) int { return last(a) - last(b) }) {
		path := name
		if name == staticManifestsFile {
			path = filepath.Join(staticManifestsDir, name)
		}
		if err := e.place(path, files[name]); err != nil {
			return err
		}
	}
	return nil
}
