package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// startTimeout bounds each step of a start; a step takes about three seconds on an idle machine.
const startTimeout = 90 * time.Second

// Options choose what Start starts.
type Options struct {
	// ControllerManager also runs kube-controller-manager. Without it the aggregated roles (edit, view, admin) are
	// empty, no object has a default ServiceAccount, nothing is garbage-collected, and namespaces never finish deleting.
	ControllerManager bool
	// CRDs applies config/crd/bases and waits until the API server serves them.
	CRDs bool
	// APIServerArgs are further flags of kube-apiserver, each as --name=value; they replace a default of the same name.
	APIServerArgs []string
	// Audit records writes in the API server's audit log, for AuditMark and AuditSince.
	Audit bool
	// WithoutAuthorizer leaves the authorization webhook of the manager out; the API server then asks RBAC alone.
	WithoutAuthorizer bool
	// StaticManifests lets the API server load the static admission policies that the manager writes.
	StaticManifests bool
	// Dir holds certificates, kubeconfigs, logs and data, and stays after Stop. Omitted = a temporary folder that goes.
	Dir string
	// Progress is told each slow step before it is done. Omitted = nobody is told.
	Progress func(step string)
}

// Env is a running control plane. Its methods may be called concurrently.
type Env struct {
	dir      string
	progress func(string)
	reaper   *reaper
	plane    *envtest.Environment
	admin    *rest.Config
	client   kubernetes.Interface
	// controllerManager tells Apply to expect what only kube-controller-manager makes.
	controllerManager bool

	// following ends the keeping of the control plane's files, and kept is closed when it has ended.
	following context.CancelFunc
	kept      chan struct{}

	mu        sync.Mutex
	processes []*process // in the order of their start; stopped in the reverse order, before the API server

	stopOnce sync.Once
	stopErr  error
}

// Start starts the control plane and returns when /readyz of the API server is good and, with ControllerManager, the
// aggregated role edit has rules. The environment stops when ctx is done; call Stop to wait for that and to learn its error.
func Start(ctx context.Context, opts Options) (_ *Env, err error) {
	e, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Stop())
			return
		}
		context.AfterFunc(ctx, func() { _ = e.Stop() })
	}()

	e.progress("start etcd and kube-apiserver")
	if err := e.startPlane(ctx, opts); err != nil {
		return nil, err
	}
	if opts.ControllerManager {
		e.progress("start kube-controller-manager")
		if err := e.startControllerManager(ctx); err != nil {
			return nil, err
		}
	}
	if opts.CRDs {
		crds, err := Read("config/crd/bases")
		if err != nil {
			return nil, err
		}
		if err := e.Apply(ctx, crds...); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// prepare makes the folders and the reaper; no process of the control plane runs yet.
func prepare(opts Options) (*Env, error) {
	e := &Env{dir: opts.Dir, progress: opts.Progress, controllerManager: opts.ControllerManager}
	if e.progress == nil {
		e.progress = func(string) {}
	}
	remove := ""
	if e.dir == "" {
		dir, err := os.MkdirTemp("", "stepbeyond-env-")
		if err != nil {
			return nil, fmt.Errorf("folder of the environment: %w", err)
		}
		e.dir, remove = dir, dir
	}
	for _, sub := range []string{"bin", "logs", "kubeconfigs", "apiserver", "etcd"} {
		if err := os.MkdirAll(e.path(sub), 0o700); err != nil {
			return nil, fmt.Errorf("folder of the environment: %w", err)
		}
	}
	r, err := startReaper(e.path("pids"), remove)
	if err != nil {
		return nil, err
	}
	e.reaper = r
	return e, nil
}

func (e *Env) path(elem ...string) string { return filepath.Join(append([]string{e.dir}, elem...)...) }

// Dir is the folder of the environment: logs/, kubeconfigs/ and the rest.
func (e *Env) Dir() string { return e.dir }

// Stop stops the manager and kube-controller-manager, then the API server, then etcd, and waits for each: an API server
// whose etcd is gone can hold its port for a minute. A second call waits for the first and returns the same error.
func (e *Env) Stop() error {
	e.stopOnce.Do(func() {
		if e.following != nil {
			e.following()
			<-e.kept
		}
		e.mu.Lock()
		processes := slices.Clone(e.processes)
		e.mu.Unlock()
		var errs []error
		for _, p := range slices.Backward(processes) {
			errs = append(errs, p.stop())
		}
		if e.plane != nil {
			if err := e.plane.Stop(); err != nil {
				errs = append(errs, fmt.Errorf("stop control plane: %w", err))
			}
			errs = append(errs, e.reaper.forget("kube-apiserver"), e.reaper.forget("etcd"))
		}
		errs = append(errs, e.reaper.stop())
		e.stopErr = errors.Join(errs...)
	})
	return e.stopErr
}

// start runs one more process of the environment.
func (e *Env) start(name, log string, env []string, binary string, args ...string) (*process, error) {
	p, err := startProcess(e.reaper, name, log, env, binary, args...)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.processes = append(e.processes, p)
	return p, nil
}
