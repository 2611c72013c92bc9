package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"k8s.io/client-go/kubernetes"
)

// Component is a process of the control plane.
type Component string

// Components that an environment with Options.ControllerManager runs.
const (
	Etcd              Component = "etcd"
	KubeAPIServer     Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
)

// Signal sends a signal to the process: SIGSTOP makes it answer nothing, SIGCONT lets it go on.
func (e *Env) Signal(c Component, signal syscall.Signal) error {
	pid, err := e.pid(string(c))
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("signal %s: %w", c, err)
	}
	return nil
}

// End sends SIGTERM or SIGKILL and waits until the process is gone. SIGTERM becomes SIGKILL after 20 s.
func (e *Env) End(ctx context.Context, c Component, signal syscall.Signal) error {
	pid, err := e.pid(string(c))
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("end %s: %w", c, err)
	}
	gone := func(context.Context) error {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("%s still runs", c)
		}
		return nil
	}
	patience, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if poll(patience, nil, gone) == nil {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill %s: %w", c, err)
	}
	return poll(ctx, nil, gone)
}

// Restart starts a component that has ended, with the flags, the port and the data that it had, and returns when it
// answers.
func (e *Env) Restart(ctx context.Context, c Component) error {
	binary, err := Asset(string(c))
	if err != nil {
		return err
	}
	args, err := os.ReadFile(e.path("bin", string(c)+argumentsSuffix))
	if err != nil {
		return fmt.Errorf("flags of %s: %w", c, err)
	}
	p, err := e.start(string(c), e.path("logs", string(c)+"-restarted.log"), nil, binary, strings.Split(strings.TrimSuffix(string(args), "\n"), "\n")...)
	if err != nil {
		return err
	}
	switch c {
	case Etcd:
		health := e.plane.ControlPlane.Etcd.URL.JoinPath("health").String()
		return p.await(ctx, startTimeout, func(ctx context.Context) error { return get(ctx, health, nil) })
	case KubeAPIServer:
		fresh, err := kubernetes.NewForConfig(e.Admin())
		if err != nil {
			return fmt.Errorf("client of the administrator: %w", err)
		}
		return p.await(ctx, startTimeout, func(ctx context.Context) error {
			return fresh.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		})
	default:
		return nil // what it does shows in objects only
	}
}
