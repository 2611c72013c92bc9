package env

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// APIServer is one more kube-apiserver on the same etcd, as the members of a highly available control plane are. It
// knows the same people and tokens as the first, and has caches and an audit log of its own.
type APIServer struct {
	env     *Env
	name    string
	args    []string
	address string
	process *process // nil before the first Start
}

// StartAPIServer starts another API server with the flags of the first and further ones, each as --name=value, and
// returns when its /readyz is good. The name distinguishes it from others of the environment, the first of which is
// kube-apiserver.
func (e *Env) StartAPIServer(ctx context.Context, name string, args ...string) (*APIServer, error) {
	e.progress("start " + name)
	flags, err := os.ReadFile(e.path("bin", "kube-apiserver"+argumentsSuffix))
	if err != nil {
		return nil, fmt.Errorf("flags of the first API server: %w", err)
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	s := &APIServer{env: e, name: name, address: address(ports[0])}
	// A repeated flag wins over an earlier one.
	s.args = append(strings.Split(strings.TrimSuffix(string(flags), "\n"), "\n"),
		"--secure-port="+strconv.Itoa(ports[0]),
		"--cert-dir="+e.path(name),
		"--tls-cert-file="+e.path("apiserver", "apiserver.crt"),
		"--tls-private-key-file="+e.path("apiserver", "apiserver.key"),
		"--audit-log-path="+s.auditLog(),
		"--endpoint-reconciler-type=none", // one address is published once, whatever the ports
	)
	s.args = append(s.args, args...)
	return s, s.Start(ctx)
}

// Start starts the process again after Kill, on the same port, and returns when its /readyz is good. It is an error
// while the process runs.
func (s *APIServer) Start(ctx context.Context) error {
	if s.process != nil {
		select {
		case <-s.process.done:
		default:
			return fmt.Errorf("%s runs already", s.name)
		}
	}
	binary, err := Asset("kube-apiserver")
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(s.At(s.env.Admin()))
	if err != nil {
		return fmt.Errorf("client of the administrator: %w", err)
	}
	if s.process, err = s.env.start(s.name, s.env.path("logs", s.name+".log"), nil, binary, s.args...); err != nil {
		return err
	}
	return s.process.await(ctx, startTimeout, func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

var errAPIServerNotStarted = errors.New("the API server was not started")

// Kill ends the process with SIGKILL, as a crash would, and waits for its end.
func (s *APIServer) Kill() error {
	if s.process == nil {
		return errAPIServerNotStarted
	}
	return s.process.kill()
}

// At is a copy of a client's configuration that talks to this API server instead of the first.
func (s *APIServer) At(cfg *rest.Config) *rest.Config {
	there := rest.CopyConfig(cfg)
	there.Host = (&url.URL{Scheme: "https", Host: s.address}).String()
	return there
}

func (s *APIServer) auditLog() string { return s.env.path("logs", s.name+"-audit.log") }

// AuditMark returns the end of this API server's audit log. It needs Options.Audit.
func (s *APIServer) AuditMark() (AuditMark, error) { return endOf(s.auditLog()) }

// AuditSince is Env.AuditSince for the writes that this API server answered.
func (s *APIServer) AuditSince(mark AuditMark, username string) ([]auditv1.Event, error) {
	return eventsIn(s.auditLog(), mark, username)
}
